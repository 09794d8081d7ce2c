// A block must be settled once, by a node that can be trusted. A contender that fails may be broken or may be
// on a broken node, which one attempt cannot tell; so a failure that was not seen before leaves the block
// unsettled, with a record of the attempt, and it is tried again. Only what fails again, on this node or
// another, is the contender's failure.

#include "fleet/block.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/texts.h"
#include "fleet/admission.h"
#include "fleet/fleet.h"
#include "fleet/probe.h"
#include "plan/plan.h"
#include "proc/interrupt.h"
#include "proc/run.h"
#include "race/race.h"
#include "run/heats_by_command.h"

namespace bakeoff::fleet {
namespace {

// What an audit found that differs from the referee; empty: nothing, or there was no audit.
std::string differing(const Trial& trial) {
  const auto found =
      std::ranges::find_if(trial.audits, [](const Audit& one) { return !one.differs.empty(); });
  return found == trial.audits.end() ? "" : found->differs;
}

// Contenders that failed in a heat, or computed something else.
std::vector<std::string> failed_in(const HeatResult& heat) {
  std::vector<std::string> all;
  for (const Trial& trial : heat.trials)
    if (trial.failure || !differing(trial).empty()) all.push_back(trial.contender);
  return all;
}

// Why a heat does not settle its block: a contender failed, or computed something else, that did so in no earlier
// attempt and on no other node. Perhaps the node is at fault: an environment that is damaged, a disk that is full. It
// surely is if the contender is sound on another node, and differs here alone. Empty: the heat settles the block.
std::string doubt(const HeatResult& heat, const std::vector<FailedAttempt>& before,
                  const std::vector<Check>& checks) {
  std::string why;
  for (const Trial& trial : heat.trials) {
    const auto too = [&](const FailedAttempt& attempt) {
      return std::ranges::find(attempt.contenders, trial.contender) != attempt.contenders.end();
    };
    const auto elsewhere = [&](bool sound) {
      return std::ranges::any_of(checks, [&](const Check& check) {
        return check.contender == trial.contender && check.node != node_name() &&
               check.differs.empty() == sound;
      });
    };
    const bool again = std::ranges::any_of(before, too);
    const std::string differs = differing(trial), next = why.empty() ? "" : "; ";
    if (trial.failure && !again)
      why += fmt::format("{}{} failed in stage {}", next, trial.contender, trial.failure->text());
    else if (!differs.empty() && !elsewhere(false) && (!again || elsewhere(true)))
      why += fmt::format("{}{} computes something else than it was proven for: {}", next, trial.contender,
                         differs);
  }
  return why;
}

Status note_checks(const Board& board, const HeatResult& heat) {
  for (const Trial& trial : heat.trials)
    if (!trial.audits.empty())
      CHECK_OK(
          board.write(Check{.node = node_name(), .contender = trial.contender, .differs = differing(trial)}));
  return Done{};
}

// The order of a block as this node runs it: who was not audited here yet is audited.
Result<HeatOrder> order_here(const Board& board, const Plan& plan, int block) {
  TRY(HeatOrder order, board.order(block));
  std::set<std::string> sound;
  for (const Check& check : board.checks())
    if (check.node == node_name() && check.differs.empty()) sound.insert(check.contender);
  std::erase_if(order.audited, [&](size_t lane) {
    return lane < plan.manifest.contenders.size() && !sound.contains(plan.manifest.contenders[lane].id);
  });
  return order;
}

// Error: the node is kept apart.
Status check_node(const Board& board) {
  const auto faulty = at_fault(board.checks());
  const auto here = faulty.find(node_name());
  if (here == faulty.end()) return Done{};
  return Error{.message = "the node is kept apart: " + here->second};
}

std::string attempt_name(int job) { return fmt::format("{}-{}-{}", job, node_name(), ::getpid()); }

Status attempt(const Board& board, int job, int block, const Interpreters& interpreters, const Sensed& sensed,
               FailedAttempt& failed) {
  CHECK_OK(check_node(board));
  TRY(const Node node, probe_node(board, sensed));
  TRY(const Plan plan, reopen_plan(board.run(), interpreters, Reopen::kHelp));
  TRY(const HeatOrder order, order_here(board, plan, block));
  TRY(const HeatResult heat, run::ordered_heat(plan, order, board.order_file(block), sensed));
  if (proc::interrupted()) return Done{};
  CHECK_OK(note_checks(board, heat));
  if (const std::string why = doubt(heat, board.failures(block), board.checks()); !why.empty()) {
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
                                      .race = race_of(plan.manifest),
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
    CHECK_OK(check_node(board));  // other hosts take its blocks
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
