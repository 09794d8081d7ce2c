#include "fleet/block.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/texts.h"
#include "fleet/probe.h"
#include "plan/plan.h"
#include "proc/interrupt.h"
#include "proc/run.h"
#include "race/race.h"
#include "run/heats_by_command.h"

namespace bakeoff::fleet {
namespace {

// Contenders that failed in a heat.
std::vector<std::string> failed_in(const HeatResult& heat) {
  std::vector<std::string> all;
  for (const Trial& trial : heat.trials)
    if (trial.failure) all.push_back(trial.contender);
  return all;
}

// Why a heat does not settle its block: a contender failed that failed in no earlier attempt. Perhaps the node is at
// fault: an environment that is damaged, a disk that is full. Empty: it settles it.
std::string doubt(const HeatResult& heat, const std::vector<FailedAttempt>& before) {
  std::string why;
  for (const Trial& trial : heat.trials) {
    const auto too = [&](const FailedAttempt& attempt) {
      return std::ranges::find(attempt.contenders, trial.contender) != attempt.contenders.end();
    };
    if (trial.failure && std::ranges::none_of(before, too))
      why += fmt::format("{}{} failed in stage {}", why.empty() ? "" : "; ", trial.contender,
                         trial.failure->text());
  }
  return why;
}

std::string attempt_name(int job) { return fmt::format("{}-{}-{}", job, node_name(), ::getpid()); }

Status attempt(const Board& board, int job, int block, const Interpreters& interpreters, const Sensed& sensed,
               FailedAttempt& failed) {
  TRY(const Node node, probe_node(board, sensed));
  TRY(const Plan plan, reopen_plan(board.run(), interpreters, Reopen::kHelp));
  TRY(const HeatResult heat, run::ordered_heat(plan, board.order_file(block), sensed));
  if (proc::interrupted()) return Done{};
  if (const std::string why = doubt(heat, board.failures(block)); !why.empty()) {
    failed.contenders = failed_in(heat);
    return Error{.message = why};
  }
  TRY(const std::vector<Parity> parities, plan.directory.read<Parity>());
  std::string trials;
  for (const Trial& trial : as_kept(plan, parities, heat.trials, node.name, node.peak))
    trials += to_json(trial) + "\n";
  const auto bytes = static_cast<int64_t>(trials.size());
  TRY(const bool first, board.settle({.block = block,
                                      .attempt = attempt_name(job),
                                      .given_up = {},
                                      .node = node,
                                      .bytes = bytes,
                                      .trials = std::move(trials)}));
  (void)first;  // another attempt was quicker: its result stands
  return Done{};
}

}  // namespace

Status run_block(const Board& board, int job, int block, const Interpreters& interpreters,
                 const Sensed& sensed) {
  if (board.settled(block)) return Done{};
  (void)board.take(block, job, node_name());
  FailedAttempt failed{.block = block, .job = job, .node = node_name(), .reason = {}, .contenders = {}};
  const Status done = attempt(board, job, block, interpreters, sensed, failed);
  if (done || proc::interrupted()) return done;
  failed.reason = done.error().text();
  CHECK_OK(board.write(failed, attempt_name(job)));
  return done;
}

Status work_on(const Board& board, int number, const std::vector<std::string>& block_command) {
  TRY(const std::vector<Job> jobs, board.jobs());
  const auto job = std::ranges::find(jobs, number, &Job::number);
  if (job == jobs.end())
    return Error{.message = fmt::format("the run has no job {}", number), .where = board.run().string()};
  for (const int block : job->blocks) {
    if (proc::interrupted()) break;
    if (board.settled(block)) continue;
    TRY(const bool ours, board.take(block, number, node_name()));
    if (!ours) continue;
    std::vector<std::string> argv = block_command;
    argv.insert(argv.end(), {"--block", std::to_string(block)});
    const size_t failures = board.failures(block).size();
    const auto done =
        proc::run_command({.child = {.argv = argv}, .timeout_ns = static_cast<int64_t>(job->minutes * 60e9)});
    if (proc::interrupted()) break;
    if (board.settled(block) || board.failures(block).size() > failures) continue;
    const std::string why = !done ? done.error().text()
                            : done->timed_out
                                ? fmt::format("its time limit of {:g} minutes ended", job->minutes)
                                : done->text() + ": " + std::string(trimmed(done->output_tail));
    CHECK_OK(board.write(
        FailedAttempt{.block = block, .job = number, .node = node_name(), .reason = why, .contenders = {}},
        attempt_name(number)));
  }
  return Done{};
}

}  // namespace bakeoff::fleet
