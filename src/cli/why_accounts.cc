#include "cli/why_accounts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/home.h"
#include "base/temporary_folder.h"
#include "environments/runner_files.h"
#include "explain/observation.h"
#include "explain/words.h"
#include "proc/interrupt.h"
#include "records/names.h"

namespace bakeoff::cli {
namespace {

constexpr double kSeconds = 60;            // explain's budget, of which a script is watched a fifteenth
constexpr const char* kSteps = "1000000";  // more than it makes until it is stopped

// The script of a contender, to be run by itself in the run's folder of scripts; nothing where that is not Python.
std::optional<explain::Subject> script_of(const Plan& plan, const std::string& id,
                                          const std::filesystem::path& runner) {
  const auto lane =
      std::ranges::find_if(plan.lanes, [&](const Lane& one) { return one.entry.contender.id == id; });
  if (lane == plan.lanes.end() || lane->failure || lane->entry.script.extension() != ".py" ||
      !lane->entry.worker.command.empty())
    return std::nullopt;
  const WorkerSpec& worker = lane->entry.worker;
  explain::Subject subject{.name = id, .file = lane->entry.script.filename().string(), .by_step = true};
  subject.source = explain::Source(lane->entry.script_text);
  subject.spec = {.python = worker.python,
                  .runner = runner,
                  .arguments = {subject.file, "--steps", kSteps},
                  .folder = lane->entry.script.parent_path(),
                  .in_copy = false,
                  .environment = worker.environment};
  return subject;
}

}  // namespace

Status observe_accounts(const Plan& plan, Why& why, const Progress& progress) {
  if (plan.recipe.training.scenario != ir::Scenario::kTrain) return Done{};  // its scripts predict once
  TRY(const auto runner, unpack_runner(bakeoff_home()));
  TRY(const TemporaryFolder scratch, TemporaryFolder::make("why"));
  std::vector<explain::Subject> both;
  for (const std::string& id : {why.contender, why.leader}) {
    const std::string name = spoken(plan.manifest.contenders, id);
    auto subject = script_of(plan, id, runner);
    if (!subject || proc::interrupted()) return Done{};
    progress(fmt::format("why: observing {}", name));
    if (const Status seen = explain::observe(*subject, scratch.path(), kSeconds); !seen) {
      progress(fmt::format("why: {} was not observed: {}", name, seen.error().message));
      return Done{};
    }
    both.push_back(std::move(*subject));
  }
  for (const explain::AccountTimes& row : explain::account_times(both))
    why.accounts.push_back({row.title, 1e3 * row.seconds[0], 1e3 * row.seconds[1]});
  std::ranges::stable_sort(why.accounts, std::greater<>{},
                           [](const Why::Account& one) { return one.ms - one.leader_ms; });
  return Done{};
}

}  // namespace bakeoff::cli
