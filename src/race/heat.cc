// A heat: start(), time(), end().
//
// The members, the length of bursts and the number of rounds are fixed before the first burst, from the
// warm-up and the rest of the budget. They do not change afterwards: a heat that ends or grows because of
// what it shows would bias its own d. Only the end of the budget (after at least three rounds) and Ctrl-C
// cut a heat short.
//
//   warm_up(1)       one step of each; members that look hopeless leave (look_again: the fastest of three steps)
//   finish_warm_up   the other steps; more of them while they are too short to plan a burst from
//   rehearse         restores weights, nudges and leads in once, so that frameworks compile these now
//   fit_into_time    fewer rounds if the budget has no time for the planned ones
//   run_stretch      rounds of one burst each in random order, until the host's counters can judge them
//   settle           records them, or none if a clock jumped
//   audit_members    the referee repeats bursts; timing is over
//
// A member with long steps, or far behind, has a burst in every n-th round only (Member::every). Otherwise
// it would take most of a heat's time.

#include <fmt/format.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "emit/all/frameworks.h"
#include "evidence/groups.h"
#include "evidence/host_rounds.h"
#include "evidence/usage.h"
#include "evidence/warm_up.h"
#include "proc/interrupt.h"
#include "race/heat_member.h"
#include "race/race.h"
#include "race/sensing.h"
#include "race/usage_marks.h"
#include "sample/host_probe.h"
#include "stats/burst_plan.h"
#include "stats/racing.h"
#include "stats/trimmed.h"
#include "tensor/rng.h"

namespace bakeoff {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kLongestBlock = 4;   // longest block of a member, as a multiple of the planned one
constexpr int64_t kFewestBursts = 2;  // of a member in a heat
constexpr double kShareOfStarts =
    0.6;                              // of what is left of the budget; members that would start later do not
constexpr int64_t kFewestInTime = 3;  // rounds, however short the time
constexpr double kShortestBurst =
    0.05;  // seconds, of a member whose steps are much faster than the referee's

// Waits while nothing runs; Ctrl-C ends it.
void pause_for(double seconds) {
  if (seconds <= 0) return;
  pollfd interrupt = {.fd = proc::interrupt_fd(), .events = POLLIN, .revents = 0};
  ::poll(&interrupt, 1, static_cast<int>(std::lround(seconds * 1e3)));
}

// Steps of a burst. A recipe may state longer bursts than would be planned.
int64_t steps_of_burst(double step_s, double burst_s) {
  if (!(step_s > 0)) return 1;
  const auto filling = static_cast<int64_t>(std::llround(std::min(burst_s / step_s, 1e9)));
  return std::max(filling, stats::counted_steps(step_s, burst_s));
}

// A running heat.
class Heat {
 public:
  Heat(const Plan& plan, const HeatOrder& order, const Sensed& sensed, const AuditGround* audit,
       const Watch& watch, Happening happening)
      : plan_(plan),
        options_(order),
        sensed_(sensed),
        watch_(watch),
        now_(std::move(happening)),
        rng_(plan.recipe.training.seed * 1000003 + static_cast<uint64_t>(order.number)),
        members_(order.members.size()),
        order_(order.members.size()) {
    options_.plan = with_stated(order.plan, plan.recipe.race);
    rounds_ = options_.plan.rounds;
    std::iota(order_.begin(), order_.end(), size_t{0});
    now_.total = static_cast<int>(lanes_.size() * (3 + static_cast<size_t>(rounds_)));
    now_.done = 0;
    host_ = sensed.probe(plan.lanes[lanes_.front()].entry.worker.cpus);
    for (size_t i = 0; i < lanes_.size(); ++i) {
      members_[i].trial.contender = plan.lanes[lanes_[i]].entry.contender.id;
      members_[i].trial.heat = order.number;
      members_[i].trial.confirms = order.confirms;
      members_[i].audit = audit;
      members_[i].far_behind = options_.plan.far_behind.contains(i);
      const auto* framework = emit::find_framework(plan.lanes[lanes_[i]].entry.contender.framework);
      members_[i].nudges = framework == nullptr || !framework->weights_are_constants;
    }
    draw_start_order(order.number);
  }

  void start() {
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t k = next++; k < order_.size() && !proc::interrupted(); k = next++) {
        // Two can be compared; the others have no heat.
        if (k > 1 && seconds_since(begin_) + start_s(order_[k]) > kShareOfStarts * options_.left_s) continue;
        Member& member = members_[order_[k]];
        const ContenderStart& entry = plan_.lanes[lanes_[order_[k]]].entry;
        const ContenderStart in_time = ends_with_the_budget(entry);
        member.began = true;
        member.trial.alone = options_.at_once == 1;
        report("starting", order_[k]);
        const int64_t begin = monotonic_clock().now_ns();
        start_member(plan_, in_time, sensed_, sensing_, member);
        const bool hurried = in_time.worker.stage_seconds < entry.worker.stage_seconds;
        const auto& failure = member.trial.failure;
        if (hurried && failure && failure->cause == Cause::kTime) member.began = false;
        const std::lock_guard lock(telling_);
        starts_s_ += seconds_since(begin);
        ++started_;
      }
    };
    std::vector<std::thread> others;
    for (size_t i = 1; i < options_.at_once; ++i) others.emplace_back(work);
    work();
    for (std::thread& thread : others) thread.join();
  }

  void time() {
    each_in_time("first steps of", [&](Member& member) { warm_up(member, sensing_, 1); });
    drop_the_hopeless();
    each_in_time("warming up", [&](Member& member) {
      finish_warm_up(member);
      rehearse(plan_, member);
      plan_burst(member);  // other work on the machine makes steps longer, never shorter
    });
    fit_into_time();
    while (more_rounds()) settle(run_stretch());
  }

  HeatResult end() {
    HeatResult result;
    for (Member& member : members_) {
      const auto goes_on = [&] { return member.worker && member.worker->ok() && !proc::interrupted(); };
      if (goes_on()) judge_barrier(member);
      if (goes_on()) take_memory(*member.worker, sensed_.root, member.trial);
      if (goes_on()) take_transfer(*member.worker, member.trial);
      find_warm_up(member.trial, plan_.recipe.margin);
      if (member.worker && member.worker->ok()) end_member(member);
    }
    result.audits_s = audit_members();
    const int64_t heat_ns = monotonic_clock().now_ns() - begin_;
    for (Member& member : members_) {
      member.trial.heat_ns = heat_ns;
      if (member.began) result.trials.push_back(std::move(member.trial));
    }
    return result;
  }

 private:
  // Timing is over. Members that fewer than two heats have audited come first; the others in random order, while
  // audits have taken little of the race. Returns the seconds that it took.
  double audit_members() {
    constexpr double kShare = 0.1;
    const double share_s = kShare * (options_.race_s + seconds_since(begin_));
    const int64_t begin = monotonic_clock().now_ns();
    tensor::shuffle(order_, rng_);
    std::stable_partition(order_.begin(), order_.end(),
                          [&](size_t i) { return !options_.audited.contains(lanes_[i]); });
    for (const size_t i : order_) {
      Member& member = members_[i];
      if (proc::interrupted() || member.shown.empty()) continue;
      const bool again = options_.audited.contains(lanes_[i]) && !options_.confirms && begins_alike(member);
      report("auditing", i);
      audit(group_of(plan_.manifest.contenders[lanes_[i]]), member,
            again && options_.audits_s + seconds_since(begin) > share_s, [this] { return late(); });
    }
    return seconds_since(begin);
  }

  // Whether its bursts begin with losses as the referee's first steps have: all begin at the initial weights, nudged.
  bool begins_alike(const Member& member) const {
    const std::vector<double>& known = plan_.manifest.referee_losses;
    std::vector<double> first;
    for (const ShownBurst& shown : member.shown) {
      if (!shown.losses.empty()) first.push_back(shown.losses.front());
    }
    if (known.empty() || first.empty()) return true;
    const auto [least, most] = std::minmax_element(known.begin(), known.end());
    const double usual = stats::median(first);
    return usual > 0.7 * *least && usual < 1.5 * *most;
  }

  // A start that the budget cuts short says nothing of the contender, which has no trial then.
  ContenderStart ends_with_the_budget(ContenderStart entry) const {
    constexpr double kLeast = 10, kBeyond = 5;  // seconds
    double& most = entry.worker.stage_seconds;
    most = std::min(most, std::max(kLeast, options_.left_s - seconds_since(begin_) + kBeyond));
    return entry;
  }

  // A few short steps after a pause are slower than usual; a burst planned from them would be too short.
  static constexpr double kTellingWarmUp = 0.05;  // seconds
  static constexpr int kWarmUpRuns = 3;
  static constexpr int64_t kWarmUpGrowth = 16;

  // Every lane has one random key for two heats: the order does not depend on the other members, and an even
  // heat reverses it.
  void draw_start_order(int number) {
    tensor::Rng rng(plan_.recipe.training.seed * 1000003 + static_cast<uint64_t>((number + 1) / 2));
    std::vector<uint64_t> keys(plan_.lanes.size());
    for (uint64_t& key : keys) key = rng.next();
    std::sort(order_.begin(), order_.end(),
              [&](size_t a, size_t b) { return keys[lanes_[a]] < keys[lanes_[b]]; });
    if (number % 2 == 0) std::reverse(order_.begin(), order_.end());
    if (!options_.bases_first) return;
    std::ranges::stable_partition(
        order_, [&](size_t i) { return plan_.lanes[lanes_[i]].entry.contender.settings.empty(); });
  }

  // An unknown step counts as slow.
  static double fastest_step_s(const Member& member) {
    const double first_s = static_cast<double>(member.trial.first_step_ns) / kNsPerSecond;
    if (member.step_s <= 0 || first_s <= 0) return std::max(member.step_s, first_s);
    return std::min(member.step_s, first_s);
  }

  void drop_the_hopeless() {
    double leader_step_s = options_.leader_step_s;
    for (const Member& member : members_) {
      if (member.step_s <= 0) continue;
      if (options_.leader_step_s <= 0) {
        leader_step_s =
            leader_step_s > 0 ? std::min(leader_step_s, fastest_step_s(member)) : fastest_step_s(member);
      }
    }
    for (size_t i = 0; i < members_.size(); ++i) {
      Member& member = members_[i];
      if (!member.worker || !member.worker->ok() || options_.timed.contains(lanes_[i])) continue;
      if (stats::looks_hopeless(fastest_step_s(member), leader_step_s)) look_again(member, leader_step_s);
    }
  }

  // The longest that all bursts of a member may take together, lead-ins included, in seconds.
  double longest_block_s() const {
    return kLongestBlock * static_cast<double>(options_.plan.rounds) * options_.plan.burst_s;
  }

  // A planned burst is no longer than the referee can repeat (audit/audit.h).
  double longest_burst_s(const Member& member) const {
    const double planned_s = options_.plan.burst_s;
    if (member.audit == nullptr || plan_.recipe.race.burst_seconds > 0) return planned_s;
    const double audited_s = static_cast<double>(most_audited_steps(*member.audit)) * member.step_s;
    return std::clamp(audited_s, std::min(kShortestBurst, planned_s), planned_s);
  }

  bool late() const { return seconds_since(begin_) > options_.left_s; }
  bool more_rounds() const {
    return round_ < rounds_ && !proc::interrupted() && !(late() && round_ >= kFewestInTime);
  }

  // Seconds that the start of a member takes: as in its last heat, or the mean of this heat's starts.
  double start_s(size_t member) {
    const auto known = options_.start_s.find(lanes_[member]);
    if (known != options_.start_s.end()) return known->second;
    const std::lock_guard lock(telling_);
    return started_ > 0 ? starts_s_ / started_ : 0;
  }

  // Of the fewest rounds, as its bursts are planned now.
  double fewest_rounds_s(const Member& member) const {
    return static_cast<double>(std::min(kFewestInTime, rounds_) * (member.burst_steps + 1)) * member.step_s;
  }

  // As each(), while the budget has time for the member's `act` and for the fewest rounds of all that are ready, by
  // what the members before it took. A member without time leaves the heat and gets no trial; two stay in any case.
  template <typename Act>
  void each_in_time(const std::string& what, Act act) {
    double spent_s = 0, rounds_s = 0, ready = 0;
    each(what, [&](Member& member) {
      const double usual_s = ready > 0 ? (spent_s + rounds_s) / ready : 0;
      if (ready >= 2 && seconds_since(begin_) + usual_s + rounds_s > options_.left_s) {
        member.worker.reset();
        member.began = false;
        return;
      }
      const int64_t begin = monotonic_clock().now_ns();
      act(member);
      spent_s += seconds_since(begin);
      rounds_s += fewest_rounds_s(member);
      ++ready;
    });
  }

  // As many rounds as the budget has time for, by the steps of the warm-up: before any burst shows a time.
  void fit_into_time() {
    double round_s = 0, audits_s = 0;
    for (const Member& member : members_) {
      if (!member.worker || !member.worker->ok()) continue;
      const int64_t steps = member.burst_steps + 1;
      round_s += static_cast<double>(steps) * member.step_s / static_cast<double>(member.every);
      if (member.audit != nullptr) audits_s += audit_seconds(*member.audit, steps);
    }
    const double fit = (options_.left_s - seconds_since(begin_) - audits_s) / std::max(round_s, 1e-9);
    if (fit >= static_cast<double>(rounds_)) return;
    rounds_ = std::clamp(static_cast<int64_t>(std::max(fit, 0.0)), std::min(kFewestInTime, rounds_), rounds_);
    for (Member& member : members_) plan_burst(member);
  }

  void plan_burst(Member& member) const {
    const int64_t rounds = rounds_;
    member.burst_steps = steps_of_burst(member.step_s, longest_burst_s(member));
    const double burst_s = static_cast<double>(member.burst_steps + 1) * member.step_s;
    const double fit = burst_s > 0 ? std::floor(longest_block_s() / burst_s) : static_cast<double>(rounds);
    int64_t bursts = std::clamp(static_cast<int64_t>(std::min(fit, static_cast<double>(rounds))),
                                std::min(kFewestBursts, rounds), rounds);
    if (member.far_behind) bursts = std::min(bursts, std::max(kBurstsFarBehind, rounds / 2));
    member.every = rounds / bursts;
    member.planned_bursts = (rounds + member.every - 1) / member.every;
  }

  // Makes a third step while the host is watched. The first step may have compiled, so the fastest counts.
  void look_again(Member& member, double leader_step_s) {
    const double before_s = fastest_step_s(member);
    const double used_s = tree_cpu_s(member.sensors.pid) + own_cpu_s();
    const sample::HostSnapshot before = host_();
    warm_up(member, sensing_, 1);
    if (!member.worker->ok()) return;
    const HostRound seen = host_round(before, host_(), tree_cpu_s(member.sensors.pid) + own_cpu_s() - used_s,
                                      plan_.recipe.race.host);
    const double fastest_s = std::min(before_s, fastest_step_s(member));
    if (!stats::looks_hopeless(fastest_s, leader_step_s)) return;
    member.trial.behind_leader = fastest_s / leader_step_s;
    member.trial.dropped = fmt::format(
        "the fastest of its first 3 steps takes {:.3g} s, {:.3g} times the leader's step of {:.3g} s",
        fastest_s, member.trial.behind_leader, leader_step_s);
    member.trial.look_disturbed = seen.busy;
    if (!was_judged(seen) && plan_.recipe.race.host.max_busy < 1)
      member.trial.look_disturbed = "unknown whether the host was quiet";
    end_member(member);
    member.worker.reset();
  }

  void finish_warm_up(Member& member) {
    const recipe::Race& race = plan_.recipe.race;
    int64_t steps = race.warmup_steps - 1;
    if (member.step_s > 0)
      steps = std::min(steps, static_cast<int64_t>(std::min(longest_block_s() / member.step_s, 1e9)));
    for (int run = 0; run < kWarmUpRuns; ++run) {
      const double before_s = run > 0 ? member.step_s : std::numeric_limits<double>::infinity();
      warm_up(member, sensing_, steps);
      member.step_s = std::min(member.step_s, before_s);
      plan_burst(member);
      const bool enough = static_cast<double>(steps) * member.step_s >= kTellingWarmUp ||
                          member.burst_steps < std::max(kWarmUpGrowth, 4 * steps);
      if (enough || steps <= 0 || !member.worker->ok() || proc::interrupted()) return;
      steps *= kWarmUpGrowth;
    }
  }

  // Rounds that are judged together: one, or as many short ones as the host's counters need. Apart from their
  // duration all of them have the same numbers.
  struct Stretch {
    std::vector<HostRound> rounds;
    bool clock_jumped = false;
  };

  // Runs rounds, and reads the host before and after each.
  Stretch run_stretch() {
    for (Member& member : members_) {
      member.took.clear();
      member.marks = member.trial.step_ns.size();
      member.bursts = member.trial.bursts.size();
    }
    const double own_before_s = own_cpu_s();
    const sample::HostSnapshot before = host_();
    sample::HostSnapshot last = before;
    double cpu_s = 0;
    std::vector<int64_t> wall_ns;
    HostRound seen;
    Stretch stretch;
    for (; more_rounds(); ++round_) {
      const std::string jump = run_round(cpu_s, wall_ns.size());
      const sample::HostSnapshot after = host_();
      wall_ns.push_back(after.ns - last.ns);
      last = after;
      seen = host_round(before, last, cpu_s + own_cpu_s() - own_before_s, plan_.recipe.race.host);
      if (!jump.empty()) seen.busy = jump, stretch.clock_jumped = true;
      if (!seen.busy.empty() || seconds_between(before, last) >= sample::kLeastWall) {
        ++round_;
        break;
      }
    }
    const double short_of_s = sample::kLeastWall - seconds_between(before, last);
    if (seen.busy.empty() && short_of_s > 0 && !proc::interrupted()) {
      pause_for(short_of_s + 1e-3);
      const sample::HostSnapshot after = host_();
      seen = host_round(before, after, cpu_s + own_cpu_s() - own_before_s, plan_.recipe.race.host,
                        seconds_between(last, after));
    }
    seen.stretch = ++stretches_;
    for (const int64_t ns : wall_ns) {
      seen.wall_ns = ns;
      stretch.rounds.push_back(seen);
    }
    return stretch;
  }

  static double seconds_between(const sample::HostSnapshot& before, const sample::HostSnapshot& after) {
    return static_cast<double>(after.ns - before.ns) / kNsPerSecond;
  }

  // CPU time of this process: its threads read the host and the workers' sensors.
  static double own_cpu_s() {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / kNsPerSecond;
  }

  // Runs one burst of every member whose turn it is and adds their CPU time; it is round `number` of its
  // stretch. Returns in words a clock that jumped.
  std::string run_round(double& cpu_s, size_t number) {
    tensor::shuffle(order_, rng_);
    for (Member& member : members_) member.cpu_ns = member.jump_ns = 0;
    each("timing", [&](Member& member) {
      if (round_ % member.every != 0) return;
      pause_for(plan_.recipe.race.cooldown_seconds);
      const size_t before = member.trial.bursts.size();
      run_burst(plan_, member, sensing_, begin_);
      if (member.trial.bursts.size() > before) member.took.push_back(number);
    });
    std::string jump;
    for (const Member& member : members_) {
      cpu_s += static_cast<double>(member.cpu_ns) / kNsPerSecond;
      if (member.jump_ns == 0) continue;
      jump = fmt::format("the clock jumped: a burst reported {:.3f} s more than elapsed",
                         static_cast<double>(member.jump_ns) / kNsPerSecond);
    }
    return jump;
  }

  // Records a stretch; either all its bursts count or, if a clock jumped, none does.
  void settle(const Stretch& stretch) {
    for (Member& member : members_) {
      Trial& trial = member.trial;
      for (const size_t round : member.took) trial.rounds.push_back(stretch.rounds[round]);
      if (!stretch.clock_jumped) continue;
      trial.void_bursts.insert(trial.void_bursts.end(),
                               trial.bursts.begin() + static_cast<long>(member.bursts), trial.bursts.end());
      trial.bursts.resize(member.bursts);
      trial.step_ns.resize(member.marks);
    }
  }

  template <typename Act>
  void each(const std::string& what, Act act) {
    for (const size_t i : order_) {
      if (proc::interrupted() || !members_[i].worker || !members_[i].worker->ok()) continue;
      report(what, i);
      act(members_[i]);
    }
  }

  void report(const std::string& what, size_t member) {
    const std::lock_guard lock(telling_);
    Happening here = now_;
    here.elapsed_s += seconds_since(begin_);
    if (here.left_s) here.left_s = std::max(0.0, *here.left_s - seconds_since(begin_));
    if (here.heat_left_s) here.heat_left_s = std::max(0.0, *here.heat_left_s - seconds_since(begin_));
    here.detail = what + " " + members_[member].trial.contender;
    watch_(here);
    ++now_.done;
  }

  const Plan& plan_;
  HeatOrder options_;
  const std::vector<size_t>& lanes_ = options_.members;
  const Sensed& sensed_;
  const Watch& watch_;
  Happening now_;
  Sensing sensing_{
      {.root = sensed_.root, .sample_ms = plan_.recipe.race.sample_ms, .gpu_library = sensed_.gpu_library}};
  std::mutex telling_;
  double starts_s_ = 0, started_ = 0;  // durations of the starts so far, together, and their number
  tensor::Rng rng_;
  std::vector<Member> members_;
  std::vector<size_t> order_;
  int64_t stretches_ = 0;  // judged so far
  int64_t round_ = 0;      // rounds that were run
  int64_t rounds_ = 0;     // that are to be run
  sample::HostProbe host_;
  int64_t begin_ = monotonic_clock().now_ns();
};

}  // namespace

HeatResult run_heat(const Plan& plan, const HeatOrder& order, const Sensed& sensed, const Watch& watch,
                    Happening happening, const AuditGround* audit) {
  Heat running(plan, order, sensed, audit, watch, std::move(happening));
  running.start();
  running.time();
  return running.end();
}

}  // namespace bakeoff
