#pragma once

// The record of one whole training, a line of fit.jsonl (study/training/fit.h).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/kept.h"
#include "study/training/target_trial.h"

namespace bakeoff {

struct FitTrial {
  std::string contender = {};
  int seed = 0;              // counted from 1
  std::string started = {};  // UTC
  std::optional<Failure> failure = {};
  int64_t start_up_ns = 0;             // start, import, build
  std::vector<Burst> stretches = {};   // of training, one after another: an epoch each, or part of a long one
  std::vector<HostRound> rounds = {};  // parallel to `stretches`
  // After the last step, with the steps and ns of all; `on_held` is absent where no rows are held out.
  std::optional<TargetLook> on_trained = {}, on_held = {};
  Texts effective = {};
  bool operator==(const FitTrial &) const = default;
};

template <>
struct Kept<FitTrial> {
  static constexpr const char *kFile = "fit.jsonl", *kKey = "contender";
};

}  // namespace bakeoff
