#include "study/training/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "evidence/heats.h"
#include "plan/rows.h"
#include "proc/interrupt.h"
#include "race/watched.h"
#include "stats/trimmed.h"
#include "study/ledger.h"
#include "study/training/fit_trial.h"
#include "study/training/training_setup.h"

namespace bakeoff {
namespace {

std::string time_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", std::max(seconds, 1.0));
  if (seconds < 5400) return fmt::format("{:.0f} minutes", seconds / 60);
  return fmt::format("{:.1f} hours", seconds / 3600);
}

}  // namespace

int64_t next_stretch(int64_t done, int64_t total, int64_t of_epoch, double step_s, double stage_seconds) {
  if (step_s <= 0) return 1;
  const double in_time = std::clamp(stage_seconds / 4 / step_s, 1.0, 1e9);
  return std::min({total - done, of_epoch - done % of_epoch, static_cast<int64_t>(in_time)});
}

bool out_of_patience(const std::vector<TargetLook>& watched, const recipe::Fit& fit) {
  if (fit.patience == 0) return false;
  double lowest = std::numeric_limits<double>::infinity();
  int64_t waited = 0;
  for (const TargetLook& look : watched) {
    const bool first = std::isinf(lowest);
    if (std::isfinite(look.loss) && (first || look.loss < lowest - fit.min_delta)) {
      lowest = look.loss;
      waited = 0;
    } else {
      ++waited;
    }
    if (waited >= fit.patience) return true;
  }
  return false;
}

std::optional<double> typical_step_ms(const std::vector<Trial>& trials, const std::string& contender) {
  const std::vector<double> ms = heat_times_ms(trials, contender);
  if (ms.empty()) return std::nullopt;
  return stats::median(ms);
}

namespace {

class Fits {
 public:
  Fits(const Afterwards& race, Ledger<FitTrial> done)
      : race_(race),
        plan_(race.plan),
        fit_(plan_.recipe.fit),
        done_(std::move(done)),
        ground_(plan_, "fit", held_rows(plan_.recipe)) {}

  Status run() {
    const std::vector<size_t> lanes = lanes_of(race_);
    CHECK_OK(ground_.prepare(race_.progress));
    of_epoch_ = std::max<int64_t>(ground_.rows() / plan_.recipe.training.batch, 1);
    total_ = fit_.epochs * of_epoch_;
    if (const double seconds = predicted_s(lanes); seconds > 0) race_.progress(announcement(lanes, seconds));
    now_ = {.stage = "fit",
            .total = static_cast<int>(fit_.seeds * static_cast<int64_t>(lanes.size())),
            .contenders = static_cast<int>(plan_.lanes.size())};
    for (int seed = 1; seed <= fit_.seeds; ++seed) {
      std::vector<size_t> order = ground_.shuffled(lanes, seed);
      const auto done = std::erase_if(order, [&](size_t lane) { return known(id(lane), seed); });
      now_.done += static_cast<int>(done);
      if (order.empty()) continue;
      if (race_.over()) break;
      CHECK_OK(ground_.lay_out(seed));
      TRY(trained_, hold_out(plan_.recipe.workload, ground_.data(), plan_.recipe.training.input_divisor, 0,
                             trained_sample(plan_.recipe, ground_.rows())));
      for (const size_t lane : order) CHECK_OK(train(lane, seed));
    }
    return Done{};
  }

 private:
  const std::string& id(size_t lane) const { return plan_.manifest.contenders[lane].id; }

  bool known(const std::string& contender, int seed) const {
    return done_.settled(contender, [&](const FitTrial& t) { return t.seed == seed; });
  }

  // Of one training; 0 where it was not timed.
  double predicted_s(const std::string& contender) const {
    const auto ms = typical_step_ms(race_.trials, contender);
    return ms ? *ms / 1e3 * static_cast<double>(total_) : 0;
  }

  double predicted_s(const std::vector<size_t>& lanes) const {
    double seconds = 0;
    for (const size_t lane : lanes) {
      for (int seed = 1; seed <= fit_.seeds; ++seed)
        seconds += known(id(lane), seed) ? 0 : predicted_s(id(lane));
    }
    return seconds;
  }

  std::string announcement(const std::vector<size_t>& lanes, double seconds) const {
    const std::string times = fit_.seeds > 1 ? fmt::format(", {} times", fit_.seeds) : "";
    return fmt::format(
        "fit: {} by {} contender{}{} take about {}, estimated from the race; budget.minutes does not limit "
        "this, --budget does",
        fit_text(plan_.recipe, ground_.rows()), lanes.size(), lanes.size() == 1 ? "" : "s", times,
        time_text(seconds));
  }

  void tell(size_t lane, int seed, int64_t done) {
    now_.detail =
        fmt::format("{}, epoch {} of {}", id(lane), std::min(done / of_epoch_ + 1, fit_.epochs), fit_.epochs);
    if (fit_.seeds > 1) now_.detail += fmt::format(", seed {} of {}", seed, fit_.seeds);
    now_.elapsed_s = seconds_since(begin_);
    race_.watch(now_);
  }

  Status train(size_t lane, int seed) {
    if (race_.over()) return Done{};
    cut_ = false;
    tell(lane, seed, 0);
    FitTrial trial{.contender = id(lane), .seed = seed, .started = utc_now()};
    TrainingProcess process = ground_.start(lane, seed);
    trial.start_up_ns = process.start_up_ns;
    trial.effective = process.effective;
    const TargetLook end = train_through(*process.worker, lane, trial);
    Status looked = Done{};
    if (process.worker->ok() && !cut_) looked = look(*process.worker, lane, end, trial);
    trial.failure = failure_of(plan_, lane, trial.stretches, trial.rounds, process, looked);
    process.worker->close();
    if (cut_ || proc::interrupted()) return Done{};
    ++now_.done;
    return done_.add(std::move(trial));
  }

  // All epochs, or until the worker fails; gives steps and ns. A framework that runs many steps at once may
  // do a few more than it is asked for.
  TargetLook train_through(Worker& worker, size_t lane, FitTrial& trial) {
    TargetLook end;
    double step_s = typical_step_ms(race_.trials, id(lane)).value_or(0) / 1e3;
    while (end.steps < total_ && worker.ok()) {
      if (race_.over()) {
        cut_ = true;
        break;
      }
      tell(lane, trial.seed, end.steps);
      const int64_t steps =
          next_stretch(end.steps, total_, of_epoch_, step_s, plan_.recipe.race.stage_seconds);
      std::optional<Ran> ran;
      HostRound round = watched(plan_.recipe.race.host, race_.sensed, plan_.lanes[lane].entry.worker.cpus,
                                worker.pid(), [&] { ran = worker.run(steps); });
      if (!ran) break;
      end.steps += ran->burst.steps;
      end.ns += stretch_ns(ran->burst, trial.stretches.empty());
      step_s = ran->burst.ms_per_step() / 1e3;
      trial.stretches.push_back(ran->burst);
      trial.rounds.push_back(std::move(round));
      if (fit_.patience == 0 || end.steps / of_epoch_ <= static_cast<int64_t>(trial.watched.size())) continue;
      if (const Status watched = watch_held_out(worker, end, trial); !watched) break;
      if (out_of_patience(trial.watched, fit_)) {
        if (end.steps < total_) trial.stopped = end.steps / of_epoch_;
        break;
      }
    }
    return end;
  }

  // After an epoch, beside the clock.
  Status watch_held_out(Worker& worker, const TargetLook& end, FitTrial& trial) {
    TRY(const auto weights, ground_.state(worker));
    TRY(TargetLook look, look_at(ground_.held_out(), weights));
    look.steps = end.steps, look.ns = end.ns;
    trial.watched.push_back(look);
    return Done{};
  }

  Status look(Worker& worker, size_t lane, const TargetLook& end, FitTrial& trial) {
    tell(lane, trial.seed, total_);
    TRY(const auto weights, ground_.state(worker));
    TRY(trial.on_trained, look_at(trained_, weights));
    trial.on_trained->steps = end.steps;
    trial.on_trained->ns = end.ns;
    if (ground_.held_out().batches.empty()) return Done{};
    TRY(trial.on_held, look_at(ground_.held_out(), weights));
    trial.on_held->steps = end.steps;
    trial.on_held->ns = end.ns;
    return Done{};
  }

  const Afterwards& race_;
  const Plan& plan_;
  const recipe::Fit& fit_;
  Ledger<FitTrial> done_;
  TrainingSetup ground_;
  HeldOut trained_;
  bool cut_ = false;  // the training at hand: it leaves no record
  int64_t of_epoch_ = 1, total_ = 1;
  Happening now_;
  int64_t begin_ = monotonic_clock().now_ns();
};

}  // namespace

Status fit(const Afterwards& race) {
  if (!race.plan.recipe.fit.wanted()) return Done{};
  TRY(auto done, Ledger<FitTrial>::open(race.plan.directory));
  return Fits(race, std::move(done)).run();
}

}  // namespace bakeoff
