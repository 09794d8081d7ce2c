#pragma once

// A run as the exports take it: its summary and the records behind it. A run that was interrupted, or is still
// under way, is exported as far as it is.

#include <string>
#include <vector>

#include "base/result.h"
#include "records/records.h"
#include "study/training/fit_trial.h"
#include "summary/summary.h"

namespace bakeoff::exports {

struct Recorded {
  std::string run = {};  // the name of its folder
  Summary summary = {};
  std::vector<Parity> parities = {};
  std::vector<Trial> trials = {};
  std::vector<FitTrial> fits = {};
};

Result<Recorded> read_recorded(const RunDirectory& directory);

// What the run lacks, in sentences; empty: it is complete.
std::vector<std::string> unfinished(const Recorded& run);

// "compile=default;channels_last=true": in the order of the names.
std::string settings_text(const Contender& contender);

// The version of the contender's framework; empty: not known.
std::string framework_version(const Row& row);

// Ranked rows first, then the others.
std::vector<const Row*> rows_of(const Summary& summary);

}  // namespace bakeoff::exports
