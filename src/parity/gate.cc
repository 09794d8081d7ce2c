// Most of a proof is importing a framework and compiling, on one processor, and nothing in it is timed. So
// two contenders are proven at a time, and the referee's float32 part, which takes longest, is computed
// beside their float64 proofs. Only the first step of a process whose compilation cache is empty is a time
// that is kept: such contenders (keeps_compilations) go on alone at the end.
//
// A race can start when two contenders of one precision are proven, so the first portion takes the shortest
// proofs and waits rather than begin one that those under way may make needless (take). A stage that the
// budget cut short says nothing of a contender: it is not recorded, and proven later.
//
// A script must not see whether it is proven or timed: its worker has the environment of the race, a file for
// step marks included.
//
// Large networks are proven in float64 on fewer rows than a batch. A script that fails there is proven again
// on its own batch, which decides: it may be written for that batch alone.

#include "parity/gate.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "evidence/groups.h"
#include "parity/proof.h"
#include "parity/proof_store.h"
#include "parity/proof_variants.h"
#include "plan/lane.h"
#include "proc/interrupt.h"
#include "reference/reference.h"

namespace bakeoff {

// One contender on its way through the gate.
struct GateTask {
  ContenderStart entry = {};
  std::string identity = {};  // of its environment
  std::string key = {};
  Parity parity = {};

  bool over() const { return !parity.proven.empty(); }
};

// What the referee computes for a plan. The float32 part takes longest, and is computed while the first
// contenders start and are proven in float64.
class Referee {
 public:
  static Result<std::unique_ptr<Referee>> start(const GateJob& job, bool may_cut, const Stop& stop) {
    std::unique_ptr<Referee> referee(new Referee(job));
    if (may_cut) {
      TRY(referee->cut_, cut_job(job));
    }
    if (referee->cut_) {
      TRY(referee->cut_reference_, make_reference64(*referee->cut_, stop));
      TRY(referee->whole_, start_reference(job));
    } else {
      TRY(referee->whole_, make_reference64(job, stop));
    }
    referee->single_ = std::async(std::launch::async, [r = referee.get(), stop] {
                         return add_reference32(r->job_, r->whole_, stop);
                       }).share();
    return referee;
  }

  // Proofs 1 and 2, on fewer rows if the job could be cut. Nullopt: no time was left for all rows.
  std::optional<Proof> prove64(const ContenderStart& contender, const Gate::TimeLeft& time_left) {
    Proof proof(contender);
    const bool cut = cut_.has_value() && contender.worker.command.empty();  // a compiled batch stays as it is
    if (cut) {
      proof.float64(*cut_, cut_reference_);
      if (proof.parity.passed() || proc::interrupted()) return proof;
      if (time_left() <= 0) return std::nullopt;
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

namespace {

// How many have passed in each precision group: only those of one group race with each other.
using Passed = std::map<std::string, size_t>;

bool reached(const Passed& passed, size_t enough) {
  return std::any_of(passed.begin(), passed.end(), [&](const auto& group) { return group.second >= enough; });
}

// No contender computes in a precision that its device does not have.
std::optional<Failure> missing_precision(const GateTask& task) {
  const auto device = task.parity.effective.find("device");
  if (device == task.parity.effective.end()) return std::nullopt;
  return no_such_precision(task.entry.contender, device->second);
}

// One portion of the proofs, two contenders at a time: nothing is timed, and most of the work is importing
// and compiling on one core.
class Portion {
 public:
  Portion(const Plan& plan, Referee& referee, const Watch& watch, Happening& now, Passed passed,
          size_t enough, const Gate::TimeLeft& time_left)
      : plan_(plan),
        referee_(referee),
        watch_(watch),
        now_(now),
        passed_(std::move(passed)),
        enough_(enough),
        time_left_(time_left) {}

  void run(std::vector<GateTask>& tasks) {
    // The first step of a process with an empty cache is measured, so these go on alone in the end.
    std::vector<std::optional<Proof>> alone(tasks.size());
    const auto is_alone = [&](size_t at) { return keeps_compilations(tasks[at].entry.contender); };
    std::vector<size_t> order = enough_ == Gate::kAll ? from_both_ends(tasks) : shortest_first(tasks);
    const auto first_alone =
        std::stable_partition(order.begin(), order.end(), [&](size_t at) { return !is_alone(at); });
    const std::vector<size_t> last(first_alone, order.end());
    // Their short first parts fill the end of a portion that proves all.
    if (enough_ != Gate::kAll) order.erase(first_alone, order.end());
    const auto work = [&] {
      while (const auto at = take(tasks, order)) {
        GateTask& task = tasks[*at];
        std::optional<Proof> proof = float64(task);
        if (is_alone(*at)) {
          alone[*at] = std::move(proof);
        } else if (proof) {
          float32(task, *proof);
          task.parity.first_step_cold_ns = 0;
        }
        settle(task);
      }
    };
    std::thread second(work);
    work();
    second.join();
    for (const size_t at : last) {
      if (reached(passed_, enough_)) break;
      if (!alone[at]) alone[at] = float64(tasks[at]);
      if (alone[at]) float32(tasks[at], *alone[at]);
      alone[at].reset();
      settle(tasks[at]);
    }
  }

 private:
  // So that two of one framework seldom run together: the slowest would be last.
  static std::vector<size_t> from_both_ends(const std::vector<GateTask>& tasks) {
    std::vector<size_t> order;
    for (size_t k = 0; k < tasks.size(); ++k) order.push_back(k % 2 == 0 ? k / 2 : tasks.size() - 1 - k / 2);
    return order;
  }

  static std::vector<size_t> shortest_first(const std::vector<GateTask>& tasks) {
    std::vector<size_t> order(tasks.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return proof_seconds(tasks[a].entry) < proof_seconds(tasks[b].entry);
    });
    return order;
  }

  // The next one to prove. Nullopt: enough have passed, or all are done. Waits while those under way may be
  // enough.
  std::optional<size_t> take(const std::vector<GateTask>& tasks, const std::vector<size_t>& order) {
    std::unique_lock lock(mutex_);
    settled_.wait(lock, [&] {
      Passed hoped = passed_;
      for (const auto& [group, count] : under_way_) hoped[group] += count;
      return taken_ == order.size() || reached(passed_, enough_) || !reached(hoped, enough_);
    });
    if (taken_ == order.size() || reached(passed_, enough_)) return std::nullopt;
    const size_t at = order[taken_++];
    ++under_way_[group_of(tasks[at].entry.contender)];
    return at;
  }

  void settle(const GateTask& task) {
    const std::lock_guard lock(mutex_);
    const std::string group = group_of(task.entry.contender);
    if (under_way_[group] > 0) --under_way_[group];
    if (task.over() && task.parity.passed() && !missing_precision(task)) ++passed_[group];
    settled_.notify_all();
  }

  std::optional<Proof> float64(GateTask& task) {
    if (!begin_stage(task, "in float64")) return std::nullopt;
    const std::string stem = task.entry.script.stem().string();
    task.entry.worker.log_file = plan_.directory.logs() / (stem + ".gate.log");
    // Workers share the processors: a thread that waits must not spin. No result depends on it.
    task.entry.worker.environment.emplace("OMP_WAIT_POLICY", "passive");
    // As in the race: a script must not see from its process whether it is proven or timed.
    task.entry.worker.ring_file = new_shared_file(plan_.directory.path());
    ContenderStart twin = twin_of(task.entry);
    twin.worker.stage_seconds = std::min(twin.worker.stage_seconds, time_left_());
    return referee_.prove64(twin, time_left_);
  }

  void float32(GateTask& task, Proof& proof) {
    const bool equalised = plan_.recipe.training.track == ir::Track::kEqualised;
    if (!proof.parity.failure && (equalised || is_variant(task.entry))) {
      if (!begin_stage(task, "in float32")) return;
      const auto wait = [&] { return referee_.wait().has_value(); };
      if (equalised) proof.float32(plan_.gate, referee_.whole(), {}, wait);
      if (wait()) prove_variant(plan_.gate, referee_.whole(), task.entry, proof.parity);
    }
    // What the budget cut short, here or of the referee's work, says nothing of the contender.
    const bool timed_out = proof.parity.failure && proof.parity.failure->cause == Cause::kTime;
    const bool cut = time_left_() <= 0 && (timed_out || !referee_.wait());
    task.parity = std::move(proof.parity);
    if (!proc::interrupted() && !cut) task.parity.proven = utc_now();
  }

  // False: interrupted, or out of time.
  bool begin_stage(const GateTask& task, const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (proc::interrupted() || time_left_() <= 0) return false;
    Happening here = now_;
    here.detail = task.entry.contender.id + " " + what;
    watch_(here);
    if (now_.done < now_.total - 1) ++now_.done;
    return true;
  }

  const Plan& plan_;
  Referee& referee_;
  const Watch& watch_;
  Happening& now_;
  Passed passed_;
  const size_t enough_;
  const Gate::TimeLeft& time_left_;
  Passed under_way_ = {};  // by precision group
  size_t taken_ = 0;       // of the order
  std::mutex mutex_;
  std::condition_variable settled_;
};

// Finds the proofs of earlier runs.
Status reuse(const Plan& plan, const std::filesystem::path& folder, std::vector<GateTask>& tasks) {
  if (folder.empty()) return Done{};
  const ProofStore proofs(folder);
  const Host& host = plan.manifest.host;
  const std::string job = job_key(plan.gate, plan.manifest.data_sha256, plan.manifest.weights_sha256);
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

}  // namespace

struct Gate::State {
  Plan& plan;
  std::filesystem::path proofs;
  std::vector<Parity> parities = {};
  std::vector<GateTask> left = {};
  std::unique_ptr<Referee> referee = {};
  Happening now = {};

  static bool out_of_time(const Gate::TimeLeft& time_left) {
    return !proc::interrupted() && time_left() <= 0;
  }

  // The referee computes for all portions alike.
  Status start_referee(const Watch& watch, const Gate::TimeLeft& time_left) {
    now = {.stage = "referee", .detail = "computing losses and gradients in float64"};
    watch(now);
    // The distances of precision variants are measured on whole batches, and as-is most contenders differ.
    const bool may_cut =
        plan.recipe.training.track == ir::Track::kEqualised &&
        std::none_of(left.begin(), left.end(), [](const GateTask& task) { return is_variant(task.entry); });
    const auto stop = [time_left] { return proc::interrupted() || time_left() <= 0; };
    TRY(referee, Referee::start(plan.gate, may_cut, stop));
    now.stage = "parity";
    now.total = 2 * static_cast<int>(left.size());
    return Done{};
  }

  Passed passed() const {
    Passed passed;
    for (const Parity& parity : parities) {
      const auto& all = plan.manifest.contenders;
      const auto contender =
          std::find_if(all.begin(), all.end(), [&](const Contender& c) { return c.id == parity.contender; });
      if (contender != all.end() && parity.passed()) ++passed[group_of(*contender)];
    }
    return passed;
  }

  // Moves what is over from `left` to the run directory and `parities`.
  Status record() {
    std::vector<GateTask> rest;
    for (GateTask& task : left) {
      if (!task.over()) {  // not its turn yet, or interrupted
        rest.push_back(std::move(task));
        continue;
      }
      // It is reported before any other failure: if another one were repaired, this one would remain.
      if (auto failure = missing_precision(task)) task.parity.failure = std::move(failure);
      CHECK_OK(plan.directory.append(task.parity));
      parities.push_back(std::move(task.parity));
    }
    left = std::move(rest);
    if (left.empty()) referee.reset();
    return Done{};
  }
};

Gate::Gate(std::unique_ptr<State> state) : state_(std::move(state)) {}
Gate::Gate(Gate&&) noexcept = default;
Gate::~Gate() = default;

const std::vector<Parity>& Gate::parities() const { return state_->parities; }
bool Gate::finished() const { return state_->left.empty(); }

Result<Gate> Gate::open(Plan& plan, std::vector<Parity> done, const std::filesystem::path& proofs) {
  auto state = std::make_unique<State>(State{.plan = plan, .proofs = proofs});
  for (size_t i = 0; i < plan.lanes.size(); ++i) {
    const bool known = std::any_of(done.begin(), done.end(), [&](const Parity& p) {
      return p.contender == plan.manifest.contenders[i].id;
    });
    if (known || plan.lanes[i].failure) continue;
    state->left.push_back({.entry = plan.lanes[i].entry, .identity = plan.lanes[i].identity});
  }
  state->parities = std::move(done);
  CHECK_OK(reuse(plan, proofs, state->left));
  for (const GateTask& task : state->left) {
    if (!task.over()) continue;
    CHECK_OK(note_referee_losses(plan, task.parity.referee_losses));
    break;
  }
  CHECK_OK(state->record());
  return Gate(std::move(state));
}

Status Gate::prove(const Watch& watch, size_t enough, const TimeLeft& time_left) {
  State& s = *state_;
  const Passed passed = s.passed();
  if (s.left.empty() || reached(passed, enough) || time_left() <= 0) return Done{};
  if (!s.referee) {
    const Status started = s.start_referee(watch, time_left);
    if (!started && s.out_of_time(time_left)) return Done{};
    CHECK_OK(started);
  }
  Portion(s.plan, *s.referee, watch, s.now, passed, enough, time_left).run(s.left);
  if (const Status& whole = s.referee->wait(); !whole) {
    if (!s.out_of_time(time_left)) return whole;
    s.referee.reset();  // it gave up: the next portion, of a longer budget, begins it anew
    return s.record();
  }
  const std::vector<double>& losses = s.referee->whole().losses32;
  CHECK_OK(note_referee_losses(s.plan, losses));
  for (GateTask& task : s.left) {
    if (!task.over()) continue;
    task.parity.referee_losses = losses;
    CHECK_OK(ProofStore(s.proofs).keep(task.key, task.parity));
  }
  return s.record();
}

Result<std::vector<Parity>> gate_all(Plan& plan, std::vector<Parity> done, const Watch& watch,
                                     const std::filesystem::path& proofs) {
  TRY(Gate gate, Gate::open(plan, std::move(done), proofs));
  CHECK_OK(gate.prove(watch));
  return gate.parities();
}

}  // namespace bakeoff
