#include "study/scaling/scaling_trial.h"

#include "records/record_json.h"

namespace bakeoff {

BAKEOFF_RECORD(ScalingTrial, contender, heat, devices, batch, one, strong, weak, silent)

static Status check(const ScalingTrial& record, const std::string& where) {
  for (const auto* trial : {&record.one, &record.strong, &record.weak, &record.silent})
    if (*trial) CHECK_OK(check(**trial, where));
  return Done{};
}

BAKEOFF_KEPT(ScalingTrial)

}  // namespace bakeoff
