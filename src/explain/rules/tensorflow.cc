// TensorFlow: tf.function and its traces, pipelines of tf.data (the fact "pipelines"), and switches for
// debugging.

#include <algorithm>

#include "explain/rules/parts.h"

namespace bakeoff::explain {
namespace {

constexpr double kElements = 4;  // of a Python generator, in a step

Maybe no_graph(const Subject& s, int) { return uncompiled(s); }
Maybe retraced(const Subject& s, int) { return recompiled(s); }
Maybe retraced_by_numbers(const Subject& s, int) {
  auto suspicion = recompiled(s);
  const std::string numbers = reasons_of(s, {"Python value"});
  if (!suspicion || numbers.empty()) return {};
  suspicion->evidence += ", for Python numbers that change: " + numbers;
  return suspicion;
}

Maybe element_by_element(const Subject& s, int) {
  const double elements = s.number("generator_elements_per_step");
  const bool both = number_of_other(s, "generator_elements_per_step") >= elements / 2;
  if (elements < kElements || s.input_share() < kWaits || both) return {};
  const Json lines = fact(s, "lines");
  return Suspicion{
      .evidence = fmt::format("its pipeline takes {:.0f} elements a step from a Python generator, one "
                              "element after another; {}",
                              elements, input_words(s)),
      .most = without(s.input_share()),
      .line = lines.is_object() ? lines.value("from_generator", int64_t{0}) : 0,
      .booked = of_steps(s.input_share(), s)};
}

constexpr double kLargerGraph = 4;

// A loop in Python within a function that is traced makes a graph of all its rounds.
Maybe large_graph(const Subject& s, int) {
  auto suspicion = compiles_longer(s);
  const double mine = s.number("graph_ops"), other = number_of_other(s, "graph_ops");
  if (!suspicion || other < 1 || mine < kLargerGraph * other) return {};
  suspicion->evidence +=
      fmt::format("; its largest graph has {:.0f} ops, that of the other script {:.0f}", mine, other);
  return suspicion;
}

Maybe new_tf_functions(const Subject& s, int) { return defined_anew(s); }

Maybe threads(const Subject& s, int processors) { return other_threads(s, processors); }

// A pipeline of tf.data whose facts have this flag as said.
bool piped(const Json& pipelines, const char* flag, bool as) {
  return std::ranges::any_of(pipelines, [&](const Json& one) { return one.value(flag, !as) == as; });
}

bool piped(const Subject& s, const char* flag, bool as) { return piped(fact(s, "pipelines"), flag, as); }

Maybe serial_map(const Subject& s, int) {
  if (s.input_share() < kSomeWaits || !piped(s, "map", true)) return {};
  return Suspicion{"a map of its pipeline is serial; " + input_words(s)};
}

// Whether a map stands before the batching, and so is called for each element.
bool maps_rows(const Json& pipelines) {
  return std::ranges::any_of(pipelines, [](const Json& one) {
    const Json stages = one.value("stages", Json::array());
    size_t map = stages.size(), batch = 0;
    for (size_t i = 0; i < stages.size(); ++i) {
      const std::string name = stages[i].is_string() ? stages[i].get<std::string>() : "";
      if (name.ends_with("map")) map = std::min(map, i);
      if (name.ends_with("batch")) batch = i;
    }
    return map < batch;
  });
}

// What both scripts do is no difference of theirs.
Maybe map_of_rows(const Subject& s, int) {
  if (s.input_share() < kWaits || !maps_rows(fact(s, "pipelines")) ||
      maps_rows(fact_of_other(s, "pipelines")))
    return {};
  return Suspicion{
      .evidence = "its pipeline maps one element after another, before they are batched; " + input_words(s),
      .most = without(s.input_share()),
      .booked = of_steps(s.input_share(), s)};
}

// A map that calls Python, for which only one thread computes at a time.
Maybe python_map(const Subject& s, int) {
  if (s.input_share() < kWaits || !piped(s, "python", true)) return {};
  Suspicion found{
      .evidence = "a map of its pipeline calls a Python function (tf.numpy_function, tf.py_function); " +
                  input_words(s),
      .most = without(s.input_share())};
  if (!piped(fact_of_other(s, "pipelines"), "python", true)) found.booked = of_steps(s.input_share(), s);
  return found;
}

// What a map makes of the data is made again in each epoch.
Maybe no_cache(const Subject& s, int) {
  const double epoch_s = s.profile.epoch_steps * s.step_with_waits_s() + s.profile.epoch_start_s;
  const double starts = epoch_s > 0 ? s.profile.epoch_start_s / epoch_s : 0,
               part = std::max(s.input_share(), starts);
  const bool maps = piped(s, "map", true) || piped(s, "parallel_map", true);
  const bool other = s.other_s <= 0 || piped(fact_of_other(s, "pipelines"), "cache", true);
  if (part < kWaits || !maps || piped(s, "cache", true) || !other) return {};
  Suspicion found{
      .evidence = "a map of its pipeline makes the data of each epoch anew; " +
                  (starts > s.input_share() ? "the start of an epoch takes " + share(starts) + " of it"
                                            : input_words(s)),
      .most = without(part)};
  if (s.other_s > 0) found.booked = of_steps(std::min(part, std::max(0.0, 1 - s.other_s / s.mean_s())), s);
  return found;
}

Maybe no_prefetch(const Subject& s, int) {
  if (piped(s, "prefetch", false) && piped(fact_of_other(s, "pipelines"), "prefetch", true))
    return Suspicion{"its pipeline has no prefetch, and the other script's has"};
  if (s.input_share() < kSomeWaits || !piped(s, "prefetch", false)) return {};
  return Suspicion{"its pipeline has no prefetch; " + input_words(s), without(s.input_share())};
}

Maybe runs_eagerly(const Subject& s, int) {
  if (!s.flag("run_eagerly")) return {};
  return Suspicion{"functions run op by op in Python"};
}

Maybe checked_numbers(const Subject& s, int) {
  if (!s.flag("check_numerics")) return {};
  return Suspicion{"every op's numbers are checked"};
}

Maybe unfused(const Subject& s, int) {
  if (s.seen.kind != "function" || s.flag("jit_compile") || s.flag("run_eagerly")) return {};
  return Suspicion{"its step is a graph without XLA"};
}

const std::map<std::string, const char*> kTensorflowRemedies = {
    {"R1", "`.cache()`, `.map(f, num_parallel_calls=tf.data.AUTOTUNE)`, `.prefetch(tf.data.AUTOTUNE)`."},
    {"R2", "`Dataset.from_tensor_slices(...).batch(n)` before `.map`, so that the map sees batches."},
    {"R3", "Fewer parallel calls: `num_parallel_calls=1` for a map that costs little."},
    {"R4", "`checkpoint.save` once in some epochs; one iterator over `dataset.repeat()`."},
    {"R5", "Put the loop over batches into the `tf.function`; read results once an epoch."},
    {"R6", "`@tf.function` on the function that makes one step, or several steps in one call."},
    {"R7",
     "`drop_remainder=True`, an `input_signature`, `reduce_retracing=True`; tensors in place of "
     "Python numbers."},
    {"R8", "`tf.function` without `jit_compile=True`."},
    {"R9", "No `jit_compile=True` for short runs."},
    {"R10", "The same layers, or `tf.scan` inside of a `tf.function`."},
    {"R11", "No `.numpy()` or `float(loss)` at every step."},
    {"R12", "No persistent tapes that are kept; no list of losses with their tapes."},
    {"R13", "Its own threads set denormals to 0 already; in NumPy code avoid values that decay to zero."},
    {"R14", "`tf.config.threading.set_intra_op_parallelism_threads(n)` before anything is computed."},
    {"R16", "No mixed precision policy on a CPU without AMX or AVX512-BF16."},
    {"R17", "No `tf.config.run_functions_eagerly(True)`, no `tf.debugging.enable_check_numerics()`."},
    {"R18", "`loss.numpy()` before the clock is read."},
    {"R20", "The defaults of Keras; losses of `tf.nn` give one number a row and want `reduce_mean`."},
    {"R21", "`tf.squeeze(prediction, -1)` before the loss."},
    {"R22", "Logits for `tf.nn.softmax_cross_entropy_with_logits`."},
    {"R23", "The same as Keras."},
    {"R24", "Layers that are made in `__init__`, not at each call; variables that the tape sees."},
    {"R25", "Divide the sum of the gradients by the number of parts before `apply_gradients`."},
    {"R28", "`tf.function(jit_compile=True)`."},
};

}  // namespace

std::vector<Rule> tensorflow_rules() {
  return {
      {.id = "R1",
       .key = "serial_map",
       .framework = "tensorflow",
       .signal = "a map of tf.data without num_parallel_calls, and waits of at least 5%",
       .cause = "its pipeline prepares one element after another",
       .change = "num_parallel_calls=tf.data.AUTOTUNE in map()",
       .method = "maps in parallel",
       .thrown = "parallel_map",
       .place = "\\.map\\(",
       .suspect = serial_map,
       .within = "input",
       .from = R"((\.map\([^()]+)\))",
       .to = "$1, num_parallel_calls=tf.data.AUTOTUNE)",
       .tries = [](const Subject& s, int) { return only(piped(s, "map", true)); }},
      {.id = "R2",
       .key = "map_rows",
       .framework = "tensorflow",
       .signal = "a map of tf.data stands before batch, and waits of at least 15%",
       .cause = "its map is called for each element, before they are batched",
       .change = ".batch(n) before .map(f), with an f that takes whole batches",
       .method = "gives the first batch again and again",
       .thrown = "cached_batch",
       .place = "\\.map\\(",
       .numbers = true,
       .suspect = map_of_rows,
       .within = "input"},
      {.id = "R1",
       .key = "python_map",
       .framework = "tensorflow",
       .signal = "a map of its pipeline calls a Python function, and waits of at least 15%",
       .cause = "its pipeline calls a Python function for each element, which no two threads run at a time",
       .change = "ops of TensorFlow in place of the Python function, or all of it once before the training",
       .method = "gives the first batch again and again",
       .thrown = "cached_batch",
       .place = "numpy_function|py_function",
       .numbers = true,
       .suspect = python_map,
       .within = "map_rows"},
      {.id = "R1",
       .key = "no_cache",
       .framework = "tensorflow",
       .signal =
           "a pipeline with a map and without cache, waits or starts of epochs of at least 15%, and of a pair a cache in "
           "the other script",
       .cause = "its pipeline prepares the same data again in each epoch",
       .change =
           ".cache() after the map, where the map is the same in each epoch and its results fit into memory",
       .method = "gives the first batch again and again",
       .thrown = "cached_batch",
       .place = "\\.map\\(",
       .numbers = true,
       .suspect = no_cache,
       .within = "input"},
      {.id = "R1",
       .key = "prefetch",
       .framework = "tensorflow",
       .signal =
           "a pipeline of tf.data that does not end with prefetch, and waits of at least 5%, or a faster "
           "script that has one",
       .cause = "its pipeline and its steps run in turn",
       .change = ".prefetch(tf.data.AUTOTUNE) at the pipeline's end",
       .method = "prepares batches ahead of time",
       .thrown = "prefetch",
       .place = "\\.batch\\(",
       .suspect = no_prefetch,
       .within = "input",
       .tries = [](const Subject& s, int) { return only(piped(s, "prefetch", false)); }},
      {.id = "R1",
       .key = "elements",
       .framework = "tensorflow",
       .signal = "Dataset.from_generator gives at least 4 elements a step, and waits of at least 15%",
       .cause = "its data cross from Python to the pipeline one element after another",
       .change = "let the generator give whole batches, or take arrays: "
                 "tf.data.Dataset.from_tensor_slices(arrays).batch(n)",
       .method = "gives the first batch again and again",
       .thrown = "cached_batch",
       .place = "from_generator",
       .numbers = true,
       .suspect = element_by_element,
       .within = "input"},
      {.id = "R6",
       .key = "no_graph",
       .framework = "tensorflow",
       .signal = "gradients are taken outside of any tf.function",
       .cause = "its training step is not compiled",
       .change = "@tf.function on the function that makes one step",
       .method = "makes a graph of that function, or of the model where there is no such function",
       .thrown = "graph",
       .numbers = true,
       .suspect = no_graph},
      {.id = "R7",
       .key = "retraces",
       .framework = "tensorflow",
       .signal = "three or more traces after the first steps, and one in 20 steps",
       .cause = "its function is traced again and again",
       .change = "tf.function(reduce_retracing=True), or shapes that stay equal",
       .method = "relaxes the shapes that it was traced for",
       .thrown = "relax_shapes",
       .place = "tf\\.function",
       .suspect = retraced,
       .within = "shapes"},
      {.id = "R7",
       .key = "python_numbers",
       .framework = "tensorflow",
       .signal = "the same, and the reasons are Python numbers among its arguments",
       .cause = "its function is traced again for each Python number",
       .change = "give the function tensors in place of Python numbers: tf.constant(...)",
       .method = "makes tensors of those numbers",
       .thrown = "tensor_values",
       .place = "tf\\.function",
       .suspect = retraced_by_numbers,
       .within = "shapes"},
      {.id = "R9",
       .key = "large_graph",
       .framework = "tensorflow",
       .signal =
           "it compiles for longer than the other script, and its largest graph has at least 4 times as many ops",
       .cause =
           "a Python loop is unrolled into a traced function, and all its rounds are traced and compiled one by one",
       .change =
           "a loop over tf.range inside of the function, tf.scan or tf.while_loop, or a recurrent layer of Keras",
       .method = "",
       .thrown = "",
       .numbers = true,
       .suspect = large_graph,
       .within = "compile_start"},
      {.id = "R7",
       .key = "new_tf_functions",
       .framework = "tensorflow",
       .signal = "three or more traces after the first steps, of functions that are defined again each time",
       .cause = "a function is defined and compiled again at each step",
       .change = "define the tf.function function once, before the loop",
       .method = "takes the first one again",
       .thrown = "one_function",
       .place = "tf\\.function",
       .suspect = new_tf_functions,
       .within = "shapes"},
      {.id = "R14",
       .key = "tf_threads",
       .framework = "tensorflow",
       .signal = "it computes with more or fewer threads than the machine has processors, or than the faster "
                 "script",
       .cause = "it computes with too few or too many threads",
       .change = "tf.config.threading.set_intra_op_parallelism_threads({})",
       .method = "sets the number of threads",
       .thrown = "threads",
       .place = "_parallelism_threads|NUM_(INTRA|INTER)",
       .numbers = true,
       .suspect = threads,
       .from = R"((_parallelism_threads\()\s*[0-9]+)",
       .to = "$1{}",
       .tries = [](const Subject& s,
                   int processors) { return only(processors > 1 && s.number("threads") == processors, 1); }},
      {.id = "R17",
       .key = "eager",
       .framework = "tensorflow",
       .signal = "run_eagerly or run_functions_eagerly",
       .cause = "it runs eagerly, op by op",
       .change = "no run_eagerly=True, no run_functions_eagerly(True)",
       .method = "runs compiled functions",
       .thrown = "no_eager",
       .place = "eager",
       .numbers = true,
       .suspect = runs_eagerly,
       .from = R"((run_eagerly\s*=\s*|run_functions_eagerly\()True)",
       .to = "$1False"},
      {.id = "R17",
       .key = "check_numerics",
       .framework = "tensorflow",
       .signal = "tf.debugging.enable_check_numerics was called",
       .cause = "every op's numbers are checked",
       .change = "no tf.debugging.enable_check_numerics()",
       .method = "leaves the checks out",
       .thrown = "no_check_numerics",
       .place = "check_numerics",
       .suspect = checked_numbers,
       .from = R"(^\s*tf\.debugging\.enable_check_numerics\(\)\s*$)",
       .to = ""},
      {.id = "R28",
       .key = "function_without_xla",
       .framework = "tensorflow",
       .signal = "the step is a tf.function without XLA",
       .cause = "XLA would fuse its ops",
       .change = "tf.function(jit_compile=True)",
       .method = "compiles its functions with XLA",
       .thrown = "xla",
       .place = "tf\\.function",
       .numbers = true,
       .suspect = unfused,
       .from = R"(@tf\.function\s*$)",
       .to = "@tf.function(jit_compile=True)"},
  };
}

Remedies tensorflow_remedies() { return {"TensorFlow", kTensorflowRemedies}; }

}  // namespace bakeoff::explain
