#pragma once

// Words per second and their delays as a study: what to run, and the table that its records give.

#include <optional>
#include <string>
#include <vector>

#include "study/generation/generation_trial.h"
#include "study/study.h"

namespace bakeoff {

Study generation_study();

// A median over processes, with the least and the greatest of them.
struct AmongProcesses {
  double middle = 0, least = 0, greatest = 0;
};

struct GenerationRow {
  std::string contender = {};
  int64_t batch = 0, prompt = 0, words = 0;
  int processes = 0, answers = 0;  // measured, all processes together
  std::optional<AmongProcesses> first_ms =
      {};  // until the first word is there: the median answer of a process
  std::optional<AmongProcesses> word_ms = {};     // of a later word: the median of a process
  std::optional<AmongProcesses> slow_ms = {};     // within which 99% of the later words of a process came
  std::optional<AmongProcesses> per_second = {};  // later words of all rows in the time that they took
  int64_t compilations = 0;                       // while words were timed, in all processes
  std::string note = {};                          // why there are no figures, or fewer processes
};

// By batch and prompt, in the order of their first records; within, in the order of `contenders`. Those without a record
// have no row.
std::vector<GenerationRow> generation_rows(const std::vector<GenerationTrial>& trials,
                                           const std::vector<std::string>& contenders);

table::Section generation_section(const std::vector<GenerationRow>& rows);

}  // namespace bakeoff
