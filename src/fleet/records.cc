#include "fleet/records.h"

#include "records/record_json.h"

namespace bakeoff {

// Defined by the room that owns it.
void to_json(RecordJson& j, const MachineReport&);
void from_json(const RecordJson& j, MachineReport&);

namespace fleet {

BAKEOFF_RECORD(Settings, version, engine, hosts, ssh, partition, account, sbatch, exclusive, wave, most,
               block_minutes, tries, out_of_line, program, home, config)
BAKEOFF_RECORD(Job, number, blocks, minutes, submitted, ids, cancelled)
BAKEOFF_RECORD(Node, name, host, where, shared, clock_ghz, speed, noise, peak)
void to_json(RecordJson& j, const BlockResult& v) {
  BAKEOFF_WRITE(block)
  BAKEOFF_WRITE(attempt)
  BAKEOFF_WRITE(race)
  BAKEOFF_WRITE(given_up)
  BAKEOFF_WRITE(node)
  BAKEOFF_WRITE(bytes)
}
void from_json(const RecordJson& j, BlockResult& v){
    BAKEOFF_READ(block) BAKEOFF_READ(attempt) BAKEOFF_READ(race) BAKEOFF_READ(given_up) BAKEOFF_READ(node)
        BAKEOFF_READ(bytes)} BAKEOFF_RECORD(FailedAttempt, block, job, node, reason, contenders)
    BAKEOFF_RECORD(Check, node, contender, differs)

        std::string to_json(const Settings& settings) {
  return dump(RecordJson(settings), 1) + "\n";
}
std::string to_json(const Job& job) { return dump(RecordJson(job)) + "\n"; }
std::string to_json(const BlockResult& result) { return dump(RecordJson(result)) + "\n" + result.trials; }
std::string to_json(const FailedAttempt& attempt) { return dump(RecordJson(attempt)) + "\n"; }
std::string to_json(const Check& check) { return dump(RecordJson(check)) + "\n"; }

Result<Settings> settings_from_json(std::string_view text, const std::string& where) {
  return record_from<Settings>(text, where, "engine");
}
Result<Job> job_from_json(std::string_view text, const std::string& where) {
  return record_from<Job>(text, where, "blocks");
}
Result<BlockResult> block_result_from_json(std::string_view text, const std::string& where) {
  const size_t end = text.find('\n');
  TRY(BlockResult result, record_from<BlockResult>(text.substr(0, end), where, "bytes"));
  result.trials = end == std::string_view::npos ? "" : text.substr(end + 1);
  if (static_cast<int64_t>(result.trials.size()) != result.bytes ||
      (!result.trials.empty() && result.trials.back() != '\n'))
    return Error{.message = "not all of it was written", .where = where};
  return result;
}
Result<FailedAttempt> failed_attempt_from_json(std::string_view text, const std::string& where) {
  return record_from<FailedAttempt>(text, where, "reason");
}
Result<Check> check_from_json(std::string_view text, const std::string& where) {
  return record_from<Check>(text, where, "contender");
}

}  // namespace fleet
}  // namespace bakeoff
