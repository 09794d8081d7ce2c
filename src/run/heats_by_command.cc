#include "run/heats_by_command.h"

#include <fmt/format.h>

#include "base/files.h"
#include "proc/interrupt.h"
#include "proc/run.h"

namespace bakeoff::run {

namespace fs = std::filesystem;

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
  if (proc::interrupted()) return HeatResult{};
  if (!done) return done.error();
  const auto text = read_file(answer);
  for (const fs::path& file : {given, answer}) fs::remove(file, ignored);
  if (!done->ok() || !text)
    return Error{.message = fmt::format("heat {} was not run by '{}': {}\n{}", order.number, argv.front(),
                                        done->text(), done->output_tail)};
  return heat_result_from_json(*text, answer.string());
}

Status run_ordered_heat(const fs::path& folder, const fs::path& order, const fs::path& result,
                        const Interpreters& interpreters, const Sensed& sensed) {
  TRY(const std::string text, read_file(order));
  TRY(const HeatOrder wanted, heat_order_from_json(text, order.string()));
  TRY(const Plan plan, reopen_plan(folder, interpreters, Reopen::kHelp));
  for (const size_t member : wanted.members)
    if (member >= plan.lanes.size() || plan.lanes[member].failure)
      return Error{.message = fmt::format("the run has no contender number {} that can be started", member),
                   .where = order.string(),
                   .remedy = "the order is of another run"};
  TRY(const auto here, HeatsHere::open(plan, sensed));
  TRY(const HeatResult done, here->run(plan, wanted, [](const Happening&) {}, {}));
  if (proc::interrupted()) return Error{.message = "interrupted"};
  return write_file(result, to_json(done));
}

}  // namespace bakeoff::run
