#include "fleet/records.h"

#include "records/record_json.h"

namespace bakeoff {

// Defined by the rooms that own them.
void to_json(RecordJson& j, const MachineReport&);
void from_json(const RecordJson& j, MachineReport&);
void to_json(RecordJson& j, const HeatResult&);
void from_json(const RecordJson& j, HeatResult&);

namespace fleet {

BAKEOFF_RECORD(Settings, version, engine, hosts, ssh, partition, account, sbatch, exclusive, wave, most,
               block_minutes, tries, out_of_line, program, home, config)
BAKEOFF_RECORD(Job, number, blocks, minutes, submitted, ids, cancelled)
BAKEOFF_RECORD(Node, name, host, where, shared, clock_ghz, speed, noise, peak)
BAKEOFF_RECORD(BlockResult, block, attempt, given_up, node, heat)
BAKEOFF_RECORD(FailedAttempt, block, node, reason, contenders)

std::string to_json(const Settings& settings) { return dump(RecordJson(settings), 1) + "\n"; }
std::string to_json(const Job& job) { return dump(RecordJson(job)) + "\n"; }
std::string to_json(const BlockResult& result) { return dump(RecordJson(result)) + "\n"; }
std::string to_json(const FailedAttempt& attempt) { return dump(RecordJson(attempt)) + "\n"; }

Result<Settings> settings_from_json(std::string_view text, const std::string& where) {
  return record_from<Settings>(text, where, "engine");
}
Result<Job> job_from_json(std::string_view text, const std::string& where) {
  return record_from<Job>(text, where, "blocks");
}
Result<BlockResult> block_result_from_json(std::string_view text, const std::string& where) {
  TRY(BlockResult result, record_from<BlockResult>(text, where, "heat"));
  for (const Trial& trial : result.heat.trials) CHECK_OK(check(trial, where));
  return result;
}
Result<FailedAttempt> failed_attempt_from_json(std::string_view text, const std::string& where) {
  return record_from<FailedAttempt>(text, where, "reason");
}

}  // namespace fleet
}  // namespace bakeoff
