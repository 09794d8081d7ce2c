#pragma once

// The record of one process at one batch, a line of batches.jsonl (study/batches/batch_search.h).

#include <cstdint>

#include "records/kept.h"

namespace bakeoff {

struct BatchTrial {
  int64_t batch = 0;
  Trial trial = {};  // trial.heat is the number of the process, from 1
  bool operator==(const BatchTrial&) const = default;
};

template <>
struct Kept<BatchTrial> {
  static constexpr const char* kFile = "batches.jsonl";
  static constexpr const char* kKey = "batch";
};

}  // namespace bakeoff
