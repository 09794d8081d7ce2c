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
#include "lab/barrier.h"
#include "lab/controls.h"
#include "lab/host_watch.h"
#include "lab/race.h"
#include "lab/sensing.h"
#include "lab/usage.h"
#include "lab/warm_up.h"
#include "proc/interrupt.h"
#include "stats/racing.h"
#include "tensor/rng.h"

namespace bakeoff::lab {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kLongestBlock = 4;  // of a member, in blocks of the leader
constexpr double kLeastBlock = 1;    // seconds of the leader's block that say something about one step

// A member of a heat while it lives.
struct Member {
  std::unique_ptr<Worker> worker;
  Trial trial;
  WorkerSensors sensors;
  int64_t burst_steps = 2;
  double step_s = 0;  // the last one known of the warm-up
  // Of the round under way.
  int64_t cpu_ns = 0;
  int64_t jump_ns = 0;
  size_t bursts = 0, marks = 0;  // when it began
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

// A name that nobody uses: one who was killed while a worker started, and had our number, may have left his.
fs::path new_ring_file(const Plan& plan) {
  static std::atomic<int> rings{0};
  const fs::path folder = fs::is_directory("/dev/shm") ? "/dev/shm" : plan.directory.path();
  fs::path file;
  do {
    file = folder / fmt::format("bakeoff-{}-{}", ::getpid(), rings++);
  } while (fs::exists(file));
  return file;
}

// Import, build, first step; ends frozen.
void start_member(const Plan& plan, const GateContender& entry, Sensing& sensing, Member& member) {
  Trial& trial = member.trial;
  trial.started = utc_now();
  const int64_t begin = monotonic_clock().now_ns();
  WorkerSpec spec = entry.worker;
  spec.log_file =
      plan.directory.logs() / fmt::format("{}.heat{}.log", entry.script.stem().string(), trial.heat);
  spec.ring_file = new_ring_file(plan);
  member.worker = Worker::start(spec);
  Worker& worker = *member.worker;
  trial.start_ns = worker.start_ns();
  if (worker.ok()) member.sensors = sensing.attach(worker.pid());
  if (const auto imported = worker.import()) {
    trial.import_ns = imported->ns;
    trial.versions = imported->versions;
    trial.effective = imported->effective;
    sensing.add_device(member.sensors, spec.environment, trial);
  }
  trial.effective.merge(observe(worker.pid()));
  if (plan.recipe.race.cooldown_seconds > 0)
    trial.effective["cooldown"] = fmt::format("{:g} s", plan.recipe.race.cooldown_seconds);
  if (!plan.gpu_clock.empty() && trial.memory.contains("on_gpu"))
    trial.effective["gpu_clock"] = plan.gpu_clock;
  const bool as_is = plan.recipe.training.track == ir::Track::kAsIs;
  const auto built =
      worker.build({.script = entry.script,
                    .weights = as_is ? fs::path() : plan.directory.scripts() / "weights.safetensors",
                    .data = plan.gate.data,
                    .layout = entry.layout,
                    .dropout = true,
                    .predict = plan.recipe.training.predicts()},
                   trial.effective);
  if (built) trial.build_ns = *built;
  if (built) take_built_memory(worker, plan.sensors, trial);
  if (const auto first = worker.run(1, "first step")) {
    trial.first_step_ns = first->burst.ns;
    trial.start_up_ns = monotonic_clock().now_ns() - begin - first->burst.late_ns;
  }
  worker.freeze();
  take_failure(member);
}

// Steps before the bursts, with the machine to itself; they also tell how long a burst is.
void warm_up(Member& member, Sensing& sensing, int64_t steps) {
  if (steps <= 0) return;
  sensing.warm_up(member.sensors);
  member.worker->thaw();
  if (const auto warm = member.worker->run(steps, "warmup")) {
    Trial& trial = member.trial;
    trial.warmup_ns += warm->burst.ns;
    trial.warmup_step_ns.insert(trial.warmup_step_ns.end(), warm->step_ns.begin(), warm->step_ns.end());
    note_loss(trial, warm->loss);
    // What comes after the claimed end counts, too: else a worker that does not wait gets huge bursts.
    member.step_s = Burst{warm->burst.ns + warm->burst.late_ns, warm->burst.steps}.ms_per_step() / 1e3;
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

void run_burst(Member& member, Sensing& sensing) {
  const double used_before_s = tree_cpu_s(member.sensors.pid);
  const UsageMark before = sensing.begin(member.sensors);
  member.worker->thaw();
  auto ran = member.worker->run(member.burst_steps);
  if (ran) member.worker->freeze();
  auto used = sensing.end(member.sensors, before, member.trial);
  const auto of = [&](const char* name) { return used.contains(name) ? used.at(name) : 0.0; };
  const double used_s = std::max(0.0, tree_cpu_s(member.sensors.pid) - used_before_s);
  member.cpu_ns = std::llround(used_s * kNsPerSecond);
  if (ran) {
    ran->burst.switches = std::llround(of("involuntary_switches"));
    ran->burst.used = std::move(used);
    member.jump_ns = ran->jump_ns;
    member.trial.bursts.push_back(ran->burst);
    member.trial.step_ns.insert(member.trial.step_ns.end(), ran->step_ns.begin(), ran->step_ns.end());
    note_loss(member.trial, ran->loss);
  }
  take_failure(member);
}

// Single steps more tell outstanding work from threads that only spin.
void judge_barrier(Member& member) {
  const auto early = answers_early(member.trial);
  if (!early || member.trial.invalid) return;
  // The longest of a few: where others take the processor, spinning is seen for too short a time.
  constexpr int kLooks = 5;
  int64_t longest = 0;
  member.worker->thaw();
  for (int look = 0; look < kLooks && member.worker->ok(); ++look) {
    if (const auto one = member.worker->run(1)) longest = std::max(longest, one->burst.late_ns);
  }
  member.worker->freeze();
  if (member.worker->ok() && is_outstanding_work(member.trial.bursts, longest)) member.trial.invalid = early;
  take_failure(member);
}

// A heat under way.
class Heat {
 public:
  Heat(const Plan& plan, const std::vector<size_t>& lanes, int number, const HeatOptions& options,
       const Watch& watch, Happening happening)
      : plan_(plan),
        lanes_(lanes),
        options_(options),
        watch_(watch),
        now_(std::move(happening)),
        rng_(plan.recipe.training.seed * 1000003 + static_cast<uint64_t>(number)),
        members_(lanes.size()),
        order_(lanes.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    now_.total = static_cast<int>(lanes.size() * (3 + static_cast<size_t>(plan.recipe.race.bursts)));
    now_.done = 0;
    host_ = plan.host ? plan.host : machine_eye(plan.lanes[lanes.front()].entry.worker.cpus, plan.sensors);
    for (size_t i = 0; i < lanes.size(); ++i) {
      members_[i].trial.contender = plan.lanes[lanes[i]].entry.contender.id;
      members_[i].trial.heat = number;
      members_[i].trial.confirms = options.confirms;
    }
    draw_start_order(number);
  }

  void start() {
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t k = next++; k < order_.size() && !proc::interrupted(); k = next++) {
        Member& member = members_[order_[k]];
        member.trial.alone = options_.at_once == 1;
        tell("starting", order_[k]);
        start_member(plan_, plan_.lanes[lanes_[order_[k]]].entry, sensing_, member);
      }
    };
    std::vector<std::thread> beside;
    for (size_t i = 1; i < options_.at_once; ++i) beside.emplace_back(work);
    work();
    for (std::thread& thread : beside) thread.join();
  }

  void time() {
    each("first steps of", [&](Member& member) { warm_up(member, sensing_, 1); });
    drop_the_hopeless();
    each("warming up", [&](Member& member) { finish_warm_up(member); });
    int64_t reruns = plan_.recipe.race.host.max_reruns;
    for (int64_t round = 0; round < plan_.recipe.race.bursts && !proc::interrupted();) {
      const HostRound seen = run_round();
      const bool jumped = seen.busy.starts_with(kClockJump);
      const bool again = !seen.busy.empty() && reruns-- > 0;
      if (again) now_.total += static_cast<int>(order_.size());
      settle(seen, again, again || jumped);
      if (!again) ++round;
    }
  }

  std::vector<Trial> end() {
    std::vector<Trial> trials;
    for (Member& member : members_) {
      const auto goes_on = [&] { return member.worker && member.worker->ok() && !proc::interrupted(); };
      if (goes_on()) judge_barrier(member);
      if (goes_on()) take_memory(*member.worker, plan_.sensors, member.trial);
      if (goes_on()) take_transfer(*member.worker, member.trial);
      find_warm_up(member.trial, plan_.recipe.margin);
      if (member.worker && member.worker->ok()) end_member(member);
      trials.push_back(std::move(member.trial));
    }
    return trials;
  }

 private:
  static constexpr const char* kClockJump = "the clock jumped";
  // Of a few short steps most is what comes after a pause; a burst planned by them would be as short.
  static constexpr double kTellingWarmUp = 0.05;  // seconds
  static constexpr int kWarmUpRuns = 3;
  static constexpr int64_t kWarmUpGrowth = 16;

  // Every lane has a key for each two heats: the order does not depend on who else runs, and an even heat
  // reverses it.
  void draw_start_order(int number) {
    tensor::Rng rng(plan_.recipe.training.seed * 1000003 + static_cast<uint64_t>((number + 1) / 2));
    std::vector<uint64_t> keys(plan_.lanes.size());
    for (uint64_t& key : keys) key = rng.next();
    std::sort(order_.begin(), order_.end(),
              [&](size_t a, size_t b) { return keys[lanes_[a]] < keys[lanes_[b]]; });
    if (number % 2 == 0) std::reverse(order_.begin(), order_.end());
  }

  // Seconds of what a burst of so long steps takes, all of them.
  double block_s(double step_s) const {
    const recipe::Race& race = plan_.recipe.race;
    return static_cast<double>(race.bursts * stats::burst_steps(step_s, race.burst_seconds, race.bursts, 0)) *
           step_s;
  }

  // The faster of the first two steps counts: the first may have compiled.
  void drop_the_hopeless() {
    for (const Member& member : members_) {
      if (options_.leader_block_s > 0 || member.step_s <= 0) continue;
      leader_block_s_ =
          leader_block_s_ > 0 ? std::min(leader_block_s_, block_s(member.step_s)) : block_s(member.step_s);
    }
    leader_block_s_ = std::max(leader_block_s_, kLeastBlock);
    for (size_t i = 0; i < members_.size(); ++i) {
      Member& member = members_[i];
      if (!member.worker || !member.worker->ok() || options_.timed.contains(lanes_[i])) continue;
      const double first_s = static_cast<double>(member.trial.first_step_ns) / kNsPerSecond;
      const auto reason = stats::drop_reason(std::min(first_s, member.step_s), leader_block_s_);
      if (!reason) continue;
      member.trial.dropped = *reason;
      end_member(member);
      member.worker.reset();
    }
  }

  void finish_warm_up(Member& member) {
    const recipe::Race& race = plan_.recipe.race;
    const double cap_s = kLongestBlock * leader_block_s_;
    int64_t steps = race.warmup_steps - 1;
    if (cap_s > 0 && member.step_s > 0)
      steps = std::min(steps, static_cast<int64_t>(std::min(cap_s / member.step_s, 1e9)));
    for (int run = 0; run < kWarmUpRuns; ++run) {
      warm_up(member, sensing_, steps);
      member.burst_steps = stats::burst_steps(member.step_s, race.burst_seconds, race.bursts, cap_s);
      const bool tells = static_cast<double>(steps) * member.step_s >= kTellingWarmUp ||
                         member.burst_steps < std::max(kWarmUpGrowth, 4 * steps);
      if (tells || steps <= 0 || !member.worker->ok() || proc::interrupted()) return;
      steps *= kWarmUpGrowth;
    }
  }

  // One burst of everybody, with the host looked at before and after.
  HostRound run_round() {
    tensor::shuffle(order_, rng_);
    for (Member& member : members_) {
      member.cpu_ns = member.jump_ns = 0;
      member.marks = member.trial.step_ns.size();
      member.bursts = member.trial.bursts.size();
    }
    const sample::HostSnapshot before = host_();
    each("timing", [&](Member& member) {
      pause_for(plan_.recipe.race.cooldown_seconds);
      run_burst(member, sensing_);
    });
    double cpu_s = 0;
    for (const Member& member : members_) cpu_s += static_cast<double>(member.cpu_ns) / kNsPerSecond;
    HostRound seen = host_round(before, host_(), cpu_s, plan_.recipe.race.host);
    for (const Member& member : members_) {
      if (member.jump_ns == 0) continue;
      seen.busy = fmt::format("{}: a burst claims {:.3f} s more than went by", kClockJump,
                              static_cast<double>(member.jump_ns) / kNsPerSecond);
    }
    return seen;
  }

  // Records a round; all its bursts together are void, or count.
  void settle(HostRound round, bool again, bool is_void) {
    round.rerun = again;
    for (Member& member : members_) {
      Trial& trial = member.trial;
      if (member.bursts == trial.bursts.size()) continue;  // had no part in it
      trial.rounds.push_back(round);
      if (!is_void) continue;
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
  const HeatOptions options_;
  double leader_block_s_ = options_.leader_block_s;
  const Watch& watch_;
  Happening now_;
  Sensing sensing_{
      {.root = plan_.sensors, .sample_ms = plan_.recipe.race.sample_ms, .gpu_library = plan_.gpu_library}};
  std::mutex telling_;
  tensor::Rng rng_;
  std::vector<Member> members_;
  std::vector<size_t> order_;
  HostEye host_;
  int64_t begin_ = monotonic_clock().now_ns();
};

}  // namespace

std::vector<Trial> run_heat(const Plan& plan, const std::vector<size_t>& lanes, int heat,
                            const HeatOptions& options, const Watch& watch, Happening happening) {
  Heat running(plan, lanes, heat, options, watch, std::move(happening));
  running.start();
  running.time();
  return running.end();
}

}  // namespace bakeoff::lab
