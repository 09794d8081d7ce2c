#pragma once

// Safetensors files as maps of torch tensors: 8 bytes with the length of a JSON header, the header
// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}, then the data, row-major and
// little-endian. On the CPU, contiguous. Everything throws AdapterError, naming file and tensor.

#include <torch/torch.h>

#include <map>
#include <string>

namespace bakeoff {

using Tensors = std::map<std::string, torch::Tensor>;

Tensors read_safetensors(const std::string& path);
// The file appears under its name only when it is complete.
void write_safetensors(const std::string& path, const Tensors& tensors);

}  // namespace bakeoff
