#pragma once

// What the formats of own_data.h give.

#include <map>
#include <string>
#include <vector>

#include "tensor/safetensors.h"

namespace bakeoff {

struct OwnData {
  std::vector<tensor::TensorSource> tensors = {};  // one for each input of the workload, with its name
  std::map<std::string, std::string> titles = {};  // by input, for errors: "'data.npz': array 'x'"
  tensor::Metadata metadata = {};                  // what the numbers mean: "classes of y" as a JSON list
};

}  // namespace bakeoff
