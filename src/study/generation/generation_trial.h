#pragma once

// The record of answers that were generated, a line of generation.jsonl.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/kept.h"

namespace bakeoff {

// One process, word by word: each word of an answer, of all rows of a batch, was complete before the next one was asked
// for. Times are ns since it began; the first of each `words` includes the prompt.
struct GenerationTrial {
  std::string contender = {};
  int round = 0;             // counted from 1
  std::string started = {};  // UTC
  int64_t batch = 0, prompt = 0, words = 0;
  std::optional<Failure> failure = {};              // absent: ok
  std::vector<int64_t> start_ns = {}, end_ns = {};  // of each word
  int64_t compilations = 0;                         // of functions, while the words were timed
  HostRound host = {};
  bool operator==(const GenerationTrial&) const = default;
};

template <>
struct Kept<GenerationTrial> {
  static constexpr const char* kFile = "generation.jsonl";
  static constexpr const char* kKey = "contender";
};

}  // namespace bakeoff
