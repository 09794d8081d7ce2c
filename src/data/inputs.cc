#include "data/inputs.h"

#include <fmt/format.h>

#include "tensor/safetensors.h"

namespace bakeoff {

Result<referee::Inputs> read_inputs(const ir::Workload& workload, const std::filesystem::path& data,
                                    double divisor, int64_t first, int64_t count) {
  TRY(const auto file, tensor::SafetensorsFile::open(data));
  referee::Inputs inputs;
  for (const ir::Input& input : workload.inputs) {
    if (input.type.dtype == ir::DType::kI32) {
      TRY(tensor::IntTensor rows, file.read_int_rows(input.name, first, count));
      inputs.emplace_back(std::move(rows));
      continue;
    }
    TRY(tensor::Tensor rows, file.read_rows(input.name, first, count));
    for (double& value : rows.data) {
      const float raw = static_cast<float>(value);
      value = divisor == 1.0 ? raw : raw / static_cast<float>(divisor);
    }
    inputs.emplace_back(std::move(rows));
  }
  return inputs;
}

Result<std::vector<referee::Inputs>> read_batches(const ir::Workload& workload, const ir::Training& training,
                                                  const std::filesystem::path& data, int64_t rows,
                                                  int64_t steps) {
  const int64_t whole = rows / training.batch;
  if (whole < 1) {
    return Error{.message = fmt::format("{} rows do not fill a batch of {}", rows, training.batch),
                 .where = data.string(),
                 .remedy = fmt::format("set batch to at most {}", rows)};
  }
  std::vector<referee::Inputs> batches;
  for (int64_t step = 0; step < steps; ++step) {
    TRY(referee::Inputs inputs,
        read_inputs(workload, data, training.input_divisor, step % whole * training.batch, training.batch));
    batches.push_back(std::move(inputs));
  }
  return batches;
}

Status copy_rows(const std::filesystem::path& data, int64_t count, int64_t distinct,
                 const std::filesystem::path& file) {
  TRY(const auto from, tensor::SafetensorsFile::open(data));
  tensor::NamedTensors named;
  for (const auto& entry : from.entries()) {
    TRY(const auto bytes, from.bytes(entry.name));
    if (entry.shape.empty() || entry.shape[0] < 1) continue;
    const size_t size = bytes.size() / static_cast<size_t>(entry.shape[0]);
    tensor::RawTensor raw{.dtype = entry.dtype, .shape = entry.shape, .bytes = {}};
    raw.shape[0] = count;
    for (int64_t row = 0; row < count; ++row)
      raw.bytes += bytes.substr(static_cast<size_t>(row % distinct) * size, size);
    named.emplace_back(entry.name, std::move(raw));
  }
  return tensor::write_safetensors(file, named);
}

}  // namespace bakeoff
