#include "study/latency/latency_trial.h"

#include "records/record_json.h"

namespace bakeoff {

BAKEOFF_RECORD(LatencyTrial, contender, round, rate, started, failure, arrival_ns, start_ns, end_ns, ns,
               elapsed_ns, step_ms, host, effective)
BAKEOFF_KEPT(LatencyTrial)

}  // namespace bakeoff
