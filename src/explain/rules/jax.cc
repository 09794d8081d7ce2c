#include "explain/rules/parts.h"

namespace bakeoff::explain {
namespace {

Maybe debug_nans(const Subject& s, int) {
  if (!s.flag("debug_nans")) return {};
  return Suspicion{"jax_debug_nans is on"};
}

Maybe jit_off(const Subject& s, int) {
  if (!s.flag("disable_jit")) return {};
  return Suspicion{"jax_disable_jit is on"};
}

Maybe no_jit(const Subject& s, int) { return uncompiled(s); }

Maybe blocks(const Subject& s, int) {
  if (s.number("blocks_per_step") < 0.5) return {};
  return Suspicion{fmt::format("waits for its device {:.1f} times a step", s.number("blocks_per_step"))};
}

Maybe one_thread(const Subject& s, int processors) {
  if (s.number("threads", processors) != 1 || processors < 2) return {};
  return Suspicion{fmt::format("XLA_FLAGS allow one thread on {} processors", processors)};
}

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
      {.id = "R11",
       .key = "blocks",
       .framework = "jax",
       .signal = "block_until_ready at least every second step",
       .cause = "it waits for its results at each step",
       .change = "read results every 100 steps, not each",
       .method = "does not wait",
       .thrown = "no_block",
       .place = "block_until_ready",
       .suspect = blocks},
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
       .suspect = one_thread},
      {.id = "R17",
       .key = "debug_nans",
       .framework = "jax",
       .signal = "jax_debug_nans is on",
       .cause = "every result is checked for NaN",
       .change = "no jax_debug_nans",
       .method = "leaves the checks out",
       .thrown = "no_debug_nans",
       .place = "debug_nans",
       .suspect = debug_nans},
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
       .suspect = jit_off},
  };
}

}  // namespace bakeoff::explain
