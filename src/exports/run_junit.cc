#include "exports/run_junit.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/phrases.h"
#include "table/text.h"

namespace bakeoff::exports {
namespace {

using table::JunitCase;
using table::JunitOutcome;

// Measured training time, of what counts.
double timed_seconds(const Recorded& run, const std::string& id) {
  int64_t ns = 0;
  for (const Trial& trial : run.trials) {
    if (trial.contender != id) continue;
    for (const Burst& burst : trial.bursts) ns += burst.counted_ns();
  }
  return static_cast<double>(ns) / 1e9;
}

bool broke_a_rule(const Recorded& run, const std::string& id) {
  return std::ranges::any_of(run.trials, [&](const Trial& t) { return t.contender == id && t.invalid; });
}

JunitOutcome outcome_of(const Recorded& run, const Row& row) {
  if (row.parity == ParityState::kFailed || broke_a_rule(run, row.contender.id)) return JunitOutcome::kFailed;
  const Stage stage = row.failure ? row.failure->stage : Stage::kOther;
  const bool had_no_turn = stage == Stage::kRun && row.heats == 0 && row.failure->log_tail.empty();
  return stage == Stage::kEnvironment || had_no_turn ? JunitOutcome::kSkipped : JunitOutcome::kError;
}

std::string parity_details(const Row& row) {
  std::string out;
  if (!row.proof) return out;
  for (const ParityCheck& check : row.proof->checks) {
    if (!check.passed)
      out += fmt::format("{}: {}: error {:.3g}, allowed {:.3g}\n", check.what, check.tensor, check.error,
                         check.tolerance);
  }
  return out;
}

JunitCase case_of(const Recorded& run, const Row& row, bool ranked) {
  JunitCase one{
      .name = row.contender.id,
      .group = "bakeoff." + run.summary.title,
      .seconds = timed_seconds(run, row.contender.id),
      .properties = {{"framework", row.contender.framework}, {"settings", settings_text(row.contender)}}};
  if (const std::string version = framework_version(row); !version.empty())
    one.properties.emplace_back("framework_version", version);
  if (ranked) {
    one.properties.emplace_back("rank", fmt::format("{}-{}", row.rank_best, row.rank_worst));
    one.properties.emplace_back("ms_per_step", fmt::format("{:.6g}", row.ms_per_step.value));
    one.properties.emplace_back("ratio", fmt::format("{:.6g}", row.ratio.value));
    one.properties.emplace_back("verdict", report::verdict_text(row));
    return one;
  }
  one.outcome = outcome_of(run, row);
  one.kind = row.failure ? std::string(name(row.failure->stage)) : "not ranked";
  one.message = report::unranked_reason(row);
  one.details = parity_details(row);
  if (row.failure) one.details += row.failure->log_tail;
  return one;
}

}  // namespace

table::JunitSuite junit_suite(const Recorded& run) {
  const Summary& s = run.summary;
  // JUnit's time has no zone.
  std::string started = s.manifest.started;
  if (started.ends_with('Z')) started.pop_back();
  table::JunitSuite suite{.name = s.title,
                          .started = started,
                          .properties = {{"run", run.run},
                                         {"track", ir::name(s.track)},
                                         {"verdict", report::headline(s)},
                                         {"bakeoff", s.manifest.bakeoff_version},
                                         {"host", s.manifest.host.name}}};
  if (!s.refusal.empty()) suite.properties.emplace_back("no_verdict", s.refusal);
  for (const Row& row : s.ranked) suite.cases.push_back(case_of(run, row, true));
  for (const Row& row : s.unranked) suite.cases.push_back(case_of(run, row, false));
  return suite;
}

}  // namespace bakeoff::exports
