#include "gate/prove_all.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "gate/gate.h"
#include "gate/gate_variants.h"
#include "gate/proofs.h"
#include "plan/lane.h"
#include "proc/interrupt.h"
#include "reference/reference.h"

namespace bakeoff {
namespace {

// One contender on its way through the gate.
struct GateTask {
  ContenderStart entry = {};
  std::string identity = {};  // of its environment
  std::string key = {};
  Parity parity = {};
};

// The proofs of one plan, two contenders at a time: nothing is timed, and most of the work is importing and
// compiling on one core.
class Proving {
 public:
  Proving(const Plan& plan, const Reference& reference, const Watch& watch, Happening now)
      : plan_(plan), reference_(reference), watch_(watch), now_(std::move(now)) {}

  void run(std::vector<GateTask>& tasks) {
    // Taken from both ends, so that two of one framework seldom run together: the slowest would be last.
    std::atomic<size_t> taken{0};
    const auto work = [&] {
      for (size_t k = taken++; k < tasks.size(); k = taken++) {
        GateTask& task = tasks[k % 2 == 0 ? k / 2 : tasks.size() - 1 - k / 2];
        if (task.parity.reused) continue;
        float64(task);
        // The first step of a process with an empty cache is measured, so this one runs later, alone.
        if (keeps_compilations(task.entry.contender)) continue;
        float32(task);
        task.parity.first_step_cold_ns = 0;
        finish(task);
      }
    };
    std::thread second(work);
    work();
    second.join();
    for (GateTask& task : tasks) {
      if (task.parity.reused || !keeps_compilations(task.entry.contender)) continue;
      float32(task);
      finish(task);
    }
  }

 private:
  void float64(GateTask& task) {
    if (!begin_stage(task, "in float64", "gate64")) return;
    task.parity = prove_float64(plan_.gate, reference_, twin_of(task.entry));
    task.parity.referee_losses = reference_.losses32;
  }
  void float32(GateTask& task) {
    const bool equalised = plan_.recipe.training.track == ir::Track::kEqualised;
    if (task.parity.failure || (!equalised && !is_variant(task.entry))) return;
    if (!begin_stage(task, "in float32", "gate32")) return;
    if (equalised) prove_float32(plan_.gate, reference_, twin_of(task.entry), task.parity);
    prove_variant(plan_.gate, reference_, task.entry, task.parity);
  }

  static void finish(GateTask& task) {
    if (!proc::interrupted()) task.parity.proven = utc_now();
  }

  // False: interrupted.
  bool begin_stage(GateTask& task, const std::string& what, const std::string& log) {
    if (proc::interrupted()) return false;
    const std::lock_guard lock(telling_);
    Happening here = now_;
    here.detail = task.entry.contender.id + " " + what;
    watch_(here);
    if (now_.done < now_.total - 1) ++now_.done;
    const std::string stem = task.entry.script.stem().string();
    task.entry.worker.log_file = plan_.directory.logs() / (stem + "." + log + ".log");
    // As in the race: a script must not see from its process whether it is proven or timed.
    task.entry.worker.ring_file = new_shared_file(plan_.directory.path());
    return true;
  }

  const Plan& plan_;
  const Reference& reference_;
  const Watch& watch_;
  Happening now_;
  std::mutex telling_;
};

// It is reported before any other failure: if another one were repaired, this one would remain.
void refuse_precision(GateTask& task) {
  const auto device = task.parity.effective.find("device");
  if (device == task.parity.effective.end()) return;
  if (auto failure = no_such_precision(task.entry.contender, device->second))
    task.parity.failure = std::move(failure);
}

// Finds the proofs of earlier runs.
Status reuse(const Plan& plan, std::vector<GateTask>& tasks) {
  if (plan.proofs.empty()) return Done{};
  const ProofStore proofs(plan.proofs);
  const Host& host = plan.manifest.host;
  const std::string job = job_key(plan.gate, plan.manifest.data_sha256);
  for (GateTask& task : tasks) {
    TRY(task.key, proof_key(job, task.entry, host.cpu + host.kernel + task.identity));
    if (auto known = proofs.find(task.key)) {
      task.parity = std::move(*known);
      task.parity.contender = task.entry.contender.id;
    }
  }
  return Done{};
}

Status note_referee_losses(Plan& plan, const std::vector<double>& losses) {
  if (plan.manifest.referee_losses == losses) return Done{};
  plan.manifest.referee_losses = losses;
  return plan.directory.write(plan.manifest);
}

// Proves the contenders that no earlier run has proven.
Status prove(Plan& plan, std::vector<GateTask>& tasks, const Watch& watch) {
  Happening now{.stage = "referee",
                .detail = "computing losses and gradients in float64",
                .contenders = static_cast<int>(plan.lanes.size())};
  watch(now);
  TRY(const Reference reference, make_reference(plan.gate));
  CHECK_OK(note_referee_losses(plan, reference.losses32));
  now.stage = "parity";
  now.total = 2 * static_cast<int>(tasks.size());
  Proving(plan, reference, watch, now).run(tasks);
  for (const GateTask& task : tasks) {
    if (task.parity.reused || task.parity.proven.empty()) continue;
    CHECK_OK(ProofStore(plan.proofs).keep(task.key, task.parity));
  }
  return Done{};
}

}  // namespace

Result<std::vector<Parity>> gate_all(Plan& plan, std::vector<Parity> done, const Watch& watch) {
  std::vector<GateTask> tasks;
  for (size_t i = 0; i < plan.lanes.size(); ++i) {
    const bool known = std::any_of(done.begin(), done.end(), [&](const Parity& p) {
      return p.contender == plan.manifest.contenders[i].id;
    });
    if (known || plan.lanes[i].failure) continue;
    tasks.push_back({.entry = plan.lanes[i].entry, .identity = plan.lanes[i].identity});
  }
  if (tasks.empty()) return done;
  CHECK_OK(reuse(plan, tasks));
  if (std::all_of(tasks.begin(), tasks.end(), [](const GateTask& t) { return t.parity.reused; })) {
    CHECK_OK(note_referee_losses(plan, tasks[0].parity.referee_losses));
  } else {
    CHECK_OK(prove(plan, tasks, watch));
  }
  for (GateTask& task : tasks) {
    if (task.parity.proven.empty()) continue;  // interrupted
    refuse_precision(task);
    CHECK_OK(plan.directory.append(task.parity));
    done.push_back(std::move(task.parity));
  }
  return done;
}

}  // namespace bakeoff
