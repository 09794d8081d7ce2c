#include "gate/prove_all.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
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

// What the referee computes for a plan. The float32 part takes longest, and is computed while the first
// contenders start and are proven in float64.
class Referee {
 public:
  static Result<std::unique_ptr<Referee>> start(const GateJob& job, bool may_cut) {
    std::unique_ptr<Referee> referee(new Referee(job));
    if (may_cut) {
      TRY(referee->cut_, cut_job(job));
    }
    if (referee->cut_) {
      TRY(referee->cut_reference_, make_reference64(*referee->cut_));
      TRY(referee->whole_, start_reference(job));
    } else {
      TRY(referee->whole_, make_reference64(job));
    }
    referee->single_ = std::async(std::launch::async, [r = referee.get()] {
                         return add_reference32(r->job_, r->whole_);
                       }).share();
    return referee;
  }

  // Proofs 1 and 2, on fewer rows if the job could be cut.
  Proof prove64(const ContenderStart& contender) {
    Proof proof(contender);
    const bool cut = cut_.has_value() && contender.worker.command.empty();  // a compiled batch stays as it is
    if (cut) {
      proof.float64(*cut_, cut_reference_);
      if (proof.parity.passed() || proc::interrupted()) return proof;
      // The script's own batch decides: it may be written for that alone.
      proof = Proof(contender);
    }
    if (!cut_) {
      proof.float64(job_, whole_);
    } else if (const auto& whole = whole64()) {
      proof.float64(job_, *whole);
    } else {
      proof.parity.failure = Failure{Stage::kParity, "the referee: " + whole.error().text(), {}};
    }
    return proof;
  }

  // Everything, from a successful wait() on.
  const Reference& whole() const { return whole_; }
  const Status& wait() const { return single_.get(); }

 private:
  explicit Referee(const GateJob& job) : job_(job) {}

  // The float64 part of the whole job, which was cut; computed by the first call.
  const Result<Reference>& whole64() {
    std::call_once(once_, [&] {
      GateJob job = job_;
      job.folder /= "whole";
      const auto folder = make_folder(job.folder);
      whole64_ = folder ? make_reference64(job) : Result<Reference>(folder.error());
    });
    return *whole64_;
  }

  GateJob job_;
  std::optional<GateJob> cut_ = {};
  Reference cut_reference_ = {}, whole_ = {};
  std::once_flag once_;
  std::optional<Result<Reference>> whole64_ = {};
  std::shared_future<Status> single_ = {};
};

// The proofs of one plan, two contenders at a time: nothing is timed, and most of the work is importing and
// compiling on one core.
class Proving {
 public:
  Proving(const Plan& plan, Referee& referee, const Watch& watch, Happening now)
      : plan_(plan), referee_(referee), watch_(watch), now_(std::move(now)) {}

  void run(std::vector<GateTask>& tasks) {
    std::vector<std::optional<Proof>> alone(tasks.size());
    const std::vector<size_t> order = order_of(tasks);
    std::atomic<size_t> taken{0};
    const auto work = [&] {
      for (size_t k = taken++; k < order.size(); k = taken++) {
        const size_t at = order[k];
        GateTask& task = tasks[at];
        if (task.parity.reused) continue;
        std::optional<Proof> proof = float64(task);
        if (!proof) continue;
        // The first step of a process with an empty cache is measured, so this one goes on later, alone.
        if (keeps_compilations(task.entry.contender)) {
          alone[at] = std::move(proof);
          continue;
        }
        float32(task, *proof);
        task.parity.first_step_cold_ns = 0;
      }
    };
    std::thread second(work);
    work();
    second.join();
    for (size_t at = 0; at < tasks.size(); ++at) {
      if (alone[at]) float32(tasks[at], *alone[at]);
      alone[at].reset();
    }
  }

 private:
  // From both ends, so that two of one framework seldom run together: the slowest would be last. The short
  // first parts of those that go on alone fill the end.
  static std::vector<size_t> order_of(const std::vector<GateTask>& tasks) {
    std::vector<size_t> order;
    for (size_t k = 0; k < tasks.size(); ++k) order.push_back(k % 2 == 0 ? k / 2 : tasks.size() - 1 - k / 2);
    std::stable_partition(order.begin(), order.end(),
                          [&](size_t at) { return !keeps_compilations(tasks[at].entry.contender); });
    return order;
  }

  std::optional<Proof> float64(GateTask& task) {
    if (!begin_stage(task, "in float64")) return std::nullopt;
    const std::string stem = task.entry.script.stem().string();
    task.entry.worker.log_file = plan_.directory.logs() / (stem + ".gate.log");
    // Workers share the processors: a thread that waits must not spin. No result depends on it.
    task.entry.worker.environment.emplace("OMP_WAIT_POLICY", "passive");
    // As in the race: a script must not see from its process whether it is proven or timed.
    task.entry.worker.ring_file = new_shared_file(plan_.directory.path());
    return referee_.prove64(twin_of(task.entry));
  }

  void float32(GateTask& task, Proof& proof) {
    const bool equalised = plan_.recipe.training.track == ir::Track::kEqualised;
    if (!proof.parity.failure && (equalised || is_variant(task.entry))) {
      if (!begin_stage(task, "in float32")) return;
      const auto wait = [&] { return referee_.wait().has_value(); };
      if (equalised) proof.float32(plan_.gate, referee_.whole(), {}, wait);
      if (wait()) prove_variant(plan_.gate, referee_.whole(), task.entry, proof.parity);
    }
    task.parity = std::move(proof.parity);
    if (!proc::interrupted()) task.parity.proven = utc_now();
  }

  // False: interrupted.
  bool begin_stage(const GateTask& task, const std::string& what) {
    if (proc::interrupted()) return false;
    const std::lock_guard lock(telling_);
    Happening here = now_;
    here.detail = task.entry.contender.id + " " + what;
    watch_(here);
    if (now_.done < now_.total - 1) ++now_.done;
    return true;
  }

  const Plan& plan_;
  Referee& referee_;
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
  // The distances of precision variants are measured on whole batches, and as-is most contenders differ.
  const bool may_cut =
      plan.recipe.training.track == ir::Track::kEqualised &&
      std::none_of(tasks.begin(), tasks.end(), [](const GateTask& task) { return is_variant(task.entry); });
  TRY(const std::unique_ptr<Referee> referee, Referee::start(plan.gate, may_cut));
  now.stage = "parity";
  now.total = 2 * static_cast<int>(tasks.size());
  Proving(plan, *referee, watch, now).run(tasks);
  CHECK_OK(referee->wait());
  CHECK_OK(note_referee_losses(plan, referee->whole().losses32));
  for (GateTask& task : tasks) {
    if (!task.parity.reused) task.parity.referee_losses = referee->whole().losses32;
  }
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
