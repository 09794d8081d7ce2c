#pragma once

// Export to tools whose files only their own client writes: W&B, MLflow. A Python that has the client runs
// python/bakeoff/_trackers.py, which is inside the program.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "exports/series.h"

namespace bakeoff::exports {

enum class Tracker { kWandb, kMlflow };

struct TrackerExport {
  Tracker tracker = Tracker::kWandb;
  std::filesystem::path python = {};  // empty: the one beside this program, else python3 of PATH
  // W&B: the folder that gets wandb/offline-run-...; MLflow: the SQLite file, which is made or added to.
  std::filesystem::path out = {};
};

// The lines that say what was made. Error: there is no such client (with the line of pip that installs it), or it
// failed; then, and after Ctrl-C, nothing is left behind.
Result<std::vector<std::string>> export_to_tracker(const Experiment& experiment, const TrackerExport& what);

}  // namespace bakeoff::exports
