#pragma once

// The record of one training towards a target, a line of target.jsonl (study/training/target.h).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/kept.h"

namespace bakeoff {

// What the held-out rows say after so many steps.
struct TargetLook {
  int64_t steps = 0;
  int64_t ns = 0;  // of training until here, the first step with its compilation included; 0: the referee's
  double loss = 0;
  double accuracy = 0;  // share of right predictions; 0 where the workload has no classes
  bool operator==(const TargetLook&) const = default;
};

struct TargetTrial {
  std::string contender = {};  // kReferee: the referee's own
  int seed = 0;                // counted from 1
  std::string started = {};    // UTC
  std::optional<Failure> failure = {};
  int64_t start_up_ns = 0;  // start, import, build
  std::vector<TargetLook> looks = {};
  bool reached = false;                // the last look meets the target
  std::vector<HostRound> rounds = {};  // parallel to `looks`: of the training before each
  Texts effective = {};
  static constexpr const char* kReferee = "referee";
  bool operator==(const TargetTrial&) const = default;
};

template <>
struct Kept<TargetTrial> {
  static constexpr const char *kFile = "target.jsonl", *kKey = "contender";
};

}  // namespace bakeoff
