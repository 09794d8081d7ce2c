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
  int64_t start_up_ns = 0;             // process start, import and build together
  std::vector<Burst> stretches = {};   // the training in order: one epoch each, or a part of a long epoch
  std::vector<HostRound> rounds = {};  // parallel to `stretches`
  // Evaluated after the last step, with the steps and ns of the whole training; `on_held` is absent if no
  // rows are held out.
  std::optional<TargetLook> on_trained = {}, on_held = {};
  // With fit.patience: the rows held out after each epoch, and the epoch after which the training ended early; 0:
  // it did not.
  std::vector<TargetLook> watched = {};
  int64_t stopped = 0;
  Texts effective = {};
  bool operator==(const FitTrial&) const = default;
};

template <>
struct Kept<FitTrial> {
  static constexpr const char* kFile = "fit.jsonl";
  static constexpr const char* kKey = "contender";
};

}  // namespace bakeoff
