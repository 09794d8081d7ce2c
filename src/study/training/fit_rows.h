#pragma once

// Results of recorded whole trainings. Pure functions of the records.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "study/study.h"
#include "study/training/fit_trial.h"

namespace bakeoff {

// Least, middle and greatest over the seeds; all the same where there is one.
struct SeedRange {
  double least = 0, median = 0, most = 0;
  bool operator==(const SeedRange&) const = default;
};

struct FitRow {
  std::string contender = {};
  std::string group = {};  // of precision (evidence/groups.h)
  int seeds = 0;           // trainings that ended well; 0: all below is empty
  SeedRange seconds = {};  // of exactly the epochs asked for, the first step with its compilation included
  std::optional<SeedRange> epochs = {};  // trained, where fit.patience may end a training early
  double epoch_s = 0;                    // the median epoch
  double start_up_s = 0;                 // on top of `seconds`
  std::optional<double> wait_s = {};     // of `seconds`: the loop waited for batches; absent: it cannot tell
  std::optional<double> over_steps =
      {};                              // `seconds` over the race's step time x steps; absent: not timed there
  std::optional<SeedRange> loss = {};  // of rows that were trained on; absent: it was NaN
  std::optional<SeedRange> held_loss = {};  // of the rows held out
  std::optional<SeedRange> accuracy = {};   // of the rows held out, else of those trained on; a share
  bool outlier = false;                     // its loss is further from its group's than kLossTolerance allows
  std::string note = {};
  bool operator==(const FitRow&) const = default;
};

// What the rows of a run are about.
struct FitFacts {
  std::string text = {};  // "41 epochs of 60,000 rows"
  int64_t epochs = 0, seeds = 0;
  int64_t held = 0;      // rows held out, which accuracy is of; 0: none
  int64_t trained = 0;   // of the others, whose loss is stated
  double tolerance = 0;  // for the loss of equal work, a share
  bool operator==(const FitFacts&) const = default;
};

struct FitScale {
  int64_t rows = 0;  // of an epoch
  int64_t batch = 1;
  double untrained_loss = 0;  // of the first batch; 0: not known
  bool as_is = false;
};

// Contenders that are proven equal train from the same weights on the same batches, yet in float32 their sums
// part by rounding, and dropout draws from other generators: they end with about the same loss. More than
// this share of the group's median, and than kLossFloor of the untrained loss, is said. In the as-is track
// weights and order are each framework's own, and its own defaults take part.
inline constexpr double kLossTolerance = 0.10, kLossToleranceAsIs = 0.25, kLossFloor = 0.01;

// Contenders without any record are left out.
std::vector<FitRow> fit_rows(const std::vector<FitTrial>& trials,
                             const std::vector<RankedContender>& contenders, const recipe::Fit& asked,
                             const FitScale& scale);

}  // namespace bakeoff
