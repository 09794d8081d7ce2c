// A heat must say something within seconds, of scripts that nobody prepared for it. They differ from a
// contender in three ways. They may end: then there are too few steps for bursts, and a lane's failure is the
// number of steps that it made, from which the caller plans another kind of heat. Their steps may be unequal:
// bursts take whole epochs or periods where these are short. And what a burst is worth may change with its
// place, so for such scripts each burst is of a fresh process (options.apart()).
//
// Rounds are short and their order is random: what slows the machine for a while hits all lanes of a round,
// and drops out of the difference. The mean of the rounds leaves out the largest and the smallest sixth:
// among a few bursts, one that was disturbed would decide it.

#include "explain/heats.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <thread>

#include "base/clock.h"
#include "proc/interrupt.h"
#include "proc/process_tree.h"
#include "sample/host_probe.h"
#include "sample/process_sampler.h"
#include "stats/distributions.h"
#include "stats/trimmed.h"

namespace bakeoff::explain {
namespace {

constexpr int64_t kSettle = 8;         // steps before anything counts
constexpr double kSettleSeconds = 60;  // at most, for them and for all that they compile
constexpr double kWarmUpSeconds = 1;
constexpr size_t kFewestBursts = 4;
constexpr int64_t kFirstAsked = 2;   // rounds, before a heat may say enough
constexpr double kFreshSeconds = 2;  // of the first steps of a fresh process that are compared, about
constexpr int64_t kSomeFresh =
    12;  // the same, steps, where they take less than this: a switch needs two to be thrown
constexpr double kMostFreshSeconds = 5;
constexpr double kRunSeconds = 300;  // of a whole run, at most

// One lane's process during a heat.
struct Runner {
  const Lane* lane = nullptr;
  std::optional<Observed> process = {};
  double samples = 1;               // of a step
  int64_t steps = 1;                // of a burst
  int64_t done = 0;                 // steps so far
  std::vector<double> bursts = {};  // log of ms per sample
  LaneHeat result = {};
  bool ended = false;

  void fail_as_short() {
    result.ends_after = static_cast<int64_t>(static_cast<double>(done) * larger());
    result.failure = fmt::format("it ends after {} steps: too few to compare", done);
  }
  // How many steps without switches take as many samples as one of it.
  double larger() const { return std::max(1.0, samples / std::max(1.0, lane->samples)); }
  bool live() const { return process && result.ok() && !ended; }

  // nullopt: the process has ended, or failed.
  std::optional<Report> run(int64_t count, double seconds, bool facts = false) {
    auto report = process->run({.steps = count, .seconds = seconds, .facts = facts});
    if (!report) {
      if (bursts.size() < kFewestBursts) result.failure = report.error().text();
      ended = true;
      return std::nullopt;
    }
    done += report->steps();
    if (!report->ended) return std::move(*report);
    ended = true;
    if (!report->error.empty())
      result.failure = fmt::format("it ended with {} ({})", report->error, report->where);
    else if (bursts.size() < kFewestBursts)
      fail_as_short();
    return std::nullopt;
  }
};

double seconds_from_start(const Report& report) {
  return 1e-9 * static_cast<double>(report.begun + report.ns - report.started);
}

// Its process; nullopt where it did not start, with the reason in the result.
std::optional<Observed> started(Runner& runner, const HeatOptions& options) {
  ScriptSpec spec = runner.lane->spec;
  spec.log_file = options.folder / (runner.lane->name + ".log");
  auto process = Observed::start(spec, runner.lane->switches);
  if (process) return std::move(*process);
  runner.result.failure = process.error().text();
  return std::nullopt;
}

// Starts its process and runs the first steps, whose times do not count.
void settle(Runner& runner, const HeatOptions& options) {
  auto process = started(runner, options);
  if (!process) return;
  runner.process.emplace(std::move(*process));
  const int64_t some = std::min(kSettle, runner.lane->steps_at_most.value_or(kSettle * 4) / 4 + 1);
  const auto first = runner.run(some, kSettleSeconds, /*facts=*/true);
  if (!first) return;
  runner.result.thrown = first->thrown;
  runner.result.losses = first->losses;
  runner.result.start_s = seconds_from_start(*first);
  runner.samples = samples_of(facts_of(*first), runner.lane->by_step);
  if (auto frozen = runner.process->freeze(); !frozen) runner.result.failure = frozen.error().text();
}

// Its steps in a burst, from what its warm-up takes now.
void warm_up(Runner& runner, const HeatOptions& options) {
  const double step_s = std::max(1e-6, runner.lane->step_s);
  const auto most_steps = static_cast<double>(runner.lane->steps_at_most.value_or(int64_t{1} << 40));
  const int64_t left = static_cast<int64_t>(most_steps / runner.larger()) - runner.done;
  const int64_t rounds = options.rounds;
  // Steps that vary a factor of 2 still leave some bursts to a script that ends.
  const auto warm =
      std::clamp<int64_t>(std::llround(kWarmUpSeconds / step_s), 1, std::max<int64_t>(1, left / 8));
  const auto report = runner.run(warm, 10 * kWarmUpSeconds);
  if (!report) return;
  const double now_s = report->step_s();
  const int64_t most = std::max<int64_t>(1, (left - warm) / (rounds + 1) - 1);
  int64_t wanted = std::max<int64_t>(1, std::llround(options.burst_s / now_s));
  const double epoch = runner.lane->epoch_samples;
  // The last call of an epoch may take fewer samples than the others.
  if (const auto calls = static_cast<int64_t>(std::ceil(epoch / runner.samples - 1e-9));
      calls > 0 && calls <= most) {
    const int64_t epochs = std::min((wanted + calls - 1) / calls, most / calls);
    wanted = epochs * calls;
    runner.samples = static_cast<double>(epochs) * epoch / static_cast<double>(wanted);
  }
  runner.steps = std::clamp<int64_t>(wanted, 1, most);
}

void burst(Runner& runner) {
  if (auto thawed = runner.process->thaw(); !thawed) {
    runner.result.failure = thawed.error().text();
    return;
  }
  // A lead-in, while caches are cold; bursts of whole epochs count every step, or an epoch's start is missed.
  const bool epochs = runner.lane->epoch_samples > 0;
  if (epochs || runner.run(1, 600)) {
    if (const auto report = runner.run(runner.steps, 600))
      runner.bursts.push_back(std::log(1e3 * report->step_s() / runner.samples));
  }
  if (runner.live())
    if (auto frozen = runner.process->freeze(); !frozen) runner.result.failure = frozen.error().text();
}

// Why a run gave no measure; empty: it gave one.
std::string failure_of(const Result<Report>& report) {
  if (!report) return report.error().text();
  return report->error.empty() ? "" : fmt::format("it ended with {} ({})", report->error, report->where);
}

// The first steps of a fresh process, less those that warm it up.
void fresh_run(Runner& runner, const HeatOptions& options) {
  auto process = started(runner, options);
  if (!process) return;
  auto report = process->run({.steps = 1, .seconds = kSettleSeconds, .facts = true});
  int64_t first = 0;  // calls of a model come in more than were asked for
  if (report && !report->ended) {
    first = report->steps();
    runner.samples = samples_of(facts_of(*report), runner.lane->by_step);
    const auto all = static_cast<int64_t>(static_cast<double>(options.fresh_steps) / runner.larger());
    if (const int64_t warm = std::min(kSettle, all / 3) - first; warm > 0) {
      report = process->run({.steps = warm, .seconds = kSettleSeconds});
      if (report) first += report->steps();
    }
    if (report && !report->ended) {
      runner.result.losses = report->losses;
      runner.result.start_s = seconds_from_start(*report);
      report = process->run({.steps = std::max<int64_t>(1, all - first), .seconds = kRunSeconds});
    }
  }
  runner.result.failure = failure_of(report);
  if (!runner.result.ok()) return;
  runner.done = first + report->steps();
  if (report->ended) return runner.fail_as_short();
  runner.result.thrown = report->thrown;
  runner.bursts.push_back(std::log(1e3 * report->step_s() / runner.samples));
  // A switch that changed nothing in these steps changes nothing in the same steps of another process.
  for (const auto& [name, value] : runner.lane->switches.items())
    if (!thrown_outside(name) && std::ranges::find(report->thrown, name) == report->thrown.end())
      runner.result.failure = kNothingToChange;
}

// From the start of Python to the script's end.
void whole_run(Runner& runner, const HeatOptions& options) {
  auto process = started(runner, options);
  if (!process) return;
  const auto report = process->run({.steps = int64_t{1} << 40, .seconds = kRunSeconds});
  runner.result.failure = failure_of(report);
  if (runner.result.ok() && !report->ended)
    runner.result.failure = fmt::format("it did not come to its end within {:.0f} s", kRunSeconds);
  if (!runner.result.ok()) return;
  runner.result.thrown = report->thrown;
  runner.result.losses = report->losses;
  runner.bursts.push_back(std::log(1e3 * seconds_from_start(*report)));
}

LaneHeat result_of(const Runner& runner, int64_t rounds, const HeatOptions& options) {
  LaneHeat result = runner.result;
  result.whole = options.whole;
  result.apart = options.apart();
  result.bursts = runner.bursts;
  result.bursts.resize(static_cast<size_t>(rounds), std::numeric_limits<double>::quiet_NaN());
  return result;
}

// Starts all processes and warms them up, two starts at a time: a start is mostly imports, on one processor.
void prepare(std::vector<Runner>& runners, const std::vector<size_t>& order, const HeatOptions& options) {
  for (size_t i = 0; i < order.size() && !proc::interrupted(); i += 2) {
    options.progress(fmt::format("starting {} of {}: {}", i + 1, order.size(), runners[order[i]].lane->name));
    std::thread other;
    if (i + 1 < order.size()) other = std::thread([&] { settle(runners[order[i + 1]], options); });
    settle(runners[order[i]], options);
    if (other.joinable()) other.join();
  }
  const auto short_of_steps = [](const Runner& r) { return r.result.ends_after > 0; };
  if (options.until_short && std::ranges::any_of(runners, short_of_steps)) return;
  for (size_t i : order) {
    Runner& runner = runners[i];
    if (!runner.live() || proc::interrupted()) continue;
    if (!runner.process->thaw()) continue;
    warm_up(runner, options);
    if (runner.live() && !runner.process->freeze()) runner.ended = true;
  }
}

// Counted by process. The machine's time less ours would be wrong: it contains our runs that have ended.
double cpu_of_others_s(const std::map<pid_t, sample::ProcessCpu>& before) {
  std::vector<pid_t> ours = proc::descendants(::getpid());
  ours.push_back(::getpid());
  return sample::cpu_of_others_s(before, sample::cpu_by_process(), ours);
}

}  // namespace

Heat run_heat(const std::vector<Lane>& lanes, const HeatOptions& options) {
  std::vector<Runner> runners(lanes.size());
  std::vector<size_t> order(lanes.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 rng(options.seed);
  std::ranges::shuffle(order, rng);
  for (size_t i = 0; i < lanes.size(); ++i) runners[i].lane = &lanes[i];
  if (!options.apart()) prepare(runners, order, options);
  const sample::HostProbe probe = sample::host_probe({});
  const sample::HostSnapshot before = probe();
  const auto others = sample::cpu_by_process();
  int64_t rounds = 0, round_ns = 0;  // and what the last one took
  const auto cut_short = [&] {
    return options.until_short &&
           std::ranges::any_of(runners, [](const Runner& r) { return r.result.ends_after > 0; });
  };
  for (; rounds < options.rounds && !proc::interrupted() && !cut_short(); ++rounds) {
    const int64_t begin = monotonic_clock().now_ns();
    if (rounds >= std::min(options.fewest_rounds, options.fewest_late) && begin + round_ns > options.until_ns)
      break;
    options.progress(fmt::format("round {} of {}", rounds + 1, options.rounds));
    std::ranges::shuffle(order, rng);
    for (size_t i : order) {
      if (proc::interrupted()) break;
      if (options.apart() && runners[i].result.ok())
        options.whole ? whole_run(runners[i], options) : fresh_run(runners[i], options);
      if (runners[i].live()) burst(runners[i]);
    }
    round_ns = monotonic_clock().now_ns() - begin;
    if (rounds + 1 < kFirstAsked || proc::interrupted()) continue;
    std::vector<LaneHeat> so_far;
    for (const Runner& runner : runners) so_far.push_back(result_of(runner, rounds + 1, options));
    if (options.enough(so_far)) {
      ++rounds;
      break;
    }
  }
  Heat heat;
  const auto seen = sample::change(before, probe(), 0);
  if (const double all_s = seen.wall_s * static_cast<double>(before.cpus); all_s > 0)
    heat.others = std::clamp(cpu_of_others_s(others) / all_s, 0.0, 1.0);
  if (seen.steal) heat.others = std::min(1.0, heat.others + *seen.steal);
  for (const Runner& runner : runners) heat.lanes.push_back(result_of(runner, rounds, options));
  return heat;
}

int64_t ended_after(const Heat& heat) {
  int64_t fewest = 0;
  for (const LaneHeat& lane : heat.lanes)
    if (lane.ends_after > 0) fewest = std::min(fewest > 0 ? fewest : lane.ends_after, lane.ends_after);
  return fewest > kFewestFresh ? fewest : 0;
}

int64_t fresh_steps_of(int64_t ended_after, double step_s) {
  const int64_t fewest = kSomeFresh * step_s < kMostFreshSeconds ? kSomeFresh : kFewestFresh;
  return std::min(std::max(static_cast<int64_t>(kFreshSeconds / std::max(step_s, 1e-6)), fewest),
                  ended_after - 1);
}

std::optional<HeatDifference> difference(const LaneHeat& slower, const LaneHeat& faster) {
  std::vector<double> d;
  for (size_t i = 0; i < std::min(slower.bursts.size(), faster.bursts.size()); ++i) {
    const double one = slower.bursts[i] - faster.bursts[i];
    if (std::isfinite(one)) d.push_back(one);
  }
  const size_t n = d.size();
  if (!slower.ok() || !faster.ok() || n < 2) return std::nullopt;
  std::ranges::sort(d);
  const double least = d.front(), most = d.back();
  const size_t cut = n / 6;
  for (size_t i = 0; i < cut; ++i) {
    d[i] = d[cut];
    d[n - 1 - i] = d[n - 1 - cut];
  }
  const double kept = static_cast<double>(n - 2 * cut), all = static_cast<double>(n);
  const std::span<const double> middle(d.data() + cut, n - 2 * cut);
  const double few = stats::student_quantile(kept - 1, 0.995) / stats::normal_quantile(0.995);
  return HeatDifference{stats::mean(middle), few * few * stats::variance(d) * all / (kept * kept),
                        static_cast<int64_t>(n), least, most};
}

}  // namespace bakeoff::explain
