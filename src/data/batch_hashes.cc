#include "data/batch_hashes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/sha256.h"
#include "base/texts.h"
#include "data/inputs.h"

namespace bakeoff {
namespace {

constexpr int64_t kMostBatches = 512;
constexpr int64_t kMostBytes = int64_t{256} << 20;
constexpr int64_t kBytesPerElement = 4;

template <typename To, typename From>
std::string hash_as(const std::vector<From>& values) {
  std::vector<To> narrow(values.size());
  std::transform(values.begin(), values.end(), narrow.begin(), [](From v) { return static_cast<To>(v); });
  return sha256({reinterpret_cast<const char*>(narrow.data()), narrow.size() * sizeof(To)});
}

// The array with the first axis of its rows last.
template <typename T>
std::vector<T> channels_last(const std::vector<T>& values, const tensor::Shape& shape) {
  const auto channels = static_cast<size_t>(shape[1]),
             places = static_cast<size_t>(ir::product(shape, 2, shape.size()));
  std::vector<T> moved(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i / (channels * places), channel = i / places % channels, place = i % places;
    moved[(row * places + place) * channels + channel] = values[i];
  }
  return moved;
}

template <typename To, typename Array>
std::string array_hash(const Array& array, AlikeRows alike) {
  if (alike == AlikeRows::kCanonical || !alike_with_channels_last(array.shape))
    return hash_as<To>(array.data);
  return hash_as<To>(channels_last(array.data, array.shape));
}

}  // namespace

bool alike_with_channels_last(const ir::Shape& shape) {
  return shape.size() > 2 &&
         std::all_of(shape.begin() + 1, shape.end(), [&](int64_t n) { return n == shape[1]; });
}

int64_t batches_to_compare(const ir::Workload& workload, const ir::Training& training, int64_t rows) {
  int64_t row_bytes = 0;
  for (const auto& shape : row_shapes(workload)) {
    int64_t elements = kBytesPerElement;
    for (const int64_t length : shape) elements *= length;
    row_bytes += elements;
  }
  const int64_t epoch = rows / training.batch;
  const int64_t affordable =
      std::max<int64_t>(1, kMostBytes / std::max<int64_t>(1, row_bytes * training.batch));
  return std::min({epoch + 2, kMostBatches, affordable});
}

std::string batch_hash(const referee::Inputs& inputs, AlikeRows alike) {
  std::vector<std::string> parts;
  for (const auto& input : inputs) {
    const auto* real = std::get_if<tensor::Tensor>(&input);
    parts.push_back(real != nullptr ? array_hash<float>(*real, alike)
                                    : array_hash<int32_t>(std::get<tensor::IntTensor>(input), alike));
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return sha256(join(parts, ""));
}

Result<std::vector<std::string>> batch_hashes(const ir::Workload& workload, const ir::Training& training,
                                              const std::filesystem::path& data, int64_t rows, int64_t count,
                                              AlikeRows alike) {
  std::vector<std::string> hashes;
  const int64_t epoch = std::max<int64_t>(1, rows / training.batch);
  for (int64_t k = 0; k < count; ++k) {
    if (k >= epoch) {
      hashes.push_back(hashes[static_cast<size_t>(k % epoch)]);
      continue;
    }
    TRY(const referee::Inputs inputs,
        read_inputs(workload, data, training.input_divisor, k * training.batch, training.batch));
    hashes.push_back(batch_hash(inputs, alike));
  }
  return hashes;
}

std::vector<std::vector<int64_t>> row_shapes(const ir::Workload& workload) {
  std::vector<std::vector<int64_t>> shapes;
  for (const ir::Input& input : workload.inputs)
    shapes.emplace_back(input.type.shape.begin() + 1, input.type.shape.end());
  return shapes;
}

}  // namespace bakeoff
