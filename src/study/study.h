#pragma once

// A study: a measurement that follows the race. The folder below src/study/ that is named after it holds all
// of it: what it records (one line of a file of its own in the run directory), how it measures, what its
// records come to, and the table that every renderer takes. One line of study/all/studies.cc makes it part of
// every run and of every report.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "plan/plan.h"
#include "proc/interrupt.h"
#include "race/sensed.h"
#include "recipe/recipe.h"
#include "records/records.h"
#include "records/trial.h"
#include "records/watch.h"
#include "table/section.h"

namespace bakeoff {

// What a study starts from, once the race is over. What it refers to outlives the study.
struct Afterwards {
  const Plan& plan;
  const std::vector<Parity>& parities;
  const std::vector<Trial>& trials;
  Sensed sensed = {};
  std::optional<double> left_s = {};  // of the recipe's budget, in seconds; empty: there is no limit in time
  // Asked before each piece of work: Ctrl-C came, or the time of a budget that includes the studies is spent.
  std::function<bool()> over = proc::interrupted;
  Progress progress = [](const std::string&) {};
  Watch watch = [](const Happening&) {};
};

// Contenders that are studied, by index into the plan's lanes: proven equal, and not thrown out of the race.
std::vector<size_t> lanes_of(const Afterwards& race);

// A contender as the report ranks it.
struct RankedContender {
  std::string contender = {};          // Contender::id
  std::string group = {};              // of precision (evidence/groups.h)
  std::optional<double> step_ms = {};  // of the race; absent: it was not timed there
};

// What the report knows when it renders the studies. What it refers to outlives it.
struct StudyContext {
  const Manifest& manifest;
  const recipe::Recipe& recipe;
  std::vector<RankedContender> contenders = {};  // ranked ones first, best first
  std::vector<std::string> ids() const;
};

// Absent where the run has no record of that study.
using StudySection = Result<std::optional<table::Section>>;

struct Study {
  const char* name;                              // its table in the recipe: "largest_batch"
  bool (*wanted)(const recipe::Recipe& recipe);  // whether the recipe asks for it
  // Measures what the recipe asks for and the records do not hold yet. Returns when all is done, or when the
  // race is over(): what was cut short leaves no record, so that a resumed run makes it. A contender that fails is a record with its reason.
  Status (*run)(const Afterwards& race);
  // The results of the records as a finished table.
  StudySection (*section)(const RunDirectory& directory, const StudyContext& context);
};

}  // namespace bakeoff
