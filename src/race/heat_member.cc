// A contender may be written to win: it can save work in timed bursts, answer before its work is done, or
// compute the steps in advance. What a member does between its start and its end is arranged so that this
// does not pay.
//
// Before each burst the initial weights are restored and slightly changed (a nudge), so results that were
// kept are wrong. Whether the referee repeats a burst is drawn when it is over, from the system's randomness:
// a seed of the recipe could be predicted. The steps before the clock starts are one more at random. A worker
// is frozen between its bursts, so it cannot work while others are timed, and its script is put back if it
// was changed on disk. Whatever fails ends in the trial, not as an error: the others race on.

#include "race/heat_member.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "base/clock.h"
#include "base/files.h"
#include "evidence/barrier.h"
#include "evidence/usage.h"
#include "race/usage_marks.h"
#include "records/controls.h"
#include "stats/planning.h"
#include "stats/trimmed.h"
#include "worker/grants.h"

namespace bakeoff {
namespace {

// Ends a worker that hangs; otherwise it would run during the bursts of other members.
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

// From the system's source of randomness: a seed of the recipe would make it predictable.
bool chance(double probability) {
  std::random_device source;
  return static_cast<double>(source()) < probability * 4294967296.0;
}

// Number of steps after a pause that do not count: one, or as many as fill 10 ms; and sometimes one more.
constexpr double kLeadIn = 0.01;  // seconds
int64_t lead_steps(const Member& member) {
  const int64_t more = chance(stats::kSecondLeadIn) ? 1 : 0;
  if (!(member.step_s > 0)) return 1 + more;
  return more + std::clamp<int64_t>(std::llround(kLeadIn / member.step_s), 1,
                                    std::max<int64_t>(1, member.burst_steps));
}

// The file of a nudge; removed with this object.
class NudgeFile {
 public:
  NudgeFile(const Plan& plan, const AuditGround& ground, const Nudge& changes)
      : path_(new_shared_file(plan.directory.path())) {
    written_ = write_nudge(ground, changes, path_);
  }
  ~NudgeFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  NudgeFile(const NudgeFile&) = delete;
  NudgeFile& operator=(const NudgeFile&) = delete;
  const fs::path& path() const { return path_; }
  const Status& written() const { return written_; }

 private:
  fs::path path_;
  Status written_ = Done{};
};

// Before the clock starts: restores the initial weights and runs the lead-in. False: it failed.
bool prepare_burst(Member& member, ShownBurst& shown, Burst& burst) {
  Worker& worker = *member.worker;
  if (member.audit) {
    auto drawn = member.nudges ? draw_nudge(*member.audit) : Result<Nudge>(no_nudge(*member.audit));
    if (!drawn) {
      member.trial.failure = Failure{Stage::kNudge, drawn.error().message, {}};
      return false;
    }
    shown.nudge = std::move(*drawn);
    if (member.nudges) shown.nudge_every = nudge_every(*member.audit);
    shown.position = worker.steps_done();
    if (!worker.restore()) return false;
  }
  const auto lead = worker.lead_in(lead_steps(member));
  if (!lead) return false;
  member.step_s = std::min(member.step_s, lead->burst.ms_per_step() / 1e3);
  shown.lead = burst.lead_steps = lead->burst.steps;
  burst.lead_ns = lead->burst.elapsed_ns;
  return true;
}

// Runs the burst. The nudge is in memory only during the request.
std::optional<Ran> nudge_and_run(const Plan& plan, Member& member, const ShownBurst& shown, bool counts) {
  Worker& worker = *member.worker;
  std::optional<NudgeFile> file;
  if (member.audit && member.nudges) {
    file.emplace(plan, *member.audit, shown.nudge);
    if (!file->written()) {
      member.trial.failure = Failure{Stage::kNudge, file->written().error().message, {}};
      return std::nullopt;
    }
  }
  const NudgeRequest nudge{file ? file->path() : fs::path(), shown.nudge_every};
  return counts ? worker.run(member.burst_steps, Stage::kRun, nudge) : worker.lead_in(1, nudge);
}

// Whether a burst is to be audited. It is drawn when the burst is over, so the burst cannot depend on it. At
// least one burst of each trial is drawn, at the latest its last.
bool is_drawn(const Member& member) {
  const auto bursts = static_cast<double>(member.planned_bursts);
  const bool any = std::any_of(member.shown.begin(), member.shown.end(),
                               [](const ShownBurst& shown) { return shown.drawn; });
  return chance(1 / bursts) || (!any && static_cast<double>(member.shown.size() + 1) >= bursts);
}

// Keeps what an audit needs; requests the parameters, or the outputs, if the burst is drawn.
void keep_evidence(const Plan& plan, Member& member, Ran& ran, bool drawn, ShownBurst shown) {
  shown.burst = member.trial.bursts.size() + member.trial.void_bursts.size();
  shown.steps = ran.burst.steps;
  shown.losses = ran.losses;
  shown.mean_loss = ran.mean_loss;
  shown.sums = ran.sums;
  shown.drawn = drawn;
  if (drawn && member.audit->training.predicts()) {
    auto told = member.worker->outputs();
    if (!told) return;
    shown.outputs = std::move(told->outputs);
    ran.burst.elapsed_ns += told->late_ns;
  } else if (drawn) {
    shown.state = new_shared_file(plan.directory.path());
    if (!member.worker->state(shown.state)) return;
  }
  member.shown.push_back(std::move(shown));
}

// Mean loss of a burst's steps.
double mean_loss(const ShownBurst& shown) {
  if (shown.mean_loss || shown.losses.empty())
    return shown.mean_loss.value_or(std::numeric_limits<double>::quiet_NaN());
  return std::accumulate(shown.losses.begin(), shown.losses.end(), 0.0) /
         static_cast<double>(shown.losses.size());
}

// The bursts to audit: the drawn ones, and the burst whose losses differ most from the others', if
// they differ too much; or only that one. Predictions have no losses.
std::vector<size_t> to_audit(const std::vector<ShownBurst>& all, bool predicts, bool apart_alone) {
  std::vector<size_t> chosen;
  std::vector<double> means;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].drawn && !apart_alone) chosen.push_back(i);
    means.push_back(predicts ? 0 : mean_loss(all[i]));
  }
  const double middle = stats::median(means);
  std::optional<size_t> furthest;
  double most = 0.05 * std::abs(middle);  // batches differ
  for (size_t i = 0; i < all.size(); ++i) {
    const double off = std::abs(means[i] - middle);
    if (off <= most) continue;  // false for NaN, which counts as the furthest
    furthest = i;
    most = off;
    if (!std::isfinite(off)) break;
  }
  if (furthest && (apart_alone || !all[*furthest].drawn)) chosen.push_back(*furthest);
  return chosen;
}

// Puts a changed script back, so that what is started is what was proven. Returns whether it had changed.
bool put_back(const ContenderStart& entry) {
  if (entry.script_text.empty()) return false;
  const auto now = read_file(entry.script);
  return (!now || *now != entry.script_text) && write_file(entry.script, entry.script_text);
}

}  // namespace

void start_member(const Plan& plan, const ContenderStart& entry, const Sensed& sensed, Sensing& sensing,
                  Member& member) {
  Trial& trial = member.trial;
  trial.started = utc_now();
  const int64_t begin = monotonic_clock().now_ns();
  const bool changed = put_back(entry);
  WorkerSpec spec = entry.worker;
  spec.log_file =
      plan.directory.logs() / fmt::format("{}.heat{}.log", entry.script.stem().string(), trial.heat);
  spec.ring_file = new_shared_file(plan.directory.path());
  member.granted = spec;
  member.worker = Worker::start(spec);
  Worker& worker = *member.worker;
  trial.start_ns = worker.start_ns();
  if (worker.ok()) member.sensors = sensing.attach(worker.pid());
  if (const auto imported = worker.import()) {
    trial.import_ns = imported->ns;
    trial.versions = imported->versions;
    trial.effective = imported->effective;
    sensing.add_ranks(member.sensors, worker.processes());
    sensing.add_device(member.sensors, spec.environment, trial);
  }
  trial.effective.merge(observe(worker.pid()));
  if (changed) trial.effective["script"] = "it was changed while the race ran, and put back";
  if (plan.recipe.race.cooldown_seconds > 0)
    trial.effective["cooldown"] = fmt::format("{:g} s", plan.recipe.race.cooldown_seconds);
  if (!sensed.gpu_clock.empty() && trial.memory.contains("on_gpu"))
    trial.effective["gpu_clock"] = sensed.gpu_clock;
  const auto built = worker.build(build_of(plan, entry), trial.effective);
  if (built) trial.build_ns = *built;
  if (built) take_built_memory(worker, sensed.root, trial);
  if (const auto first = worker.run(1, Stage::kFirstStep)) {
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
  if (const auto warm = member.worker->run(steps, Stage::kWarmUp)) {
    Trial& trial = member.trial;
    trial.warmup_ns += warm->burst.ns;
    trial.warmup_step_ns.insert(trial.warmup_step_ns.end(), warm->step_ns.begin(), warm->step_ns.end());
    note_loss(trial, warm->loss);
    // Time after the reported end counts too: otherwise a worker that does not wait would get huge bursts.
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
  if (prepare_burst(member, ignored, burst)) nudge_and_run(plan, member, ignored, false);
  member.worker->freeze();
  take_failure(member);
}

void run_burst(const Plan& plan, Member& member, Sensing& sensing, int64_t heat_ns) {
  const int64_t woken = monotonic_clock().now_ns();
  const double used_before_s = tree_cpu_s(member.sensors.pid);
  member.worker->thaw();
  ShownBurst shown;
  Burst before;
  std::optional<Ran> ran;
  std::map<std::string, double> used;
  if (prepare_burst(member, shown, before)) {
    const UsageMark begin = sensing.begin(member.sensors);
    ran = nudge_and_run(plan, member, shown, true);
    used = sensing.end(member.sensors, begin, member.trial);
  }
  if (ran && member.audit) keep_evidence(plan, member, *ran, is_drawn(member), std::move(shown));
  if (ran) member.worker->freeze();
  const auto of = [&](const char* name) { return used.contains(name) ? used.at(name) : 0.0; };
  const double used_s = std::max(0.0, tree_cpu_s(member.sensors.pid) - used_before_s);
  member.cpu_ns = std::llround(used_s * 1e9);
  if (ran) {
    ran->burst.lead_steps = before.lead_steps;
    ran->burst.lead_ns = before.lead_ns;
    ran->burst.woken_ns = woken - heat_ns;
    ran->burst.awake_ns = monotonic_clock().now_ns() - woken;
    ran->burst.switches = std::llround(of("involuntary_switches"));
    ran->burst.used = std::move(used);
    member.jump_ns = ran->jump_ns;
    member.trial.bursts.push_back(ran->burst);
    member.trial.step_ns.insert(member.trial.step_ns.end(), ran->step_ns.begin(), ran->step_ns.end());
    note_loss(member.trial, ran->loss);
  }
  take_failure(member);
}

void audit(const std::string& group, Member& member, bool apart_alone, const std::function<bool()>& late) {
  const auto stop = [&] { return proc::interrupted() || late(); };
  const bool predicts = member.audit != nullptr && member.audit->training.predicts();
  for (const size_t i : to_audit(member.shown, predicts, apart_alone)) {
    if (member.trial.failure) break;
    auto found = audit_burst(*member.audit, member.shown[i], group, {}, stop);
    if (stop() && !found) {
      member.trial.not_audited = "the budget ended";
      break;
    }
    if (!found) {
      member.trial.failure = Failure{Stage::kAudit, found.error().message, {}};
      break;
    }
    if (!found->differs.empty() && !member.trial.invalid)
      member.trial.invalid = "did other work in a timed burst than it was proven for: " + found->differs;
    member.trial.audits.push_back(std::move(*found));
  }
  std::error_code ignored;
  for (const ShownBurst& shown : member.shown) {
    if (!shown.state.empty()) fs::remove(shown.state, ignored);
  }
  member.shown.clear();
}

void judge_barrier(Member& member) {
  const auto early = answers_early(member.trial);
  if (!early || member.trial.invalid) return;
  // The longest of a few: while other processes use the processor, spinning seems too short.
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
  const std::string more = taken(member.worker->pid(), member.granted);
  if (!more.empty() && !member.trial.invalid)
    member.trial.invalid = "used resources that it was not granted: " + more;
  const proc::ResourceUsage usage = member.worker->kill();
  member.trial.user_s = usage.user_s;
  member.trial.system_s = usage.system_s;
  member.trial.peak_rss_bytes = usage.max_rss_bytes;
  member.trial.involuntary_switches = usage.involuntary_switches;
}

}  // namespace bakeoff
