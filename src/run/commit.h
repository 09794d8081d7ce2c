#pragma once

#include "base/progress.h"
#include "records/records.h"

namespace bakeoff::run {

// Records the commit of the git repository that the command runs in; where it runs in none, nothing. That it could not
// be recorded is told, and is no error.
void note_commit(const RunDirectory& directory, const Progress& tell);

}  // namespace bakeoff::run
