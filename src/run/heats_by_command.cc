#include "run/heats_by_command.h"

#include <fmt/format.h>

#include <set>

#include "base/files.h"
#include "proc/interrupt.h"
#include "proc/run.h"

namespace bakeoff::run {

namespace fs = std::filesystem;

namespace {

// Each contender that was ordered has at most one trial, and no other contender or heat has any.
Status check_result(const Plan& plan, const HeatOrder& order, const HeatResult& result,
                    const std::string& by) {
  std::set<std::string> ordered;
  for (const size_t member : order.members) ordered.insert(plan.manifest.contenders[member].id);
  for (const Trial& trial : result.trials)
    if (trial.heat != order.number || ordered.erase(trial.contender) == 0)
      return Error{
          .message = fmt::format("'{}' answered heat {} with a trial of {} in heat {}, which was not ordered",
                                 by, order.number, trial.contender, trial.heat)};
  return Done{};
}

// What a plan can run: lanes that it has and that can be started, each once.
Status check_order(const Plan& plan, const HeatOrder& order, const fs::path& file) {
  std::set<size_t> members;
  for (const size_t member : order.members)
    if (member >= plan.lanes.size() || plan.lanes[member].failure || !members.insert(member).second)
      return Error{.message = fmt::format("the run has no contender number {} that can be started", member),
                   .where = file.string(),
                   .remedy = "the order is of another run"};
  if (members.empty() || order.at_once < 1 || order.plan.rounds < 1)
    return Error{.message = "the order names no contender, or no round",
                 .where = file.string(),
                 .remedy = "the file is damaged"};
  return Done{};
}

}  // namespace

Result<HeatResult> HeatsByCommand::run(const Plan& plan, const HeatOrder& order, const Watch& watch,
                                       const Happening& happening) {
  watch(happening);
  const fs::path& folder = plan.directory.path();
  const fs::path given = folder / "heat_order.json", answer = folder / "heat_result.json";
  std::error_code ignored;
  fs::remove(answer, ignored);
  CHECK_OK(write_file(given, to_json(order)));
  std::vector<std::string> argv = command_;
  for (const fs::path& part : {folder, given, answer}) argv.push_back(part.string());
  const auto done = proc::run_command({.child = {.argv = argv}});
  const auto text = read_file(answer);
  for (const fs::path& file : {given, answer}) fs::remove(file, ignored);
  if (proc::interrupted()) return HeatResult{};
  if (!done) return done.error();
  if (!done->ok() || !text)
    return Error{.message = fmt::format("heat {} was not run by '{}': {}\n{}", order.number, argv.front(),
                                        done->text(), done->output_tail)};
  TRY(HeatResult result, heat_result_from_json(*text, answer.string()));
  CHECK_OK(check_result(plan, order, result, argv.front()));
  return result;
}

Result<HeatResult> ordered_heat(const Plan& plan, const HeatOrder& order, const fs::path& file,
                                const Sensed& sensed) {
  CHECK_OK(check_order(plan, order, file));
  TRY(const auto here, HeatsHere::open(plan, sensed));
  return here->run(plan, order, [](const Happening&) {}, {});
}

Status run_ordered_heat(const fs::path& folder, const fs::path& order, const fs::path& result,
                        const Interpreters& interpreters, const Sensed& sensed) {
  TRY(const Plan plan, reopen_plan(folder, interpreters, Reopen::kHelp));
  TRY(const std::string text, read_file(order));
  TRY(const HeatOrder wanted, heat_order_from_json(text, order.string()));
  TRY(const HeatResult done, ordered_heat(plan, wanted, order, sensed));
  if (proc::interrupted()) return Error{.message = "interrupted"};
  return write_file(result, to_json(done));
}

}  // namespace bakeoff::run
