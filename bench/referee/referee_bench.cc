// Training steps of a workload in the referee, one at a time and on demand, so that another program can
// alternate with them (referee_vs_torch.py).
//
//   referee_bench WORKLOAD BATCH THREADS FILE
//
// WORKLOAD is one of the zoo, or a file of the IR: recipes/vit_tiny.ir.
// Writes weights and one batch to FILE (safetensors), then answers each line of its input with one step
// (forward, backward, RMSprop 1e-4) and a line "<loss> <nanoseconds> <peak resident KiB>".

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "ir/text.h"
#include "referee/evaluate.h"
#include "referee/init.h"
#include "referee/optimizer.h"
#include "tensor/safetensors.h"
#include "zoo/op_cases.h"
#include "zoo/zoo.h"

namespace bakeoff {
namespace {

Status write_problem(const ir::Workload& workload, const referee::Weights& weights,
                     const referee::Inputs& inputs, const std::string& path) {
  tensor::NamedTensors tensors;
  for (size_t p = 0; p < weights.size(); ++p) {
    TRY(auto raw, tensor::encode(weights[p], tensor::DType::kF64));
    tensors.emplace_back(workload.parameters[p].name, std::move(raw));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto* floats = std::get_if<tensor::Tensor>(&inputs[i]);
    TRY(auto raw, floats != nullptr
                      ? tensor::encode(*floats, tensor::DType::kF64)
                      : tensor::encode(std::get<tensor::IntTensor>(inputs[i]), tensor::DType::kI64));
    tensors.emplace_back("input." + workload.inputs[i].name, std::move(raw));
  }
  return tensor::write_safetensors(path, tensors);
}

Result<ir::Workload> workload_of(const std::string& name) {
  if (!name.ends_with(".ir")) return zoo::build(name);
  TRY(const std::string text, read_file(name));
  return ir::parse(text, name);
}

// VmHWM of this program alone; what getrusage says also has the peak of the process that started it.
long peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::atol(line.c_str() + 6);
  }
  return 0;
}

Status run(const std::string& name, int64_t batch, int threads, const std::string& path) {
  TRY(const ir::Workload workload, workload_of(name));
  referee::Weights weights = referee::initial_weights(workload, 1);
  tensor::Rng rng(2);
  const referee::Inputs inputs = zoo::random_inputs(workload, batch, rng);
  CHECK_OK(write_problem(workload, weights, inputs, path));
  const ir::Optimizer rmsprop{.kind = ir::OptimizerKind::kRmsprop, .lr = 1e-4};
  referee::OptimizerState state = referee::initial_state(weights);
  for (std::string line; std::getline(std::cin, line);) {
    const int64_t start = monotonic_clock().now_ns();
    TRY(const auto e, referee::evaluate(workload, weights, inputs, {.threads = threads}));
    referee::step(rmsprop, e.gradients, state, weights);
    const int64_t elapsed = monotonic_clock().now_ns() - start;
    std::cout << fmt::format("{:.17g} {} {}", e.loss, elapsed, peak_kib()) << std::endl;
  }
  return Done{};
}

}  // namespace
}  // namespace bakeoff

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: referee_bench WORKLOAD BATCH THREADS FILE\n";
    return 2;
  }
  const auto status = bakeoff::run(argv[1], std::atoll(argv[2]), std::atoi(argv[3]), argv[4]);
  if (!status) std::cerr << status.error().text() << "\n";
  return status ? 0 : 1;
}
