#include "emit/torch/torch.h"

#include "emit/torch/forward.h"
#include "emit/torch/modules.h"
#include "emit/torch/optimizer.h"
#include "emit/torch/script.h"
#include "emit/torch_rules.h"
#include "ir/verify.h"

namespace bakeoff::emit {
namespace {

bool supports(ir::Op op) { return torch::forward_functions().contains(op); }

Result<Emitted> emit_script(const Request& request) {
  CHECK_OK(check_supported(torch_framework(), request.workload));
  if (!request.training.predicts()) CHECK_OK(torch::check_optimizer(request));
  TRY(const std::vector<ir::Type> types, ir::infer(request.workload));
  TRY(const torch::Modules modules, torch::Modules::plan(request, types));
  return Emitted{.source = torch::script_text(request, modules, types)};
}

std::string environment(const Settings&) { return "torch"; }
bool unbiased_running_var(const Settings&) { return true; }

}  // namespace

const Framework& torch_framework() {
  static const Framework framework = {
      .name = "torch",
      .title = "PyTorch",
      .settings =
          {
              {.name = "compile",
               .values = {"off", "default", "reduce-overhead", "max-autotune"},
               .fallback = "off",
               .doc = "model.compile(mode=...): forward and backward through torch.compile"},
              {.name = "channels_last",
               .values = {"false", "true"},
               .fallback = "false",
               .doc = "memory format of the model and its pictures"},
              {.name = "optimizer_impl",
               .values = {"default", "for-loop", "foreach", "fused"},
               .fallback = "default",
               .doc =
                   "how torch.optim steps: parameter by parameter, by multi-tensor operations, by one fused "
                   "kernel (Adam, AdamW, SGD); default: as torch chooses, on a CPU the loop",
               .training_only = true},
          },
      .scenarios = {ir::Scenario::kTrain, ir::Scenario::kPredict},
      .environment = environment,
      .supports = supports,
      .emit = emit_script,
      .defaults = torch_defaults,
      .unbiased_running_var = unbiased_running_var,
  };
  return framework;
}

}  // namespace bakeoff::emit
