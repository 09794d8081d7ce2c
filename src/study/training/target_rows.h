#pragma once

// Results of recorded trainings towards a target, over seeds. Pure functions of the records.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "stats/interval.h"
#include "study/training/target_trial.h"

namespace bakeoff {

// A geometric mean over the seeds with its interval.
struct OverSeeds {
  double value = 0;
  stats::Interval interval = {};  // infinite of fewer than two seeds
  bool operator==(const OverSeeds&) const = default;
};

// Against the referee's own optimizer, from the same weights and on the same batches.
enum class Convergence {
  kNotCompared,
  kWithinChance,  // nothing says that it needs more steps
  kWorse,         // it needs more steps than chance explains
};

struct TargetRow {
  std::string contender = {};
  int seeds = 0;    // trainings that did not fail
  int reached = 0;  // of them
  // Of the seeds that reached it, if all did.
  std::optional<OverSeeds> steps = {}, epochs = {}, seconds = {};
  double start_up_s = 0;                    // median, on top of `seconds`
  double best_loss = 0, best_accuracy = 0;  // median of the last looks
  Convergence convergence = Convergence::kNotCompared;
  double p = 1;      // of this number of steps or more, if it is no worse than the referee
  double ratio = 0;  // of its steps to the referee's, geometric mean; 0: not compared
  std::string note = {};
  bool is_referee() const { return contender == TargetTrial::kReferee; }
  bool operator==(const TargetRow&) const = default;
};

// The referee's first, then the order of `ids`. `rows` of an epoch and `batch` make epochs of steps; `level`
// of every interval on its own; a contender is worse where p is at most `alpha` over the number of
// contenders.
std::vector<TargetRow> target_rows(const std::vector<TargetTrial>& trials,
                                   const std::vector<std::string>& ids, const recipe::Target& asked,
                                   int64_t rows, int64_t batch, double alpha);

// What a reader must know of all rows: seeds that the budget left out, trainings that the host disturbed.
std::vector<std::string> target_notes(const std::vector<TargetTrial>& trials, const recipe::Recipe& recipe);

}  // namespace bakeoff
