#include "emit/torch/torch.h"

#include <fmt/format.h>

#include "emit/generation.h"
#include "emit/precision.h"
#include "emit/python_script.h"
#include "emit/torch/cuda_graphs.h"
#include "emit/torch/devices.h"
#include "emit/torch/input.h"
#include "emit/torch/ops.h"
#include "emit/torch/optimizer.h"
#include "emit/torch/script.h"
#include "emit/torch_rules.h"
#include "ir/verify.h"

namespace bakeoff::emit {
namespace {

bool supports(ir::Op op) { return torch::forward_functions().contains(op); }

bool compiles(const Settings& settings) { return setting_or(settings, "compile", "off") != "off"; }

Result<Emitted> emit_script(const Request& request) {
  CHECK_OK(check_supported(torch_framework(), request.workload));
  if (!request.training.predicts()) CHECK_OK(torch::check_optimizer(request));
  CHECK_OK(torch::check_input(request));
  CHECK_OK(torch::check_cuda_graphs(request));
  CHECK_OK(torch::check_devices(request));
  if (cache_grows(request.settings) && compiles(request.settings)) {
    return Error{
        .message = "torch: a cache that grows has another shape for each word, which would be compiled anew",
        .remedy = "set cache = \"static\", or compile = \"off\""};
  }
  if (const Precision precision = precision_of(request); precision.scaler && !precision.mixed()) {
    return Error{.message = "a GradScaler is for mixed precision",
                 .remedy = "set precision = \"float16\", or leave out scaler"};
  }
  TRY(const std::vector<ir::Type> types, ir::infer(request.workload));
  TRY(std::string source, torch::script_text(request, types));
  return Emitted{.source = std::move(source),
                 .example = python_example(
                     request,
                     "model = script.make_model()\n"
                     "# Not strict: the file lacks BatchNorm's counters and the second biases of LSTMs.\n"
                     "model.load_state_dict(script.load_file(weights), strict=False)\n"
                     "batch = next(script.batches(*script.load_data(data)))\n"
                     "return script.predict_step(model, *batch)\n",
                     "", ".cpu()")};
}

std::string environment(const Settings&) { return "torch"; }
bool unbiased_running_var(const Settings&) { return true; }

std::string repeated_steps(int every) {
  return fmt::format(R"(

# Planted: every {0}th step does its work twice.
_work = train_step
_steps = 0


def train_step(*args):
    global _steps
    _steps += 1
    if _steps % {0} == 0:
        _work(*args)
    return _work(*args)
)",
                     every);
}

std::vector<Setting> settings() {
  return {
      {.name = "compile",
       .values = {"off", "default", "reduce-overhead", "max-autotune", "cuda_graphs"},
       .fallback = "off",
       .doc = "model.compile(mode=...): forward and backward through torch.compile; cuda_graphs: no "
              "compiler, the whole step captured in a torch.cuda.CUDAGraph and replayed (GPUs)",
       .tuned = {"default", "max-autotune"},
       .tuned_on_gpus = {"reduce-overhead", "cuda_graphs"}},
      {.name = "channels_last",
       .values = {"false", "true"},
       .fallback = "false",
       .doc = "memory format of the model and its pictures",
       .tuned = {"true"}},
      {.name = "optimizer_impl",
       .values = {"default", "for-loop", "foreach", "fused"},
       .fallback = "default",
       .doc = "how torch.optim steps: parameter by parameter, by multi-tensor operations, by one fused "
              "kernel (Adam, AdamW, SGD); default: as torch chooses, on a CPU the loop",
       .scenarios = {ir::Scenario::kTrain},
       .tuned = {"foreach", "fused"}},
      {.name = "input",
       .values = {"auto", "preloaded", "tensor_dataset", "dataset", "batched_index"},
       .fallback = "auto",
       .doc = "where batches come from: tensors preloaded on the device, a TensorDataset or a Dataset "
              "with transforms through a DataLoader, or a TensorDataset indexed by lists of rows; auto: "
              "preloaded, in the as-is track tensor_dataset",
       .scenarios = {ir::Scenario::kTrain}},
      {.name = "workers",
       .values = {},
       .fallback = "0",
       .doc = "processes of the DataLoader; 0: the training process loads",
       .scenarios = {ir::Scenario::kTrain},
       .least = 0},
      {.name = "cuda_allocator",
       .values = {"default", "expandable_segments", "async"},
       .fallback = "default",
       .doc = "PYTORCH_CUDA_ALLOC_CONF (GPUs): torch's own allocator, the same with segments that "
              "grow, or cudaMallocAsync",
       .tuned_on_gpus = {"expandable_segments"}},
      cache_setting(true),
      precision_setting("torch.autocast", true),
      {.name = "scaler",
       .values = {"false", "true"},
       .fallback = "false",
       .doc = "scale the loss with torch.amp.GradScaler (with precision = float16)",
       .scenarios = {ir::Scenario::kTrain}},
      tf32_setting("fp32_precision of matmul, conv and rnn in torch.backends"),
      {.name = "devices",
       .values = {},
       .fallback = "1",
       .doc =
           "processes that share every batch, each on a GPU or on processors of its own (torchrun); the batch "
           "is that of all together",
       .scenarios = {ir::Scenario::kTrain}},
      {.name = "parallel",
       .values = {"data", "fsdp"},
       .fallback = "data",
       .doc = "how they share the work: DistributedDataParallel, or fully_shard, which splits parameters, "
              "gradients and the state of the optimizer",
       .scenarios = {ir::Scenario::kTrain}},
  };
}

}  // namespace

const Framework& torch_framework() {
  static const Framework framework = {
      .name = "torch",
      .title = "PyTorch",
      .settings = settings(),
      .scenarios = {ir::Scenario::kTrain, ir::Scenario::kPredict, ir::Scenario::kGenerate},
      .module = "torch",
      .imports_besides = {"jax", "tensorflow"},
      .environment = environment,
      .packages = {.framework = "torch", .shown = {"torch", "keras", "numpy"}},
      .supports = supports,
      .emit = emit_script,
      .defaults = torch_defaults,
      .unbiased_running_var = unbiased_running_var,
      .proof_s = 10,
      .cache = {.variable = "TORCHINDUCTOR_CACHE_DIR", .folder = "inductor", .used = compiles},
      .calls_compiler = "torch.compile",
      .gemm = {.file = "libtorch_cpu.so", .title = "MKL of torch"},
      .faults = {.repeated_steps = repeated_steps},
  };
  return framework;
}

}  // namespace bakeoff::emit
