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
  int64_t limit_bytes = 0;              // memory limit of its process; 0: no limit, it fills a GPU
  std::optional<Failure> failure = {};  // absent: the batch fits
  int64_t peak_bytes = 0;               // peak resident memory; on a GPU the allocator's peak; 0: unknown
  bool on_gpu = false;
  bool operator==(const LargestTrial&) const = default;
};

template <>
struct Kept<LargestTrial> {
  static constexpr const char* kFile = "largest.jsonl";
  static constexpr const char* kKey = "batch";
};

}  // namespace bakeoff
