#include "lab/heat_member.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>

#include "base/clock.h"
#include "base/files.h"
#include "lab/barrier.h"
#include "lab/controls.h"
#include "lab/usage.h"

namespace bakeoff::lab {
namespace {

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

// From the system's source of randomness: a seed of the recipe would tell.
bool chance(double probability) {
  std::random_device source;
  return static_cast<double>(source()) < probability * 4294967296.0;
}

// A name in memory that nobody uses: one who was killed while a worker started, and had our number, may have
// left his.
fs::path new_shared_file(const Plan& plan) {
  static std::atomic<int> files{0};
  const fs::path folder = fs::is_directory("/dev/shm") ? "/dev/shm" : plan.directory.path();
  fs::path file;
  do {
    file = folder / fmt::format("bakeoff-{}-{}", ::getpid(), files++);
  } while (fs::exists(file));
  return file;
}

// Steps after a pause that do not count: one, or 10 ms of them.
constexpr double kLeadIn = 0.01;  // seconds
int64_t lead_steps(const Member& member) {
  if (!(member.step_s > 0)) return 1;
  return std::clamp<int64_t>(std::llround(kLeadIn / member.step_s), 1, std::max<int64_t>(1, member.burst_steps));
}

// The file is there for the time of the request only.
std::optional<int64_t> nudge(const Plan& plan, Member& member, const Nudge& changes) {
  const fs::path file = new_shared_file(plan);
  const Status written = write_nudge(*member.audit, changes, file);
  std::optional<int64_t> ns;
  if (written)
    ns = member.worker->nudge(file);
  else
    member.trial.failure = Failure{"nudge", written.error().message, {}};
  std::error_code ignored;
  fs::remove(file, ignored);
  return ns;
}

// What comes before the clock starts. False: it failed.
bool prepare_burst(const Plan& plan, Member& member, ShownBurst& shown, Burst& burst) {
  Worker& worker = *member.worker;
  if (member.audit) {
    auto drawn = draw_nudge(*member.audit);
    if (!drawn) {
      member.trial.failure = Failure{"nudge", drawn.error().message, {}};
      return false;
    }
    shown.nudge = std::move(*drawn);
    shown.position = worker.steps_done();
    if (!worker.restore()) return false;
  }
  const auto lead = worker.lead_in(lead_steps(member));
  if (!lead) return false;
  shown.lead = burst.lead_steps = lead->burst.steps;
  burst.lead_ns = lead->burst.went_by_ns;
  if (!member.audit) return true;
  const auto ns = nudge(plan, member, shown.nudge);
  burst.nudge_ns = ns.value_or(0);
  return ns.has_value();
}

// Asks for what an audit needs.
void keep_evidence(const Plan& plan, Member& member, const Ran& ran, ShownBurst shown) {
  const auto losses = member.worker->shown();
  if (!losses) return;
  shown.burst = member.trial.bursts.size() + member.trial.void_bursts.size();
  shown.steps = ran.burst.steps;
  shown.losses = losses->losses;
  shown.mean_loss = losses->mean;
  shown.probe = ran.probe;
  shown.state = new_shared_file(plan);
  if (member.worker->state(shown.state)) member.shown.push_back(std::move(shown));
}

}  // namespace

void start_member(const Plan& plan, const GateContender& entry, Sensing& sensing, Member& member) {
  Trial& trial = member.trial;
  trial.started = utc_now();
  const int64_t begin = monotonic_clock().now_ns();
  WorkerSpec spec = entry.worker;
  spec.log_file =
      plan.directory.logs() / fmt::format("{}.heat{}.log", entry.script.stem().string(), trial.heat);
  spec.ring_file = new_shared_file(plan);
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

void rehearse(const Plan& plan, Member& member) {
  if (!member.audit || !member.worker->ok()) return;
  member.worker->thaw();
  ShownBurst ignored;
  Burst burst;
  if (prepare_burst(plan, member, ignored, burst)) member.worker->lead_in(1);
  member.worker->freeze();
  take_failure(member);
}

void run_burst(const Plan& plan, Member& member, Sensing& sensing, double draw) {
  const double used_before_s = tree_cpu_s(member.sensors.pid);
  member.worker->thaw();
  ShownBurst shown;
  Burst before;
  std::optional<Ran> ran;
  std::map<std::string, double> used;
  if (prepare_burst(plan, member, shown, before)) {
    const UsageMark begin = sensing.begin(member.sensors);
    ran = member.worker->run(member.burst_steps);
    used = sensing.end(member.sensors, begin, member.trial);
  }
  // Drawn when it is over: it cannot be another burst for that.
  if (ran && member.audit && chance(draw)) keep_evidence(plan, member, *ran, std::move(shown));
  if (ran) member.worker->freeze();
  const auto of = [&](const char* name) { return used.contains(name) ? used.at(name) : 0.0; };
  const double used_s = std::max(0.0, tree_cpu_s(member.sensors.pid) - used_before_s);
  member.cpu_ns = std::llround(used_s * 1e9);
  if (ran) {
    ran->burst.lead_steps = before.lead_steps;
    ran->burst.lead_ns = before.lead_ns;
    ran->burst.nudge_ns = before.nudge_ns;
    ran->burst.switches = std::llround(of("involuntary_switches"));
    ran->burst.used = std::move(used);
    member.jump_ns = ran->jump_ns;
    member.trial.bursts.push_back(ran->burst);
    member.trial.step_ns.insert(member.trial.step_ns.end(), ran->step_ns.begin(), ran->step_ns.end());
    note_loss(member.trial, ran->loss);
  }
  take_failure(member);
}

void audit(const std::string& group, Member& member) {
  for (const ShownBurst& shown : member.shown) {
    auto found = audit_burst(*member.audit, shown, group);
    std::error_code ignored;
    fs::remove(shown.state, ignored);
    if (member.trial.failure) continue;
    if (!found) {
      member.trial.failure = Failure{"audit", found.error().message, {}};
      continue;
    }
    if (!found->differs.empty() && !member.trial.invalid)
      member.trial.invalid = "did other work in a timed burst than it was proven for: " + found->differs;
    member.trial.audits.push_back(std::move(*found));
  }
  member.shown.clear();
}

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

void end_member(Member& member) {
  const proc::ResourceUsage usage = member.worker->close();
  member.trial.user_s = usage.user_s;
  member.trial.system_s = usage.system_s;
  member.trial.peak_rss_bytes = usage.max_rss_bytes;
  member.trial.involuntary_switches = usage.involuntary_switches;
}

}  // namespace bakeoff::lab
