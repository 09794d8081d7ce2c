#include "race/heat_order.h"

#include "records/record_json.h"

namespace bakeoff {

BAKEOFF_RECORD(HeatPlan, rounds, burst_s, far_behind)
BAKEOFF_RECORD(HeatOrder, number, members, at_once, plan, left_s, start_s, bases_first, confirms,
               leader_step_s, timed, audited, race_s, audits_s)
BAKEOFF_RECORD(HeatResult, trials, audits_s)

std::string to_json(const HeatOrder& order) { return dump(RecordJson(order)); }
std::string to_json(const HeatResult& result) { return dump(RecordJson(result)); }

Result<HeatOrder> heat_order_from_json(std::string_view text, const std::string& where) {
  return record_from<HeatOrder>(text, where, "members");
}

Result<HeatResult> heat_result_from_json(std::string_view text, const std::string& where) {
  TRY(HeatResult result, record_from<HeatResult>(text, where, "trials"));
  for (const Trial& trial : result.trials) CHECK_OK(check(trial, where));
  return result;
}

}  // namespace bakeoff
