#include "parity/proof_dropout.h"

#include <cmath>
#include <string>

#include "base/files.h"
#include "reference/dropout.h"
#include "tensor/safetensors.h"

namespace bakeoff {

void prove_dropout(Worker& worker, const GateJob& job, const Reference& reference,
                   const ContenderStart& contender, Parity& parity) {
  const DropoutReference& r = reference.dropout;
  if (r.data.empty()) return;
  const fs::path out = job.folder / (contender.script.stem().string() + ".dropout.safetensors");
  Texts ignored;
  worker.build({.script = contender.script,
                .weights = reference.weights_file,
                .data = r.data,
                .layout = contender.layout},
               ignored);
  const auto take = [&](int64_t count) -> Result<DropoutStep> {
    if (!worker.parity(0, count, {}, out)) return Error{worker.failure()->reason};
    TRY(const auto file, tensor::SafetensorsFile::open(out));
    std::error_code code;
    fs::remove(out, code);  // what is open stays readable
    const auto get = [&](const std::string& name) -> tensor::Tensor {
      auto read = file.read(name);
      return read ? std::move(*read) : tensor::Tensor{};
    };
    const tensor::Tensor loss = get("loss");
    DropoutStep step{.prediction = get("output"), .loss = loss.data.empty() ? std::nan("") : loss.data[0]};
    step.gradients.resize(job.workload.parameters.size());
    step.statistics.resize(job.workload.parameters.size());
    for (size_t p = 0; p < step.gradients.size(); ++p) {
      const ir::Parameter& parameter = job.workload.parameters[p];
      (ir::trainable(parameter) ? step.gradients : step.statistics)[p] =
          get((ir::trainable(parameter) ? "grad/" : "buffer/") + parameter.name);
    }
    return step;
  };
  std::string explanation;
  const auto check = compare_dropout(job, r, take, contender.unbiased_running_var, explanation);
  if (!check) {
    parity.failure = worker.failure() ? worker.failure() : Failure{Stage::kParity, check.error().message, {}};
    return;
  }
  parity.checks.push_back(*check);
  if (check->passed || !parity.diverges_at.empty()) return;
  parity.diverges_at = check->tensor;
  parity.divergence = check->error;
  if (parity.explanation.empty()) parity.explanation = explanation;
}

}  // namespace bakeoff
