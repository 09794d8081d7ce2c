#pragma once

// A run and its place in the store: the commit it is of, and its entry in the index.

#include "records/records.h"

namespace bakeoff::cli {

// Adds the commit of the repository that this program was started in to the run's records; nothing where there is no
// repository, or no git.
void note_commit(const RunDirectory& directory);

// Adds a run to the index. What fails is a warning with its remedy: the run is complete without it.
void index_run(const std::filesystem::path& run);

}  // namespace bakeoff::cli
