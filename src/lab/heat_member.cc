#include "lab/heat_member.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>

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

}  // namespace

void start_member(const Plan& plan, const GateContender& entry, Sensing& sensing, Member& member) {
  Trial& trial = member.trial;
  trial.started = utc_now();
  const int64_t begin = monotonic_clock().now_ns();
  WorkerSpec spec = entry.worker;
  spec.log_file =
      plan.directory.logs() / fmt::format("{}.heat{}.log", entry.script.stem().string(), trial.heat);
  spec.ring_file = new_ring_file(plan.directory.path());
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

void run_burst(Member& member, Sensing& sensing) {
  const double used_before_s = tree_cpu_s(member.sensors.pid);
  const UsageMark before = sensing.begin(member.sensors);
  member.worker->thaw();
  auto ran = member.worker->run(member.burst_steps);
  if (ran) member.worker->freeze();
  auto used = sensing.end(member.sensors, before, member.trial);
  const auto of = [&](const char* name) { return used.contains(name) ? used.at(name) : 0.0; };
  const double used_s = std::max(0.0, tree_cpu_s(member.sensors.pid) - used_before_s);
  member.cpu_ns = std::llround(used_s * 1e9);
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
