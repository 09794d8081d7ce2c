#include "emit/torch/devices.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "ir/workload.h"

namespace bakeoff::emit::torch {

Status check_devices(const Request& request) {
  if (devices_of(request.settings) == 1) {
    if (!splits_parameters(request)) return Done{};
    return Error{.message = "torch: parallel = \"fsdp\" splits parameters among several devices",
                 .remedy = "set devices = 2 or more, or leave it out"};
  }
  const auto refused = [](const std::string& what, const std::string& remedy) {
    return Error{.message = "torch: with several devices " + what, .remedy = remedy};
  };
  if (request.training.track == ir::Track::kAsIs)
    return refused("the as-is track is not written", "set devices = 1, or track = \"equalised\"");
  if (request.training.optimizer.accumulate > 1)
    return refused("gradients are not accumulated", "set devices = 1, or remove optimizer.accumulate");
  if (splits_parameters(request) && request.training.optimizer.ema != 0)
    return refused("whose parameters are split no average of weights is kept",
                   "set parallel = \"data\", or remove optimizer.ema");
  const std::string compile = setting_or(request.settings, "compile", "off");
  if (compile != "off" && compile != "default")
    return refused(fmt::format("compile = \"{}\" is not written", compile),
                   "set devices = 1, or compile = \"default\"");
  if (compile != "off" && request.workload.has(ir::Op::kBatchNorm))
    return refused("batch norm, which asks the others amid the forward pass, is not compiled",
                   "set devices = 1, or compile = \"off\"");
  return Done{};
}

bool splits_parameters(const Request& request) {
  return setting_or(request.settings, "parallel", "data") == "fsdp";
}

void print_distribute(CodeWriter& out, const Request& request, const std::vector<std::string>& blocks) {
  if (devices_of(request.settings) == 1) return;
  if (splits_parameters(request)) {
    out.line("def distribute(model: nn.Module) -> nn.Module:");
    const auto body = out.indent();
    out.line("\"\"\"Splits parameters, gradients and the optimizer's state among all devices.\"\"\"");
    if (!blocks.empty()) {
      const std::string classes = join(blocks, ", ");
      out.line("for module in reversed(list(model.modules())):");
      const auto loop = out.indent();
      out.call("if isinstance", {"module", blocks.size() == 1 ? classes : "(" + classes + ")"}, ":");
      const auto then = out.indent();
      out.line("fully_shard(module)");
    }
    out.line("return fully_shard(model)");
    return out.blank(2);
  }
  out.print(R"(def distribute(model: nn.Module) -> nn.Module:
    """A model whose gradients are means over all devices."""
    return DistributedDataParallel(model)


)");
}

}  // namespace bakeoff::emit::torch
