#include "lab/race.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "lab/controls.h"
#include "lab/host.h"
#include "proc/interrupt.h"
#include "stats/e_process.h"
#include "stats/trimmed.h"
#include "tensor/rng.h"

namespace bakeoff::lab {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr int64_t kLoneHeats = 3;
constexpr int64_t kBytesPerWorker = int64_t{3} << 29;  // 1.5 GiB: what a worker of these frameworks may need

double seconds_since(int64_t begin) {
  return static_cast<double>(monotonic_clock().now_ns() - begin) / kNsPerSecond;
}

// A member of a heat while it lives.
struct Member {
  std::unique_ptr<Worker> worker;
  Trial trial;
  int64_t burst_steps = 2;
};

void end_member(Member& member) {
  const proc::ResourceUsage usage = member.worker->close();
  member.trial.user_s = usage.user_s;
  member.trial.system_s = usage.system_s;
  member.trial.peak_rss_bytes = usage.max_rss_bytes;
  member.trial.involuntary_switches = usage.involuntary_switches;
}

// A worker that hangs would go on beside the others' bursts: it ends here.
void take_failure(Member& member) {
  if (member.trial.failure || member.worker->ok()) return;
  member.trial.failure = member.worker->failure();
  end_member(member);
}

void note_loss(Trial& trial, const std::optional<double>& loss) {
  if (!loss) return;
  trial.last_loss = loss;
  if (!std::isfinite(*loss) && !trial.invalid) trial.invalid = fmt::format("the loss became {}", *loss);
}

// Import, build, first step; ends frozen.
void start_member(const Plan& plan, const GateContender& entry, Member& member) {
  Trial& trial = member.trial;
  trial.started = utc_now();
  WorkerSpec spec = entry.worker;
  spec.log_file =
      plan.directory.logs() / fmt::format("{}.heat{}.log", entry.script.stem().string(), trial.heat);
  static std::atomic<int> rings{0};
  spec.ring_file = fmt::format("/dev/shm/bakeoff-{}-{}", ::getpid(), rings++);
  if (!fs::is_directory("/dev/shm")) spec.ring_file = plan.directory.path() / spec.ring_file.filename();
  member.worker = Worker::start(spec);
  Worker& worker = *member.worker;
  trial.start_ns = worker.start_ns();
  if (const auto imported = worker.import()) {
    trial.import_ns = imported->ns;
    trial.versions = imported->versions;
    trial.effective = imported->effective;
  }
  trial.effective.merge(observe(worker.pid()));
  if (plan.recipe.race.cooldown_seconds > 0)
    trial.effective["cooldown"] = fmt::format("{:g} s", plan.recipe.race.cooldown_seconds);
  const bool as_is = plan.recipe.training.track == ir::Track::kAsIs;
  const auto built =
      worker.build({.script = entry.script,
                    .weights = as_is ? fs::path() : plan.directory.scripts() / "weights.safetensors",
                    .data = plan.gate.data,
                    .layout = entry.layout,
                    .dropout = true},
                   trial.effective);
  if (built) trial.build_ns = *built;
  if (const auto first = worker.run(1, "first step")) trial.first_step_ns = first->burst.ns;
  worker.freeze();
  take_failure(member);
}

// The further steps before the bursts, with the machine to itself; they also tell how long a burst is.
void warm_up(const Plan& plan, Member& member) {
  member.worker->thaw();
  if (const auto warm = member.worker->run(plan.recipe.race.warmup_steps, "warmup")) {
    member.trial.warmup_ns = warm->burst.ns;
    note_loss(member.trial, warm->loss);
    const double step_s = warm->burst.ms_per_step() / 1e3;
    member.burst_steps = std::max<int64_t>(2, std::llround(plan.recipe.race.burst_seconds / step_s));
  }
  member.worker->freeze();
  take_failure(member);
}

void run_burst(Member& member) {
  member.worker->thaw();
  if (const auto ran = member.worker->run(member.burst_steps)) {
    member.trial.bursts.push_back(ran->burst);
    member.trial.step_ns.insert(member.trial.step_ns.end(), ran->step_ns.begin(), ran->step_ns.end());
    note_loss(member.trial, ran->loss);
  }
  member.worker->freeze();
  take_failure(member);
}

// Nothing runs; Ctrl-C ends it.
void pause_for(double seconds) {
  if (seconds <= 0) return;
  pollfd interrupt = {.fd = proc::interrupt_fd(), .events = POLLIN, .revents = 0};
  ::poll(&interrupt, 1, static_cast<int>(std::lround(seconds * 1e3)));
}

template <typename T>
void shuffle(std::vector<T>& items, tensor::Rng& rng) {
  for (size_t i = items.size(); i > 1; --i)
    std::swap(items[i - 1], items[static_cast<size_t>(rng.integer(0, static_cast<int64_t>(i) - 1))]);
}

// Whether no process of this run had compiled the contender's step before: neither the gate's nor a heat's.
bool first_of_its_kind(const Trial& trial, const std::vector<Trial>& before,
                       const std::vector<Parity>& parities) {
  const auto same = [&](const auto& record) { return record.contender == trial.contender; };
  const auto proof = std::find_if(parities.begin(), parities.end(), same);
  return std::none_of(before.begin(), before.end(), same) &&
         (proof == parities.end() || proof->first_step_cold_ns == 0);
}

}  // namespace

std::vector<size_t> eligible(const Plan& plan, const std::vector<Parity>& parities) {
  std::vector<size_t> lanes;
  for (size_t i = 0; i < plan.lanes.size(); ++i) {
    if (plan.lanes[i].failure) continue;
    const auto proof = std::find_if(parities.begin(), parities.end(), [&](const Parity& p) {
      return p.contender == plan.manifest.contenders[i].id;
    });
    if (proof == parities.end() || proof->failure) continue;
    if (plan.recipe.training.track == ir::Track::kAsIs || proof->passed()) lanes.push_back(i);
  }
  return lanes;
}

std::set<std::string> failed_in(const std::vector<Trial>& trials) {
  std::set<std::string> failed;
  for (const Trial& trial : trials) {
    if (trial.failure || trial.invalid) failed.insert(trial.contender);
  }
  return failed;
}

std::optional<double> heat_value(const Trial& trial) {
  if (trial.failure || trial.invalid || trial.bursts.empty()) return std::nullopt;
  std::vector<double> ms;
  for (const Burst& burst : trial.bursts) ms.push_back(burst.ms_per_step());
  const auto value = stats::log_trimmed_mean(ms);
  return value ? std::optional<double>(*value) : std::nullopt;
}

Result<stats::PairTable> tabulate(const std::vector<Trial>& trials,
                                  const std::vector<std::string>& entrants) {
  stats::PairTable table(entrants.size());
  const std::set<std::string> out = failed_in(trials);
  std::set<int> heats;
  for (const Trial& trial : trials) heats.insert(trial.heat);
  for (const int heat : heats) {
    stats::HeatResult result;
    result.log_ms.resize(entrants.size());
    for (const Trial& trial : trials) {
      const auto at = std::find(entrants.begin(), entrants.end(), trial.contender);
      if (trial.heat == heat && at != entrants.end() && !out.contains(trial.contender)) {
        result.log_ms[static_cast<size_t>(at - entrants.begin())] = heat_value(trial);
      }
    }
    CHECK_OK(table.add(result));
  }
  return table;
}

int64_t least_heats(double alpha, size_t contenders) {
  const double pairs = std::max(1.0, static_cast<double>(contenders * (contenders - 1)) / 2);
  size_t n = 2;
  while (!std::isfinite(stats::critical_ratio(n, alpha / pairs))) ++n;
  return static_cast<int64_t>(n);
}

Status check_budget(const recipe::Recipe& recipe) {
  const size_t k = recipe.contenders.size();
  if (k < 2) return Done{};
  const int64_t least = least_heats(recipe.alpha, k);
  if (recipe.budget.heats < least) {
    return Error{.message = fmt::format(
                     "budget.heats = {} cannot decide anything between {} contenders at alpha = {:g}",
                     recipe.budget.heats, k, recipe.alpha),
                 .where = recipe::where(recipe, "budget", "heats"),
                 .remedy = fmt::format("allow at least {} heats, or race fewer contenders", least)};
  }
  // The bursts alone; starting the workers comes on top.
  const double minutes = static_cast<double>(least) * static_cast<double>(recipe.race.bursts) *
                         recipe.race.burst_seconds * static_cast<double>(k) / 60;
  if (recipe.budget.minutes < minutes) {
    return Error{
        .message =
            fmt::format("budget.minutes = {:g} cannot decide: {} heats of {} contenders time bursts for "
                        "{:.1f} minutes",
                        recipe.budget.minutes, least, k, minutes),
        .where = recipe::where(recipe, "budget", "minutes"),
        .remedy = fmt::format("allow more than {:.1f} minutes, or shorten race.bursts or race.burst_seconds",
                              minutes)};
  }
  return Done{};
}

namespace {

// A heat under way.
class Heat {
 public:
  Heat(const Plan& plan, const std::vector<size_t>& lanes, int number, const Watch& watch,
       Happening happening)
      : plan_(plan),
        lanes_(lanes),
        watch_(watch),
        now_(std::move(happening)),
        rng_(plan.recipe.training.seed * 1000003 + static_cast<uint64_t>(number)),
        members_(lanes.size()),
        order_(lanes.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    now_.total = static_cast<int>(lanes.size() * (2 + static_cast<size_t>(plan.recipe.race.bursts)));
    now_.done = 0;
    for (size_t i = 0; i < lanes.size(); ++i) {
      members_[i].trial.contender = plan.lanes[lanes[i]].entry.contender.id;
      members_[i].trial.heat = number;
    }
  }

  void start(size_t at_once) {
    shuffle(order_, rng_);
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t k = next++; k < order_.size() && !proc::interrupted(); k = next++) {
        Member& member = members_[order_[k]];
        member.trial.alone = at_once == 1;
        tell("starting", order_[k]);
        start_member(plan_, plan_.lanes[lanes_[order_[k]]].entry, member);
      }
    };
    std::vector<std::thread> beside;
    for (size_t i = 1; i < at_once; ++i) beside.emplace_back(work);
    work();
    for (std::thread& thread : beside) thread.join();
  }

  void time() {
    each("warming up", [&](Member& member) { warm_up(plan_, member); });
    for (int64_t round = 0; round < plan_.recipe.race.bursts; ++round) {
      shuffle(order_, rng_);
      each("timing", [&](Member& member) {
        pause_for(plan_.recipe.race.cooldown_seconds);
        run_burst(member);
      });
    }
  }

  std::vector<Trial> end() {
    std::vector<Trial> trials;
    for (Member& member : members_) {
      if (member.worker && member.worker->ok()) end_member(member);
      trials.push_back(std::move(member.trial));
    }
    return trials;
  }

 private:
  template <typename Act>
  void each(const std::string& what, Act act) {
    for (const size_t i : order_) {
      if (proc::interrupted() || !members_[i].worker || !members_[i].worker->ok()) continue;
      tell(what, i);
      act(members_[i]);
    }
  }

  void tell(const std::string& what, size_t member) {
    const std::lock_guard lock(telling_);
    Happening here = now_;
    here.elapsed_s += seconds_since(begin_);
    if (here.left_s) here.left_s = std::max(0.0, *here.left_s - seconds_since(begin_));
    here.detail = what + " " + members_[member].trial.contender;
    watch_(here);
    ++now_.done;
  }

  const Plan& plan_;
  const std::vector<size_t>& lanes_;
  const Watch& watch_;
  Happening now_;
  std::mutex telling_;
  tensor::Rng rng_;
  std::vector<Member> members_;
  std::vector<size_t> order_;
  int64_t begin_ = monotonic_clock().now_ns();
};

}  // namespace

std::vector<Trial> run_heat(const Plan& plan, const std::vector<size_t>& lanes, int heat, size_t at_once,
                            const Watch& watch, Happening happening) {
  Heat running(plan, lanes, heat, watch, std::move(happening));
  running.start(at_once);
  running.time();
  return running.end();
}

namespace {

// Starting is mostly importing and compiling on one core: members start two at a time, except where some
// contender runs for the first time, whose start-up is to be known.
size_t starts_at_once(const std::vector<size_t>& members, const std::vector<std::string>& entrants,
                      const std::vector<Trial>& trials) {
  const auto ran = [&](size_t m) {
    return std::any_of(trials.begin(), trials.end(),
                       [&](const Trial& t) { return t.contender == entrants[m] && t.alone; });
  };
  return std::all_of(members.begin(), members.end(), ran) ? 2 : 1;
}

// Nobody to compare with: one contender is left, and has not run often enough to have a time of its own.
std::vector<size_t> lone_member(const std::vector<Trial>& trials, const std::vector<std::string>& entrants,
                                const std::set<std::string>& out) {
  std::vector<size_t> left;
  for (size_t i = 0; i < entrants.size(); ++i) {
    if (!out.contains(entrants[i])) left.push_back(i);
  }
  if (left.size() != 1) return {};
  const auto heats = std::count_if(trials.begin(), trials.end(), [&](const Trial& trial) {
    return trial.contender == entrants[left[0]] && heat_value(trial);
  });
  return heats < kLoneHeats ? left : std::vector<size_t>{};
}

// Nothing where only heats are limited and none has run yet.
std::optional<double> time_left(const recipe::Budget& budget, int heat, double elapsed_s,
                                double last_heat_s) {
  if (!budget.unlimited_time()) return std::max(0.0, budget.minutes * 60 - elapsed_s);
  if (last_heat_s == 0) return std::nullopt;
  return last_heat_s * static_cast<double>(budget.heats - heat + 1);
}

}  // namespace

std::vector<size_t> next_members(const stats::PairTable& table, const stats::Race& race,
                                 const std::vector<bool>& failed, size_t live) {
  std::vector<size_t> unmet, undecided;
  for (size_t i = 0; i < table.contenders(); ++i) {
    if (!failed[i] && !race.standings[i].effect) unmet.push_back(i);
  }
  for (const size_t i : race.still_undecided) {
    if (!failed[i] && i != race.leader) undecided.push_back(i);
  }
  std::stable_sort(undecided.begin(), undecided.end(),
                   [&](size_t a, size_t b) { return table.heats(a) < table.heats(b); });
  std::vector<size_t> members;
  if (race.leader && !failed[*race.leader]) members.push_back(*race.leader);
  for (const auto* group : {&unmet, &undecided}) {
    for (const size_t i : *group) {
      if (members.size() < live) members.push_back(i);
    }
  }
  if (members.size() < 2) return {};
  return members;
}

Status race(const Plan& plan, const std::vector<Parity>& parities, std::vector<Trial> trials,
            const Watch& watch) {
  const std::vector<size_t> lanes = eligible(plan, parities);
  std::vector<std::string> entrants;
  for (const size_t lane : lanes) entrants.push_back(plan.manifest.contenders[lane].id);
  const int64_t begin = monotonic_clock().now_ns();
  const double budget_s = plan.recipe.budget.minutes * 60;
  int heat = 0;
  for (const Trial& trial : trials) heat = std::max(heat, trial.heat);
  Happening now{.stage = "race", .contenders = static_cast<int>(plan.lanes.size())};
  double last_heat_s = 0;
  while (!proc::interrupted() && heat < plan.recipe.budget.heats) {
    TRY(const stats::PairTable table, tabulate(trials, entrants));
    const stats::Race state =
        stats::race_state(table, {.alpha = plan.recipe.alpha, .margin = plan.recipe.margin});
    const std::set<std::string> out = failed_in(trials);
    std::vector<bool> failed;
    for (const std::string& id : entrants) failed.push_back(out.contains(id));
    size_t live = static_cast<size_t>(plan.recipe.race.live);
    if (const int64_t memory = available_memory_bytes(); memory > 0) {
      live = std::clamp<size_t>(static_cast<size_t>(memory / kBytesPerWorker), 2, live);
    }
    std::vector<size_t> members = next_members(table, state, failed, live);
    if (members.empty()) members = lone_member(trials, entrants, out);
    // Out of time when most of another heat would lie beyond the budget.
    if (members.empty() || (heat > 0 && seconds_since(begin) + last_heat_s / 2 > budget_s)) break;
    now.heat = ++heat;
    now.elapsed_s = seconds_since(begin);
    now.left_s = time_left(plan.recipe.budget, heat, now.elapsed_s, last_heat_s);
    now.failed = static_cast<int>(plan.lanes.size() - lanes.size() +
                                  static_cast<size_t>(std::count(failed.begin(), failed.end(), true)));
    now.survivors = static_cast<int>(entrants.size() - state.eliminated.size()) -
                    static_cast<int>(std::count(failed.begin(), failed.end(), true));
    if (state.leader) {
      now.leader = entrants[*state.leader];
      std::vector<double> ms;
      for (const Trial& trial : trials) {
        if (trial.contender == now.leader && heat_value(trial)) ms.push_back(std::exp(*heat_value(trial)));
      }
      now.leader_ms = stats::median(ms);
    }
    std::vector<size_t> heat_lanes;
    for (const size_t m : members) heat_lanes.push_back(lanes[m]);
    const size_t at_once = starts_at_once(members, entrants, trials);
    const int64_t heat_begin = monotonic_clock().now_ns();
    std::vector<Trial> fresh = run_heat(plan, heat_lanes, heat, at_once, watch, now);
    last_heat_s = seconds_since(heat_begin);
    if (proc::interrupted()) break;  // a heat cut short is void
    for (Trial& trial : fresh) {
      trial.cold = first_of_its_kind(trial, trials, parities);
      CHECK_OK(plan.directory.append(trial));
      trials.push_back(std::move(trial));
    }
  }
  return Done{};
}

}  // namespace bakeoff::lab
