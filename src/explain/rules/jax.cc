// JAX. Most slow scripts work outside of compiled functions, or compile again. Looks at the stack say which
// lines send ops one by one (HotLine::eager); one and the same signal is two causes, by whether these lines
// index elements of arrays. Reasons for compiling again come from the fact "retraces".

#include <algorithm>
#include <tuple>

#include "explain/rules/parts.h"

namespace bakeoff::explain {
namespace {

constexpr double kManyCalls = 500;    // of a jitted function in the observed run
constexpr double kMoreCalls = 8;      // times as many as in the other script
constexpr double kEager = 0.2;        // of the samples of its call stack
constexpr double kMostOfEager = 0.6;  // of these, from which on lines that index arrays are what is told

Maybe debug_nans(const Subject& s, int) {
  if (!s.flag("debug_nans")) return {};
  return Suspicion{"jax_debug_nans is on"};
}

Maybe jit_off(const Subject& s, int) {
  if (!s.flag("disable_jit")) return {};
  return Suspicion{"jax_disable_jit is on"};
}

Maybe no_jit(const Subject& s, int) { return uncompiled(s); }

// Whether a line indexes something by a name that counts, as x[t] or x[t + 1] where t comes from range or enumerate; the keys of
// a dictionary do not.
bool takes_elements(const Subject& s, const std::string& line) {
  static const Pattern index(R"(^.*[A-Za-z0-9_)]\[ *-?([A-Za-z_]+) *([-+] *[A-Za-z0-9_]+ *)?\].*$)");
  const auto name = index.replaced(line, "$1");
  if (!name) return false;
  const Pattern counted(("for ([^=]*[ ,(])?" + *name + "([ ,)][^=]*)? in .*(range|enumerate)\\(").c_str());
  return std::ranges::any_of(s.source.files(), [&](const Source::File& file) {
    return std::ranges::any_of(file.lines, [&](const std::string& one) { return counted.in(one); });
  });
}

// Looks in ops that JAX is sent one by one, in lines whose functions are not compiled.
struct EagerLines {
  double part = 0, elements = 0;      // shares of all looks; of lines that take elements of arrays
  int64_t line = 0, of_elements = 0;  // in which they were most often
};

EagerLines eager_lines(const Subject& s) {
  EagerLines all;
  double most = 0, most_of_elements = 0;
  for (const HotLine& hot : s.seen.lines) {
    if (makes_array(s, hot)) continue;  // a cause of its own
    const bool own = s.source.has(hot.line);
    all.part += hot.eager;
    if (own && hot.eager > most) most = hot.eager, all.line = hot.line;
    if (hot.eager == 0 || !own || !takes_elements(s, s.source.line(hot.line))) continue;
    all.elements += hot.eager;
    if (hot.eager > most_of_elements) most_of_elements = hot.eager, all.of_elements = hot.line;
  }
  return all;
}

// Where both scripts work so, it is no difference of theirs.
Maybe eager(const Subject& s, bool elements) {
  const EagerLines all = eager_lines(s);
  if (all.part < kEager || s.other_eager >= all.part / 2) return {};
  if ((all.elements >= kMostOfEager * all.part) != elements) return {};
  const int64_t line = elements ? all.of_elements : all.line;
  return Suspicion{
      .evidence = fmt::format("{} of the samples of its call stack are in ops of JAX outside of any jitted "
                              "function{}",
                              share(all.part), line > 0 ? ", most of them in " + s.source.words(line) : ""),
      .most = without(all.part),
      .line = line,
      .booked = at_least(of_looks(all.part, s), s)};
}

Maybe eager_ops(const Subject& s, int) { return eager(s, false); }

Maybe eager_elements(const Subject& s, int) { return eager(s, true); }

// A loop in Python within a function that is compiled.
Maybe unrolled(const Subject& s, int) {
  auto suspicion = compiles_longer(s);
  if (!suspicion || s.start_loops.empty()) return {};
  const auto& loop = std::ranges::max(s.start_loops, {}, &PythonLoop::traced);
  suspicion->line = loop.line;
  suspicion->evidence +=
      fmt::format("; the loop in {} is part of what it traces, round by round", s.source.words(loop.line));
  return suspicion;
}

Maybe new_functions(const Subject& s, int) { return defined_anew(s); }

Maybe static_values(const Subject& s, int) {
  auto suspicion = recompiled(s);
  const std::string objects = reasons_of(s, {"another object"}), values = reasons_of(s, {"Python value"});
  if (!suspicion || (objects.empty() && values.empty())) return {};
  if (!objects.empty())
    suspicion->evidence += ", each for another object as a static argument: " + objects;
  else
    suspicion->evidence += ", for values of static arguments that change: " + values;
  return suspicion;
}

Maybe other_types(const Subject& s, int) {
  auto suspicion = recompiled(s);
  const std::string found = reasons_of(s, {"structure", "type", "dtype", "weak type"});
  if (!suspicion || found.empty()) return {};
  suspicion->evidence += ", as the type or structure of its arguments changes: " + found;
  return suspicion;
}

// A function that is called for each element, where the other script calls one for all.
Maybe small_calls(const Subject& s, int) {
  const auto most_of = [](const Json& functions) {
    std::tuple<double, int64_t, std::string> most;
    for (const auto& [name, of] : functions.items())
      if (of.is_array() && of.size() == 2)
        most = std::max(most, std::tuple(of[0].get<double>(), of[1].get<int64_t>(), name));
    return most;
  };
  const Json mine = fact(s, "functions"), others = fact_of_other(s, "functions");
  const auto [calls, line, name] = most_of(mine);
  const double other = std::max(1.0, std::get<0>(most_of(others)));
  if (s.other_s <= 0 || !others.is_object() || calls < kManyCalls || calls < kMoreCalls * other) return {};
  double seconds = 0;
  for (const LineTime& one : line_times(s))
    if (one.line.line == line) seconds += one.seconds;
  if (seconds < kPartOfGap * (s.mean_s() - s.other_s)) return {};
  return Suspicion{
      .evidence = fmt::format(
          "the jitted function {} was called {:.0f} times, and none of the other script more than "
          "{:.0f} times; {}, which calls it, takes {} of the time",
          name, calls, other, s.source.words(line), share(seconds / s.mean_s())),
      .line = line,
      .booked = at_least(seconds / s.mean_s(), s)};
}

Maybe blocks(const Subject& s, int) {
  if (s.number("blocks_per_step") < 0.5) return {};
  return Suspicion{fmt::format("waits for its device {:.1f} times a step", s.number("blocks_per_step"))};
}

Maybe one_thread(const Subject& s, int processors) {
  if (s.number("threads", processors) != 1 || processors < 2) return {};
  return Suspicion{fmt::format("XLA_FLAGS allow one thread on {} processors", processors)};
}

const std::map<std::string, const char*> kJaxRemedies = {
    {"R1", "Prepare the next batch in a thread while a step runs, or move all data to the device once."},
    {"R2", "`x[rows]` with an array of row numbers."},
    {"R3", "The same as the loader that it uses."},
    {"R4", "Save once in some epochs, or with a checkpointer that writes in the background."},
    {"R5", "`jax.lax.scan` over the batches of an epoch; read results once an epoch."},
    {"R6", "`@jax.jit` on the function that makes one step; `jax.lax.scan` over several steps."},
    {"R7",
     "Padding to few shapes; define jitted functions once; `static_argnums` only for what never "
     "changes."},
    {"R8", "Keep `jit` around the whole step, not around small parts of it."},
    {"R9", "`jax.config.update(\"jax_compilation_cache_dir\", folder)` keeps what was compiled."},
    {"R10", "`jax.lax.scan` over the time steps in place of a Python loop."},
    {"R11", "No `block_until_ready`, `float(loss)` or `print(loss)` at every step."},
    {"R12", "Do not keep arrays of every step; `donate_argnums` lets a step reuse its input."},
    {"R13", "XLA sets denormals to 0 on most processors; keep constants above 1e-38."},
    {"R14",
     "It takes all processors of the process: `taskset -c 0-3 python train.py` gives it four. No "
     "`--xla_cpu_multi_thread_eigen=false` in `XLA_FLAGS`."},
    {"R16", "`float32` arrays in place of `bfloat16` ones."},
    {"R17", "No `jax_debug_nans`, no `jax_disable_jit`."},
    {"R18", "`jax.block_until_ready(result)` before the clock is read."},
    {"R20", "optax takes `eps` 1e-8; losses give one number a row and want `.mean()`."},
    {"R21", "`prediction[:, 0]` before the loss; assert equal shapes."},
    {"R22", "Logits for `optax.softmax_cross_entropy`."},
    {"R23", "`jax.lax.scan` goes along the first axis: move time to the front with `jnp.swapaxes(x, 0, 1)`."},
    {"R24", "Keep what the step returns: `params, state = step(params, state, batch)`; no `stop_gradient`."},
    {"R25", "`optax.MultiSteps`, or the mean of the gradients of all parts."},
    {"R28", "One `jit` around the whole step, so that XLA fuses all of it; lower precision."},
};

}  // namespace

std::vector<Rule> jax_rules() {
  return {
      {.id = "R6",
       .key = "no_jit",
       .framework = "jax",
       .signal = "gradients are computed outside of any jitted function",
       .cause = "its training step is not compiled",
       .change = "@jax.jit on the function that makes one step",
       .method = "compiles that function",
       .thrown = "jit_step",
       .numbers = true,
       .suspect = no_jit},
      {.id = "R6",
       .key = "eager_ops",
       .framework = "jax",
       .signal =
           "at least 20% of the samples of its call stack are in ops of JAX outside of any jitted function",
       .cause = "part of its step runs op by op, outside of any jitted function",
       .change =
           "put the whole step into one function under @jax.jit, with the optimizer's update and what prepares the "
           "batch",
       .method = "",
       .thrown = "",
       .suspect = eager_ops,
       .within = "no_jit"},
      {.id = "R11",
       .key = "eager_elements",
       .framework = "jax",
       .signal =
           "at least 20% of the samples of its call stack are in ops of JAX outside of any jitted function, and most "
           "of these in lines that index arrays by a name, as x[t]",
       .cause =
           "Python goes through elements of JAX arrays, and each index and each sum is a call of its own",
       .change =
           "convert the arrays before the loop (x = np.asarray(x)), or make the loop a jax.lax.scan within a jitted "
           "function",
       .method = "",
       .thrown = "",
       .suspect = eager_elements,
       .within = "no_jit"},
      {.id = "R9",
       .key = "unrolled",
       .framework = "jax",
       .signal =
           "it compiles for longer than the other script, and a Python loop is in the function that is traced",
       .cause =
           "a Python loop is unrolled into a compiled function, and all its rounds are compiled one by one",
       .change = "jax.lax.scan, or jax.lax.fori_loop, over the rounds",
       .method = "",
       .thrown = "",
       .numbers = true,
       .suspect = unrolled,
       .within = "compile_start"},
      {.id = "R7",
       .key = "new_functions",
       .framework = "jax",
       .signal =
           "three or more compilations after the first steps, of functions that are defined again each time",
       .cause = "a function is defined and compiled again at each step",
       .change = "define the jitted function once, before the loop",
       .method = "takes the first one again",
       .thrown = "one_function",
       .place = "jax\\.jit|@jit|pjit",
       .suspect = new_functions,
       .within = "shapes"},
      {.id = "R7",
       .key = "static_values",
       .framework = "jax",
       .signal = "three or more compilations after the first steps, for other values of static arguments",
       .cause = "its function is compiled again for each new value of a static argument",
       .change =
           "give numbers as arrays, not as static arguments; give objects __eq__ and __hash__ (a frozen dataclass), so that "
           "equal ones are one value",
       .method = "",
       .thrown = "",
       .place = "static_arg",
       .suspect = static_values,
       .within = "shapes"},
      {.id = "R7",
       .key = "other_types",
       .framework = "jax",
       .signal =
           "three or more compilations after the first steps, for other types or structures of its arguments",
       .cause = "its function is compiled again and again, as the types of its arguments change",
       .change = "give it arrays of one dtype, in one structure: jnp.float32(x) in place of Python numbers",
       .method = "",
       .thrown = "",
       .place = "jax\\.jit|@jit",
       .suspect = other_types,
       .within = "shapes"},
      {.id = "R6",
       .key = "small_calls",
       .framework = "jax",
       .signal =
           "a jitted function is called 8 times as often as any of the other script, and its line takes 40% of the gap",
       .cause = "a small jitted function is called for one element after another",
       .change = "jax.vmap over the elements, within one jitted function; read results once",
       .method = "",
       .thrown = "",
       .numbers = true,
       .suspect = small_calls},
      {.id = "R11",
       .key = "blocks",
       .framework = "jax",
       .signal = "block_until_ready at least every second step",
       .cause = "it waits for its results at each step",
       .change = "read results every 100 steps, not each",
       .method = "does not wait",
       .thrown = "no_block",
       .place = "block_until_ready",
       .suspect = blocks,
       .from = R"(\.block_until_ready\(\))",
       .to = ""},
      {.id = "R14",
       .key = "jax_threads",
       .framework = "jax",
       .signal = "XLA_FLAGS have --xla_cpu_multi_thread_eigen=false",
       .cause = "XLA computes with one thread",
       .change = "no --xla_cpu_multi_thread_eigen=false in XLA_FLAGS",
       .method = "takes that flag away",
       .thrown = "xla_threads",
       .place = "XLA_FLAGS",
       .numbers = true,
       .suspect = one_thread,
       .from = R"(\s*--xla_cpu_multi_thread_eigen=false)",
       .to = ""},
      {.id = "R17",
       .key = "debug_nans",
       .framework = "jax",
       .signal = "jax_debug_nans is on",
       .cause = "every result is checked for NaN",
       .change = "no jax_debug_nans",
       .method = "leaves the checks out",
       .thrown = "no_debug_nans",
       .place = "debug_nans",
       .suspect = debug_nans,
       .from = R"((jax_debug_nans"?\s*,\s*)True)",
       .to = "$1False"},
      {.id = "R17",
       .key = "jit_off",
       .framework = "jax",
       .signal = "jax_disable_jit is on",
       .cause = "compilation is switched off",
       .change = "no jax_disable_jit",
       .method = "compiles",
       .thrown = "jit",
       .place = "disable_jit",
       .numbers = true,
       .suspect = jit_off,
       .from = R"((jax_disable_jit"?\s*,\s*)True)",
       .to = "$1False"},
  };
}

Remedies jax_remedies() { return {"JAX", kJaxRemedies}; }

}  // namespace bakeoff::explain
