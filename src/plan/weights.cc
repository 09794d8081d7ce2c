#include "plan/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/nearest.h"
#include "referee/init.h"

namespace bakeoff {

Status write_parameters(const ir::Workload& workload, const referee::Weights& weights, tensor::DType dtype,
                        bool trainable_only, const fs::path& file) {
  tensor::NamedTensors named;
  for (size_t id = 0; id < weights.size(); ++id) {
    const ir::Parameter& p = workload.parameters[id];
    if (trainable_only && !ir::trainable(p)) continue;
    const bool table = dtype == tensor::DType::kF32 && !p.values.empty();
    TRY(auto raw, tensor::encode(weights[id], table ? referee::held_as(p, weights[id]) : dtype));
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

namespace {

// The parameters from a file of the user's own, where a prediction may need a part of them. What the workload itself
// gives initial values to (LoRA's matrices) may be missing: it is drawn.
Result<referee::Weights> read_given(const ir::Workload& workload, uint64_t seed, const fs::path& given,
                                    bool part) {
  TRY(const auto file, tensor::SafetensorsFile::open(given));
  const auto wrong = [&](const std::string& what, const std::string& remedy) {
    return Error{.message = what, .where = given.string(), .remedy = remedy};
  };
  std::vector<std::string> names;
  for (const ir::Parameter& p : workload.parameters) names.push_back(p.name);
  for (const auto& entry : file.entries()) {
    if (part || workload.find_parameter(entry.name) >= 0) continue;
    return wrong(fmt::format("tensor '{}' is no parameter of the workload '{}'", entry.name, workload.name),
                 suggest(entry.name, names));
  }
  referee::Weights weights;
  for (const ir::Parameter& p : workload.parameters) {
    const auto* entry = file.find(p.name);
    if (entry == nullptr && p.init) {
      weights.push_back(referee::initial_value(p, seed));
      continue;
    }
    if (entry == nullptr)
      return wrong(fmt::format("the parameter '{}' is missing", p.name),
                   "the file needs every parameter of the workload, running statistics included");
    if (entry->shape != p.shape)
      return wrong(fmt::format("'{}' has the shape {}, the workload needs {}", p.name,
                               tensor::to_text(entry->shape), tensor::to_text(p.shape)),
                   "names and shapes must be those that `bakeoff show` prints");
    TRY(tensor::Tensor one, file.read(p.name));
    const auto bad = std::find_if(one.data.begin(), one.data.end(),
                                  [](double x) { return !std::isfinite(static_cast<float>(x)); });
    if (bad != one.data.end())
      return wrong(fmt::format("'{}' holds {} at element {}", p.name, *bad, bad - one.data.begin()),
                   "weights must be finite in float32");
    weights.push_back(std::move(one));
  }
  return weights;
}

}  // namespace

Result<referee::Weights> write_initial_weights(const ir::Workload& workload, uint64_t seed,
                                               const fs::path& given, const fs::path& file, bool part) {
  if (given.empty()) return rounded(workload, referee::initial_weights(workload, seed), file);
  TRY(const auto weights, read_given(workload, seed, given, part));
  return rounded(workload, weights, file);
}

}  // namespace bakeoff
