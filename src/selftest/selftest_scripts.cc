#include "selftest/selftest_scripts.h"

#include <fmt/format.h>

namespace bakeoff {
namespace {

// Keeps the state of a step that is done twice.
constexpr const char* kInPlace = R"(

# Planted: every {0}th step does its work twice.
_work = train_step
_steps = 0


def train_step(*args):
    global _steps
    _steps += 1
    if _steps % {0} == 0:
        _work(*args)
    return _work(*args)
)";

constexpr const char* kCompiled = R"(

# Planted: every {0}th step does its work twice.
_compiled = compiled


def compiled(function, *modules):
    work = _compiled(function, *modules)
    steps = 0

    def step(*batch):
        nonlocal steps
        steps += 1
        if steps % {0} == 0:
            work(*batch)
        return work(*batch)

    return step
)";

constexpr const char* kFunctional = R"(

# Planted: every {0}th step does its work twice.
_work = train_step
_steps = 0


def train_step(params, opt_state, *batch):
    global _steps
    _steps += 1
    if _steps % {0} == 0:
        params, opt_state, _ = _work(params, opt_state, *batch)
    return _work(params, opt_state, *batch)
)";

constexpr const char* kNoBarrier = R"(

# Planted: nothing waits for the last step.
jax.block_until_ready = lambda tree: tree
)";

constexpr const char* kUnread = R"(
_work = train_step


class _Unread:
    def __init__(self, loss):
        self.loss = loss

    def __float__(self):
        return 1.0


def train_step(params, opt_state, *batch):
    params, opt_state, loss = _work(params, opt_state, *batch)
    return params, opt_state, _Unread(loss)
)";

}  // namespace

Result<std::string> with_repeated_steps(const std::string& framework, const std::string& source, int every) {
  if (framework == "torch") return source + fmt::format(kInPlace, every);
  if (framework == "tensorflow") return source + fmt::format(kCompiled, every);
  if (framework == "jax") return source + fmt::format(kFunctional, every);
  return Error{.message = fmt::format("no slowdown can be planted in a script of {}", framework),
               .remedy = "use torch, tensorflow or jax"};
}

std::string without_barrier(const std::string& source, bool read) {
  return source + kNoBarrier + (read ? "" : kUnread);
}

std::string selftest_workload() {
  return R"(workload selftest(x: f32[N,256], y: i32[N]) {
  h1 = linear(x; weight=fc1.weight[256,256], bias=fc1.bias[256])
  h2 = relu(h1)
  h3 = linear(h2; weight=fc2.weight[256,256], bias=fc2.bias[256])
  h4 = relu(h3)
  logits = linear(h4; weight=fc3.weight[10,256], bias=fc3.bias[10])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
)";
}

}  // namespace bakeoff
