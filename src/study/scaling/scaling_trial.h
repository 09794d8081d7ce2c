#pragma once

// The record of one heat in which a contender on several devices is held against the same on one, a line of
// scaling.jsonl (study/scaling/scaling.h).

#include <cstdint>
#include <optional>
#include <string>

#include "records/kept.h"

namespace bakeoff {

// The members of the heat; each is absent where it was not started, or the heat was cut short.
struct ScalingTrial {
  std::string contender = {};
  int heat = 0;                      // counted from 1
  int64_t devices = 0, batch = 0;    // the recipe's batch, in rows
  std::optional<Trial> one = {};     // one device with the processors of one, the whole batch
  std::optional<Trial> strong = {};  // all devices share the batch
  std::optional<Trial> weak = {};    // each device has the whole batch: `devices` times as many rows
  std::optional<Trial> silent = {};  // as `strong`, but no device exchanges anything with another
  bool operator==(const ScalingTrial&) const = default;
};

// Nothing can be held against one that has failed.
inline bool has_failed(const ScalingTrial& record) { return record.strong && record.strong->failure; }

template <>
struct Kept<ScalingTrial> {
  static constexpr const char* kFile = "scaling.jsonl";
  static constexpr const char* kKey = "contender";
};

}  // namespace bakeoff
