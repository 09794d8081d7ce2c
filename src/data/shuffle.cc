#include "data/shuffle.h"

#include <numeric>
#include <vector>

#include "tensor/rng.h"
#include "tensor/safetensors.h"

namespace bakeoff {

Status write_shuffled(const std::filesystem::path& from, const std::filesystem::path& to, uint64_t seed) {
  TRY(const auto file, tensor::SafetensorsFile::open(from));
  tensor::NamedTensors permuted;
  std::vector<size_t> order;
  for (const auto& entry : file.entries()) {
    const auto rows = static_cast<size_t>(entry.shape.empty() ? 0 : entry.shape[0]);
    if (order.empty()) {
      order.resize(rows);
      std::iota(order.begin(), order.end(), size_t{0});
      tensor::Rng rng(seed);
      tensor::shuffle(order, rng);
    }
    if (rows != order.size())
      return Error{.message = "tensors with different numbers of rows have no common order",
                   .where = from.string()};
    TRY(const std::string_view bytes, file.bytes(entry.name));
    const size_t width = rows == 0 ? 0 : bytes.size() / rows;
    tensor::RawTensor out{.dtype = entry.dtype, .shape = entry.shape, .bytes = {}};
    out.bytes.reserve(bytes.size());
    for (const size_t row : order) out.bytes += bytes.substr(row * width, width);
    permuted.emplace_back(entry.name, std::move(out));
  }
  return tensor::write_safetensors(to, permuted, file.metadata());
}

}  // namespace bakeoff
