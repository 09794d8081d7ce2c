// Records of both searches for a batch as JSON.

#include "records/record_json.h"
#include "study/batches/batch_trial.h"
#include "study/batches/largest_trial.h"

namespace bakeoff {

BAKEOFF_RECORD(BatchTrial, batch, trial)
BAKEOFF_RECORD(LargestTrial, contender, batch, started, limit_bytes, failure, peak_bytes, on_gpu)

static Status check(const BatchTrial& batch, const std::string& where) { return check(batch.trial, where); }

BAKEOFF_KEPT(BatchTrial)
BAKEOFF_KEPT(LargestTrial)

}  // namespace bakeoff
