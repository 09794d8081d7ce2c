#include "study/generation/generation_trial.h"

#include "records/record_json.h"

namespace bakeoff {

BAKEOFF_RECORD(GenerationTrial, contender, round, started, batch, prompt, words, failure, start_ns, end_ns,
               compilations, host)
BAKEOFF_KEPT(GenerationTrial)

}  // namespace bakeoff
