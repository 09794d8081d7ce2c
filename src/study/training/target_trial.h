#pragma once

// The record of one training towards a target, a line of target.jsonl (study/training/target.h).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/kept.h"

namespace bakeoff {

// One evaluation of the held-out rows.
struct TargetLook {
  int64_t steps = 0;  // steps done until then
  int64_t ns = 0;     // training time until then, first step and compilation included; 0 for the referee
  double loss = 0;
  double accuracy = 0;  // share of right predictions; 0 if the workload has no classes
  bool operator==(const TargetLook&) const = default;
};

struct TargetTrial {
  std::string contender = {};  // kReferee: the training of the referee itself
  int seed = 0;                // counted from 1
  std::string started = {};    // UTC
  std::optional<Failure> failure = {};
  int64_t start_up_ns = 0;  // process start, import and build together
  std::vector<TargetLook> looks = {};
  bool reached = false;                // the last look meets the target
  std::vector<HostRound> rounds = {};  // parallel to `looks`: the host during the training before each look
  Texts effective = {};
  static constexpr const char* kReferee = "referee";
  bool operator==(const TargetTrial&) const = default;
};

template <>
struct Kept<TargetTrial> {
  static constexpr const char* kFile = "target.jsonl";
  static constexpr const char* kKey = "contender";
};

}  // namespace bakeoff
