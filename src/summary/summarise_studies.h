#pragma once

// What the studies found, each from its own records (study/all/studies.h).

#include "base/result.h"
#include "records/records.h"
#include "summary/summary.h"

namespace bakeoff {

// Into a summary whose rows stand: a section of each study that has records. Remarks are added to its notes;
// a published table is compared with whole trainings instead of step times where there are any.
Status add_studies(const RunDirectory& directory, Summary& summary);

}  // namespace bakeoff
