// Records of both kinds of trainings as JSON.

#include "records/record_json.h"
#include "study/training/fit_trial.h"
#include "study/training/target_trial.h"

namespace bakeoff {

BAKEOFF_RECORD(TargetLook, steps, ns, loss, accuracy)
BAKEOFF_RECORD(TargetTrial, contender, seed, started, failure, start_up_ns, looks, reached, rounds, effective)
BAKEOFF_RECORD(FitTrial, contender, seed, started, failure, start_up_ns, stretches, rounds, on_trained,
               on_held, effective, watched, stopped)
BAKEOFF_KEPT(TargetTrial)
BAKEOFF_KEPT(FitTrial)

}  // namespace bakeoff
