#pragma once

// Where the time of one observed run went: phases that add up to the whole.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/observed.h"

namespace bakeoff::explain {

struct Phase {
  std::string key = {};    // "imports"
  std::string title = {};  // "importing the framework"
  double seconds = 0;
  bool operator==(const Phase&) const = default;
};

struct Profile {
  std::vector<Phase> phases = {};  // in the order of time; they add up to total_s
  double total_s = 0;
  int64_t steps = 0;
  double step_s = 0;         // median step after the first three, without its wait for data
  double wait_share = 0;     // share of waiting in all steps after the first three
  double epoch_steps = 0;    // median number of steps of an epoch; 0: not seen
  double epoch_start_s = 0;  // median wait and excess of a step that begins an epoch; 0: none was seen
  // If no epochs were seen and some steps take far longer than others, as when a script evaluates now and then: the
  // steps from one long step to the next, and their seconds. 0: all steps are alike.
  double period_steps = 0, period_s = 0;
  bool operator==(const Profile&) const = default;
};

// A report of all steps since the process began, with at least two steps.
Profile profile_of(const Report& report);

// How the time of a step grows with its number.
struct StepTrend {
  double first_s = 0, last_s = 0;  // of the first and the last step, by a line through all
  double least_per_step_s = 0;     // s: each step takes at least this longer than the one before (99%)
  int64_t steps = 0;               // of an epoch, or of all
  bool of_epoch = false;           // it begins anew with each epoch
};
// Nothing unless the last step takes at least 1.5 times as long as the first. Steps that compile are left out.
std::optional<StepTrend> step_trend(const Report& report);

// The profile of a run that is compared as a whole: the import of its framework, and all else.
Profile profile_of_run(const Report& report);

}  // namespace bakeoff::explain
