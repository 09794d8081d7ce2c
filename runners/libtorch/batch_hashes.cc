#include "batch_hashes.h"

#include <algorithm>

#include "base/sha256.h"

namespace bakeoff {
namespace {

std::string tensor_hash(const torch::Tensor& tensor, const std::vector<std::vector<int64_t>>& row_shapes) {
  const std::vector<int64_t> rows = tensor.sizes().slice(1).vec();
  if (std::find(row_shapes.begin(), row_shapes.end(), rows) == row_shapes.end()) {
    throw AdapterError("a batch has rows of shape " + c10::str(tensor.sizes().slice(1)) +
                       ", which the workload has not");
  }
  const auto type = tensor.is_floating_point() ? torch::kFloat32 : torch::kInt32;
  const torch::Tensor plain = tensor.detach().to(torch::kCPU, type).contiguous();
  return sha256({static_cast<const char*>(plain.data_ptr()), plain.nbytes()});
}

}  // namespace

std::string batch_hash(const std::vector<torch::Tensor>& batch,
                       const std::vector<std::vector<int64_t>>& row_shapes) {
  std::vector<std::string> parts;
  for (const torch::Tensor& tensor : batch) parts.push_back(tensor_hash(tensor, row_shapes));
  std::sort(parts.begin(), parts.end());
  std::string joined;
  for (const std::string& part : parts) joined += part;
  return sha256(joined);
}

}  // namespace bakeoff
