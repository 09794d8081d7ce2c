#pragma once

// What was measured beside the race, from its own records: latencies, whole trainings, trainings to a target,
// the search for a batch and for the largest.

#include "base/result.h"
#include "records/records.h"
#include "summary/summary.h"

namespace bakeoff {

// Into a summary whose rows stand. Notes are added to its own; whole trainings take the place of step times
// beside a published table.
Status add_beside(const RunDirectory& directory, Summary& summary);

}  // namespace bakeoff
