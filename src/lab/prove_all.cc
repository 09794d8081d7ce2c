#include "lab/prove_all.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "lab/gate.h"
#include "lab/proofs.h"
#include "proc/interrupt.h"

namespace bakeoff::lab {
namespace {

// One contender on its way through the gate.
struct GateTask {
  GateContender entry = {};
  std::string identity = {};  // of its environment
  std::string key = {};
  Parity parity = {};
};

// Nothing is timed here, and most of it is importing and compiling on one core: two contenders side by side.
void prove_all_float64(const Plan& plan, const Reference& reference, std::vector<GateTask>& tasks,
                       const Watch& watch, const Happening& now) {
  std::atomic<size_t> next{0};
  std::mutex watching;
  const auto work = [&] {
    for (size_t i = next++; i < tasks.size() && !proc::interrupted(); i = next++) {
      GateTask& task = tasks[i];
      if (task.parity.reused) continue;
      {
        const std::lock_guard lock(watching);
        Happening here = now;
        here.detail = task.entry.contender.id + " in float64";
        watch(here);
      }
      task.entry.worker.log_file =
          plan.directory.logs() / (task.entry.script.stem().string() + ".gate64.log");
      task.parity = prove_float64(plan.gate, reference, task.entry);
    }
  };
  std::thread beside(work);
  work();
  beside.join();
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
  now.total = static_cast<int>(tasks.size());
  prove_all_float64(plan, reference, tasks, watch, now);
  const bool train = plan.recipe.training.track == ir::Track::kEqualised;
  for (GateTask& task : tasks) {
    Parity& parity = task.parity;
    if (now.done < now.total - 1) ++now.done;
    if (parity.reused) continue;
    if (proc::interrupted()) break;
    parity.referee_losses = reference.losses32;
    if (!parity.failure && train) {
      now.detail = task.entry.contender.id + " in float32";
      watch(now);
      task.entry.worker.log_file =
          plan.directory.logs() / (task.entry.script.stem().string() + ".gate32.log");
      prove_float32(plan.gate, reference, task.entry, parity);
    }
    if (proc::interrupted()) break;
    parity.proven = utc_now();
    CHECK_OK(ProofStore(plan.proofs).keep(task.key, parity));
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
    CHECK_OK(plan.directory.append(task.parity));
    done.push_back(std::move(task.parity));
  }
  return done;
}

}  // namespace bakeoff::lab
