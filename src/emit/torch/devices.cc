#include "emit/torch/devices.h"

#include <fmt/format.h>

#include "emit/torch/input.h"
#include "ir/workload.h"

namespace bakeoff::emit::torch {

int64_t devices_of(const Request& request) {
  return std::stoll(setting_or(request.settings, "devices", "1"));
}

Status check_devices(const Request& request) {
  if (devices_of(request) == 1) return Done{};
  const auto refused = [](const std::string& what, const std::string& remedy) {
    return Error{.message = "torch: with several devices " + what, .remedy = remedy};
  };
  if (request.training.track == ir::Track::kAsIs)
    return refused("the as-is track is not written", "set devices = 1, or track = \"equalised\"");
  if (request.workload.has(ir::Op::kBatchNorm))
    return refused("batch norm would have the statistics of each device's rows: nn.SyncBatchNorm needs GPUs",
                   "set devices = 1");
  if (request.training.optimizer.accumulate > 1)
    return refused("gradients are not accumulated", "set devices = 1, or remove optimizer.accumulate");
  if (input_of(request) != Input::kPreloaded)
    return refused("batches are slices of preloaded tensors", "set devices = 1, or input = \"preloaded\"");
  const std::string compile = setting_or(request.settings, "compile", "off");
  if (compile != "off" && compile != "default")
    return refused(fmt::format("compile = \"{}\" is not written", compile),
                   "set devices = 1, or compile = \"default\"");
  return Done{};
}

void print_distribute(CodeWriter& out, const Request& request) {
  if (devices_of(request) == 1) return;
  out.print(R"(def distribute(model: nn.Module) -> nn.Module:
    """A model whose gradients are means over all devices."""
    return DistributedDataParallel(model)


)");
}

}  // namespace bakeoff::emit::torch
