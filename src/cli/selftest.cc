#include "selftest/selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/files.h"
#include "base/temporary_folder.h"
#include "base/texts.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/output.h"
#include "cli/usage.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"

namespace bakeoff::cli {

struct SelfTestCommand {
  double minutes = 8;
  std::string framework = {};  // empty: the first that is installed
  fs::path record = {};        // file for step times of identical contenders, one line for each block
  bool identical_only = false;
};

namespace {

std::string_view word(Claim::Outcome outcome) {
  if (outcome == Claim::Outcome::kHeld) return "held";
  return outcome == Claim::Outcome::kMissed ? "MISSED" : "not tried";
}

constexpr int kOutcomeColumn = 11;

void print_table(const std::vector<Claim>& claims) {
  size_t claim = 5, bar = 3, seen = 4;
  for (const Claim& c : claims) {
    claim = std::max(claim, c.claim.size());
    bar = std::max(bar, c.bar.size());
    seen = std::max(seen, c.seen.size());
  }
  if (kOutcomeColumn + claim + bar + seen + 4 > static_cast<size_t>(output_width())) {
    for (const Claim& c : claims) {
      print(two_columns(std::string(word(c.outcome)), kOutcomeColumn, c.claim));
      print(two_columns("", kOutcomeColumn, fmt::format("bar: {}; seen: {}", c.bar, c.seen)));
    }
    return;
  }
  print(fmt::format("{:<9}  {:<{}}  {:<{}}  seen\n", "", "claim", claim, "bar", bar));
  for (const Claim& c : claims)
    print(fmt::format("{:<9}  {:<{}}  {:<{}}  {}\n", word(c.outcome), c.claim, claim, c.bar, bar, c.seen));
}

Result<SelfTestEvidence> measure(const SelfTestCommand& options, const fs::path& config,
                                 const fs::path& folder) {
  TRY(const auto interpreters, find_interpreters(config));
  ConsoleProgress progress;
  const SelfTestOptions wanted{.minutes = options.minutes,
                               .framework = options.framework,
                               .record = options.record,
                               .identical_only = options.identical_only,
                               .folder = folder};
  return selftest(wanted, interpreters, progress.lines(), progress.race());
}

int selftest(const SelfTestCommand& options, const fs::path& config) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  const auto workspace = TemporaryFolder::make("selftest");
  if (!workspace) return fail(workspace.error());
  const auto evidence = measure(options, config, workspace->path());
  if (!evidence) return fail(evidence.error());
  const std::vector<Claim> claims = judge(*evidence);
  print_table(claims);
  if (proc::interrupted()) return kInterrupted;
  if (const auto refusal = evidence->host.refusal({})) {
    note("bakeoff: no verdict: " + *refusal);
    return kRefused;
  }
  if (races_finished(evidence->identical) == 0) {
    note("bakeoff: no race of identical contenders was finished: allow more --minutes");
    return 1;
  }
  const bool missed = std::any_of(claims.begin(), claims.end(),
                                  [](const Claim& c) { return c.outcome == Claim::Outcome::kMissed; });
  return missed ? 1 : 0;
}

Action add_selftest(CLI::App& sub) {
  const auto options = std::make_shared<SelfTestCommand>();
  sub.add_option("--minutes", options->minutes, "duration in minutes")
      ->check(number_from(0.1, 100000.0))
      ->capture_default_str();
  const SelfTestNames names = selftest_names();
  const auto plantable = std::span(names.all).first(names.plantable);
  sub.add_option("--framework", options->framework,
                 fmt::format("default: the first installed of {}", join(plantable, ", ")))
      ->check(one_of(names.all));
  sub.add_option(
         "--record", options->record,
         "append the step times of identical contenders, one line for each block: {\"a\":[ms],\"b\":[ms]}")
      ->type_name("FILE");
  sub.add_flag("--identical-only", options->identical_only,
               "plant no faults and use shorter blocks: more races of identical contenders in the same time");
  return [options](const Invocation& line) { return selftest(*options, line.config); };
}

}  // namespace

const Command kSelfTest = {
    "selftest", "Race identical contenders and planted faults on this machine: is the verdict right?",
    "bakeoff selftest --minutes 8", add_selftest};

}  // namespace bakeoff::cli
