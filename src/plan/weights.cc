#include "plan/weights.h"

#include "base/files.h"
#include "referee/init.h"

namespace bakeoff {

Status write_parameters(const ir::Workload& workload, const referee::Weights& weights, tensor::DType dtype,
                        bool trainable_only, const fs::path& file) {
  tensor::NamedTensors named;
  for (size_t id = 0; id < weights.size(); ++id) {
    const ir::Parameter& p = workload.parameters[id];
    if (trainable_only && !ir::trainable(p)) continue;
    TRY(auto raw, tensor::encode(weights[id], dtype));
    named.emplace_back(p.name, std::move(raw));
  }
  return tensor::write_safetensors(file, named);
}

Result<referee::Weights> rounded(const ir::Workload& workload, const referee::Weights& weights,
                                 const fs::path& file) {
  CHECK_OK(write_parameters(workload, weights, tensor::DType::kF32, false, file));
  TRY(const auto stored, tensor::SafetensorsFile::open(file));
  referee::Weights back;
  for (const ir::Parameter& p : workload.parameters) {
    TRY(tensor::Tensor one, stored.read(p.name));
    back.push_back(std::move(one));
  }
  return back;
}

Result<referee::Weights> write_initial_weights(const ir::Workload& workload, uint64_t seed,
                                               const fs::path& file) {
  return rounded(workload, referee::initial_weights(workload, seed), file);
}

}  // namespace bakeoff
