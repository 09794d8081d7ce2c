#pragma once

// The record of one attempt to run some steps at one batch within a memory limit, a line of largest.jsonl
// (study/batches/largest_batch.h).

#include <cstdint>
#include <optional>
#include <string>

#include "records/kept.h"

namespace bakeoff {

struct LargestTrial {
  std::string contender = {};
  int64_t batch = 0;
  std::string started = {};             // UTC
  int64_t limit_bytes = 0;              // that its process had; 0: none of ours, it fills a GPU
  std::optional<Failure> failure = {};  // absent: it fits
  int64_t peak_bytes = 0;               // of the process's resident memory; on a GPU the allocator's; 0: none
  bool on_gpu = false;
  bool operator==(const LargestTrial &) const = default;
};

template <>
struct Kept<LargestTrial> {
  static constexpr const char *kFile = "largest.jsonl", *kKey = "batch";
};

}  // namespace bakeoff
