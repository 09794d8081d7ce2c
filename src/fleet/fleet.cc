#include "fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/files.h"
#include "base/sha256.h"
#include "base/texts.h"
#include "evidence/evidence.h"
#include "plan/plan.h"
#include "proc/interrupt.h"
#include "race/race.h"
#include "records/machine_report.h"

// Why waves. A race on one machine looks after every heat; a fleet that did so would use one machine. So it plans some
// heats at once, from the records of all waves before, and looks when all of them are settled: never while one is
// missing. What is merged therefore depends on no block's turn, and a block that is slow to come back cannot be left out
// for what it shows. Verdicts hold at every look (stats/e_process.h), so they hold at the looks between waves.

namespace bakeoff::fleet {

namespace {

constexpr size_t kFewest = 8;   // blocks of a wave
constexpr double kLongest = 4;  // times the time limit of a block, for one that its limit ended

struct Settled {
  std::vector<BlockResult> results;
  Merged merged;
};

Result<Settled> read_settled(const Board& board, const std::string& race) {
  Settled found;
  TRY(const std::vector<int> blocks, board.blocks());
  for (const int block : blocks) {
    if (!board.settled(block)) continue;
    auto result = board.result(block);
    if (result && !result->race.empty() && result->race != race)
      result = Error{.message = "it is the result of another race"};
    if (!result) {
      found.merged.damaged.push_back(fmt::format("block {}: {}", block, result.error().message));
      CHECK_OK(board.set_aside(block));
      continue;
    }
    if (!result->given_up.empty()) {
      found.merged.given_up.push_back(fmt::format("block {}: {}", block, result->given_up));
      continue;
    }
    ++found.merged.settled;
    found.results.push_back(std::move(*result));
  }
  return found;
}

// Writes the file unless it holds this text.
Result<bool> replace(const fs::path& file, const std::string& text) {
  std::error_code none;
  if (fs::file_size(file, none) == text.size())
    if (const auto old = read_regular_file(file); old && *old == text) return false;
  CHECK_OK(write_file(file, text));
  return true;
}

// The run's host is the node of the first block that counts: reports compare with its limits.
Status take_host(const Plan& plan, const Node& node) {
  Manifest manifest = plan.manifest;
  if (manifest.host == node.host) return Done{};
  manifest.host = node.host;
  CHECK_OK(plan.directory.write(manifest));
  return keep_run_peak(plan.directory.path(), node.host, node.peak.limits);
}

Result<Merged> merge(const Board& board, const Plan& plan) {
  TRY(Settled settled, read_settled(board, race_of(plan.manifest)));
  std::vector<Node> nodes;
  for (const BlockResult& result : settled.results) nodes.push_back(result.node);
  settled.merged.nodes = admit(nodes, board.settings().out_of_line);
  for (const auto& [name, why] : at_fault(board.checks())) {
    NodeState& node = settled.merged.nodes[name];
    node.name = name;
    if (node.apart.empty()) node.apart = why;
  }
  const Node* first = nullptr;
  size_t size = 0;
  for (const BlockResult& result : settled.results) size += result.trials.size();
  std::string text;
  text.reserve(size);
  for (BlockResult& result : settled.results) {
    if (!settled.merged.nodes.at(result.node.name).apart.empty()) {
      ++settled.merged.apart;
      continue;
    }
    if (first == nullptr) first = &result.node;
    text += std::exchange(result.trials, {});  // thousands of blocks are half a gigabyte
  }
  if (first != nullptr) CHECK_OK(take_host(plan, *first));
  TRY(settled.merged.changed, replace(plan.directory.path() / Kept<Trial>::kFile, text));
  return std::move(settled.merged);
}

// The unsettled blocks, each with what the engine holds of it, if it does.
Result<std::map<int, std::optional<Queued>>> unsettled(const Board& board, const Engine& engine,
                                                       const std::vector<Job>& jobs) {
  std::map<int, std::optional<Queued>> open;
  TRY(const std::vector<int> blocks, board.blocks());
  for (const int block : blocks)
    if (!board.settled(block)) open[block] = std::nullopt;
  for (const Job& job : jobs) {
    if (job.cancelled) continue;
    if (std::ranges::none_of(job.blocks, [&](int block) { return open.contains(block); })) continue;
    TRY(const auto held, engine.queued(job));
    for (const auto& [block, queued] : held)
      if (open.contains(block)) open[block] = queued;
  }
  // One that was settled while we asked.
  std::erase_if(open, [&](const auto& one) { return board.settled(one.first); });
  return open;
}

// The attempts of a block so far, and why the last one left nothing.
struct Tries {
  int64_t begun = 0, submitted = 0;
  std::string why = {};
};

// An attempt that ended without a word, because its node died or its time was over, gets its record here: engines forget.
Result<Tries> tries_of(const Board& board, const Engine& engine, const std::vector<Job>& jobs, int block) {
  Tries tries;
  for (const Job& job : jobs) {
    if (job.cancelled || std::ranges::find(job.blocks, block) == job.blocks.end()) continue;
    ++tries.submitted;
    const std::string node = board.taken_by(block, job.number);
    if (node.empty()) continue;
    ++tries.begun;
    const auto known = [&](const FailedAttempt& failed) { return failed.job == job.number; };
    if (std::ranges::any_of(board.failures(block), known)) continue;
    std::string why = engine.why_gone(job, block);
    if (why.empty()) why = fmt::format("the attempt on {} ended without a result", node);
    CHECK_OK(board.write(
        FailedAttempt{.block = block, .job = job.number, .node = node, .reason = why, .contenders = {}},
        fmt::format("{}-gone", job.number)));
  }
  const auto failures = board.failures(block);
  tries.why =
      failures.empty() ? "no attempt ever began" : failures.back().node + ": " + failures.back().reason;
  return tries;
}

bool ended_by_limit(const Board& board, int block) {
  return std::ranges::any_of(board.failures(block), [](const FailedAttempt& failed) {
    return failed.reason.find("TIMEOUT") != std::string::npos ||
           failed.reason.find("time limit") != std::string::npos;
  });
}

// A fleet that gives up more blocks than it settles would try all blocks that a race may have.
Status check_yield(const Merged& merged, const Submitted& now) {
  const size_t lost = merged.given_up.size() + now.given_up.size();
  const auto settled = static_cast<size_t>(merged.settled);
  if (lost <= settled) return Done{};
  return Error{.message = fmt::format("{} of {} blocks are given up; {}", lost, lost + settled,
                                      now.given_up.empty() ? merged.given_up.back() : now.given_up.back()),
               .where = {},
               .remedy =
                   "mend what it names and plan the race again, with a longer --block-minutes if its time "
                   "limit ended it"};
}

class Submission {
 public:
  Submission(const Board& board, const Engine& engine, std::vector<Job> jobs)
      : board_(board), engine_(engine), jobs_(std::move(jobs)) {}

  // Blocks that nobody holds: again, or given up. True: some block is unsettled.
  Result<bool> take_up(std::vector<int>& again) {
    TRY(const auto open, unsettled(board_, engine_, jobs_));
    bool waits = false;
    for (const auto& [block, queued] : open) {
      if (queued) {
        waits = true;
        continue;
      }
      TRY(const Tries tries, tries_of(board_, engine_, jobs_, block));
      const int64_t most = board_.settings().tries;
      if (tries.begun < most && tries.submitted < 3 * most) {
        again.push_back(block);
        continue;
      }
      const std::string why = fmt::format("{} attempts failed; the last one on {}", tries.begun, tries.why);
      TRY(const bool first, board_.settle({.block = block,
                                           .attempt = {},
                                           .race = {},
                                           .given_up = why,
                                           .node = {},
                                           .bytes = 0,
                                           .trials = {}}));
      if (first) result.given_up.push_back(fmt::format("block {}: {}", block, why));
    }
    return waits || !again.empty();
  }

  Status hand_over(const std::vector<int>& blocks, const std::vector<std::string>& avoid) {
    const size_t most = std::max<size_t>(1, engine_.most());
    for (size_t begin = 0; begin < blocks.size(); begin += most) {
      Job job{.number = jobs_.empty() ? 1 : jobs_.back().number + 1,
              .blocks = {blocks.begin() + static_cast<std::ptrdiff_t>(begin),
                         blocks.begin() + static_cast<std::ptrdiff_t>(std::min(begin + most, blocks.size()))},
              .minutes = board_.settings().block_minutes,
              .submitted = utc_now()};
      if (std::ranges::any_of(job.blocks, [&](int block) { return ended_by_limit(board_, block); }))
        job.minutes *= kLongest;
      CHECK_OK(board_.write(job));  // nodes read it; should we end here, its blocks are submitted again
      const Status done = engine_.submit(job, avoid);
      job.cancelled = !done && !proc::interrupted();  // the engine may have got it before the signal came
      CHECK_OK(board_.write(job));
      CHECK_OK(done);
      for (const std::string& id : job.ids) result.jobs.push_back(id);
      jobs_.push_back(std::move(job));
    }
    return Done{};
  }

  Submitted result;

 private:
  const Board& board_;
  const Engine& engine_;
  std::vector<Job> jobs_;
};

}  // namespace

std::string race_of(const Manifest& manifest) {
  return sha256(join({manifest.started, manifest.weights_sha256, manifest.recipe_text}, "\n"));
}

size_t planned_blocks(size_t contenders, size_t live, double alpha) {
  const size_t each =
      (std::max<size_t>(contenders, 2) - 2) / (live - 1) + 1;  // heats in which each takes part once
  return std::max({kFewest, static_cast<size_t>(least_heats(alpha, std::min(contenders, live))), 2 * each});
}

Result<Merged> collect(const Board& board, const Interpreters& interpreters) {
  TRY(const Plan plan, reopen_plan(board.run(), interpreters, Reopen::kHelp));
  return merge(board, plan);
}

Result<Overview> overview(const Board& board, const Engine& engine) {
  TRY(const std::vector<Job> jobs, board.jobs());
  TRY(const std::vector<int> blocks, board.blocks());
  TRY(const auto open, unsettled(board, engine, jobs));
  Overview seen{.blocks = static_cast<int>(blocks.size())};
  std::map<std::string, int> reasons;
  seen.settled = seen.blocks - static_cast<int>(open.size());
  for (const auto& [block, queued] : open) {
    if (!queued) {
      ++seen.lost;
    } else if (queued->running) {
      ++seen.running;
      seen.notes.push_back(fmt::format("block {} runs on {}", block, queued->node));
    } else {
      ++seen.waiting;
      ++reasons[queued->why];
    }
    for (const FailedAttempt& failed : board.failures(block))
      seen.notes.push_back(fmt::format("block {} failed on {}: {}", block, failed.node, failed.reason));
  }
  for (const auto& [why, count] : reasons) seen.notes.push_back(fmt::format("{} wait: {}", count, why));
  return seen;
}

Result<Submitted> submit(const Board& board, const Engine& engine, const Interpreters& interpreters,
                         const FileLock&, Time time) {
  CHECK_OK(engine.check());
  TRY(const Plan plan, reopen_plan(board.run(), interpreters, Reopen::kHelp));
  TRY(const Merged merged, merge(board, plan));
  TRY(std::vector<Job> jobs, board.jobs());
  Submission submission(board, engine, std::move(jobs));
  std::vector<int> blocks;
  TRY(const bool open, submission.take_up(blocks));
  submission.result.again = static_cast<int>(blocks.size());
  TRY(const std::vector<int> all, board.blocks());
  if (!open) CHECK_OK(check_yield(merged, submission.result));
  submission.result.finished = !open && time == Time::kOver && !all.empty();
  if (!open && !submission.result.finished) {
    TRY(const std::vector<Trial> trials, plan.directory.read<Trial>());
    TRY(const std::vector<Parity> parities, plan.directory.read<Parity>());
    const Settings& settings = board.settings();
    const int64_t left = settings.most - static_cast<int64_t>(all.size());
    const size_t wave = settings.wave > 0
                            ? static_cast<size_t>(settings.wave)
                            : planned_blocks(eligible(plan, parities).size(),
                                             static_cast<size_t>(plan.recipe.race.live), plan.recipe.alpha);
    TRY(std::vector<HeatOrder> orders, next_wave(plan, parities, trials, wave, all.empty() ? 0 : all.back()));
    if (left < static_cast<int64_t>(orders.size()))
      orders.resize(static_cast<size_t>(std::max<int64_t>(0, left)));
    submission.result.finished = orders.empty();
    submission.result.fresh = static_cast<int>(orders.size());
    for (const HeatOrder& order : orders) {
      CHECK_OK(board.write(order));
      blocks.push_back(order.number);
    }
  }
  std::vector<std::string> avoid;
  for (const auto& [name, node] : merged.nodes)
    if (!node.apart.empty()) avoid.push_back(name);
  if (!blocks.empty()) CHECK_OK(submission.hand_over(blocks, avoid));
  return std::move(submission.result);
}

Status cancel(const Board& board, const Engine& engine) {
  TRY(std::vector<Job> jobs, board.jobs());
  for (Job& job : jobs) {
    if (job.cancelled) continue;
    CHECK_OK(engine.cancel(job));
    job.cancelled = true;
    CHECK_OK(board.write(job));
  }
  return Done{};
}

}  // namespace bakeoff::fleet
