#include "explain/rules/parts.h"

namespace bakeoff::explain {
namespace {

Maybe no_graph(const Subject& s, int) { return uncompiled(s); }
Maybe retraced(const Subject& s, int) { return recompiled(s); }
// Whether Python numbers are among the reasons of its traces.
bool by_numbers(const Subject& s) {
  return fact(s, "retraces").dump().find("Python value") != std::string::npos;
}

Maybe retraced_by_numbers(const Subject& s, int) {
  auto suspicion = recompiled(s);
  if (!suspicion || !by_numbers(s)) return {};
  suspicion->evidence += ", for Python numbers that change";
  return suspicion;
}

Maybe threads(const Subject& s, int processors) { return other_threads(s, processors); }

Maybe eager(const Subject& s, int) {
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

}  // namespace

std::vector<Rule> tensorflow_rules() {
  return {
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
      {.id = "R14",
       .key = "tf_threads",
       .framework = "tensorflow",
       .signal = "it computes with more or fewer threads than the machine has processors",
       .cause = "its number of threads does not fit the machine",
       .change = "tf.config.threading.set_intra_op_parallelism_threads({})",
       .method = "sets the number of threads",
       .thrown = "threads",
       .place = "_parallelism_threads|NUM_(INTRA|INTER)",
       .numbers = true,
       .suspect = threads},
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
       .suspect = eager},
      {.id = "R17",
       .key = "check_numerics",
       .framework = "tensorflow",
       .signal = "tf.debugging.enable_check_numerics was called",
       .cause = "every op's numbers are checked",
       .change = "no tf.debugging.enable_check_numerics()",
       .method = "leaves the checks out",
       .thrown = "no_check_numerics",
       .place = "check_numerics",
       .suspect = checked_numbers},
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
       .suspect = unfused},
  };
}

}  // namespace bakeoff::explain
