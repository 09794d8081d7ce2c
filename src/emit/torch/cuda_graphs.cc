#include "emit/torch/cuda_graphs.h"

#include <fmt/format.h>

#include "emit/precision.h"
#include "emit/torch/optimizer.h"
#include "emit/torch_rules.h"

namespace bakeoff::emit::torch {

bool uses_cuda_graphs(const Request& request) { return request.settings.at("compile") == "cuda_graphs"; }

Status check_cuda_graphs(const Request& request) {
  if (!uses_cuda_graphs(request)) return Done{};
  if (request.training.predicts()) {
    return Error{.message = "torch: compile = \"cuda_graphs\" captures training steps",
                 .remedy = "set compile = \"reduce-overhead\", which captures predictions"};
  }
  if (precision_of(request).scaler) {
    return Error{.message = "torch: a GradScaler asks the device in every step, which no CUDA graph can",
                 .remedy = "leave out scaler, or set compile = \"reduce-overhead\""};
  }
  const ir::Optimizer& optimizer = request.training.optimizer;
  if (optimizer.schedule.varies() || optimizer.ema != 0) {
    return Error{
        .message = fmt::format("torch: {} on the host, which no CUDA graph repeats",
                               optimizer.schedule.varies() ? "a schedule counts its steps"
                                                           : "an average of weights counts its updates"),
        .remedy = fmt::format("remove {}, or set compile = \"reduce-overhead\"",
                              optimizer.schedule.varies() ? "[schedule]" : "optimizer.ema")};
  }
  const std::string name = optimizer_class(torch_optimizer(request.training));
  if (name == "AdamEpsInside" || name == "AdamEpsHat") {
    return Error{.message = "torch: " + name + " counts its steps on the host, which no CUDA graph repeats",
                 .remedy = "set optimizer.eps_form = \"outside\", or compile = \"reduce-overhead\""};
  }
  return Done{};
}

void print_graphed_step(CodeWriter& out) {
  out.print(R"(class GraphedStep:
    """`train_step` as a CUDA graph: captured once, then replayed on static inputs.

    The first steps run as they are, on a side stream: kernels are chosen and the
    optimizer's state is made before the capture.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer
        self.graph = torch.cuda.CUDAGraph()
        self.stream = torch.cuda.Stream()
        self.steps = 0

    def __call__(self, *batch: Tensor) -> Tensor:
        self.steps += 1
        if self.steps <= WARM_UP:
            return self.warm_up(*batch)
        if self.steps == WARM_UP + 1:
            self.inputs = [tensor.clone() for tensor in batch]
            with torch.cuda.graph(self.graph):
                self.loss = train_step(self.model, self.optimizer, *self.inputs)
        for static, tensor in zip(self.inputs, batch, strict=True):
            static.copy_(tensor)
        self.graph.replay()
        return self.loss  # overwritten by the next step

    def warm_up(self, *batch: Tensor) -> Tensor:
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            loss = train_step(self.model, self.optimizer, *batch)
        torch.cuda.current_stream().wait_stream(self.stream)
        return loss


)");
}

std::string allocator_conf(const Request& request) {
  const std::string allocator = setting_or(request.settings, "cuda_allocator", "default");
  if (allocator == "expandable_segments") return "expandable_segments:True";
  return allocator == "async" ? "backend:cudaMallocAsync" : "";
}

}  // namespace bakeoff::emit::torch
