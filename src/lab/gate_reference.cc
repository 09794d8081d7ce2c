// What the gate holds everybody against: the referee's own numbers, and the files that contenders start from.

#include <algorithm>

#include "base/files.h"
#include "lab/batch_hashes.h"
#include "lab/gate.h"
#include "lab/inputs.h"
#include "referee/init.h"
#include "referee/optimizer.h"
#include "referee/train.h"
#include "tensor/safetensors.h"

namespace bakeoff::lab {
namespace {

using tensor::Tensor;

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

// Writes in float32 and reads back: everybody starts from the same rounded numbers.
Result<referee::Weights> rounded(const ir::Workload& workload, const referee::Weights& weights,
                                 const fs::path& file) {
  CHECK_OK(write_parameters(workload, weights, tensor::DType::kF32, false, file));
  TRY(const auto stored, tensor::SafetensorsFile::open(file));
  referee::Weights back;
  for (const ir::Parameter& p : workload.parameters) {
    TRY(Tensor one, stored.read(p.name));
    back.push_back(std::move(one));
  }
  return back;
}

}  // namespace

Result<referee::Weights> write_initial_weights(const ir::Workload& workload, uint64_t seed,
                                               const fs::path& file) {
  return rounded(workload, referee::initial_weights(workload, seed), file);
}

Result<Reference> make_reference(const GateJob& job) {
  Reference r;
  r.weights_file = job.folder / "gate_weights.safetensors";
  r.gradients_file = job.folder / "gate_gradients.safetensors";
  r.initial_file = job.folder / "gate_initial.safetensors";
  TRY(const referee::Weights initial, write_initial_weights(job.workload, job.training.seed, r.initial_file));
  TRY(r.weights,
      rounded(job.workload, referee::perturbed(job.workload, initial, job.training.seed), r.weights_file));
  TRY(const auto batches,
      read_batches(job.workload, job.training, job.data, job.rows, std::max(job.steps, kSteps64)));
  r.batch = batches[0];
  const bool predicts = job.training.predicts();
  TRY(r.at, referee::evaluate(job.workload, r.weights, r.batch,
                              {.train = !predicts, .gradients = !predicts, .activations = true}));
  if (predicts) {
    TRY(auto at32, referee::evaluate(job.workload, initial, r.batch, {.train = false, .gradients = false}));
    r.prediction32 = std::move(at32.prediction);
    return r;
  }
  CHECK_OK(write_parameters(job.workload, r.at.gradients, tensor::DType::kF64, true, r.gradients_file));
  r.updated = r.weights;
  auto state = referee::initial_state(r.weights);
  referee::step(job.training.optimizer, r.at.gradients, state, r.updated);
  if (job.training.track == ir::Track::kAsIs) return r;
  const std::span<const referee::Inputs> all(batches);
  TRY(auto run64, referee::train(job.workload, job.training.optimizer, r.weights, all.first(kSteps64)));
  r.losses64 = std::move(run64.losses);
  TRY(auto run32, referee::train(job.workload, job.training.optimizer, initial,
                                 all.first(static_cast<size_t>(job.steps))));
  r.losses32 = std::move(run32.losses);
  TRY(r.batches, batch_hashes(job.workload, job.training, job.data, job.rows,
                              batches_to_compare(job.workload, job.training, job.rows)));
  return r;
}

}  // namespace bakeoff::lab
