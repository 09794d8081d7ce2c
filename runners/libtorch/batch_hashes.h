#pragma once

// What a program's pipeline delivers, and how long its loop waits for it.

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "worker.h"

namespace bakeoff {

// SHA-256 of one batch, the same in every framework: each tensor as float32 or int32, little-endian and
// row-major; the sorted hashes of the tensors, joined, hashed again; in hex. Throws AdapterError where the
// rows of a tensor have none of the shapes.
std::string batch_hash(const std::vector<torch::Tensor>& batch,
                       const std::vector<std::vector<int64_t>>& row_shapes);

// Notes waits; the first batch of each epoch, of `per_epoch` each, apart.
class WaitClock {
 public:
  void restart(int64_t per_epoch) { *this = {}, per_epoch_ = per_epoch; }
  void came(int64_t ns) {
    const bool first = seen_++ % per_epoch_ == 0;
    (first ? wait_.firsts : wait_.batches) += 1;
    (first ? wait_.first_ns : wait_.ns) += ns;
  }
  // What came together since the last call.
  BatchWait take() { return std::exchange(wait_, {}); }

 private:
  int64_t per_epoch_ = 1, seen_ = 0;
  BatchWait wait_;
};

}  // namespace bakeoff
