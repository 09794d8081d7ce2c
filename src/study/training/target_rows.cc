// Time to a target differs from seed to seed far more than from run to run, so the seeds are the sample: a
// geometric mean over them, with Student's interval of the logs, and only where all of them reached the
// target. Convergence is compared with the referee's, seed by seed, at the contender's own looks: several
// steps in one call make looks rarer, which is no slower convergence. A training that did not reach the
// target counts as twice all steps, however early it ended; left out, it would make a contender that fails
// often look fast. The contenders share the error rate evenly, as each of them may be accused.

#include "study/training/target_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evidence/host_rounds.h"
#include "stats/distributions.h"
#include "stats/paired.h"
#include "stats/trimmed.h"

namespace bakeoff {
namespace {

// Geometric mean, and Student's interval of the logs: seeds are independent.
OverSeeds over_seeds(const std::vector<double>& values, double level) {
  std::vector<double> logs;
  for (const double value : values) logs.push_back(std::log(value));
  const double centre = stats::mean(logs);
  OverSeeds found{.value = std::exp(centre)};
  if (logs.size() < 2) return found;
  const double n = static_cast<double>(logs.size());
  const double half = stats::student_quantile(n - 1, (1 + level) / 2) * std::sqrt(stats::variance(logs) / n);
  found.interval = {std::exp(centre - half), std::exp(centre + half)};
  return found;
}

double last_look(const TargetTrial& trial) { return static_cast<double>(trial.looks.back().steps); }

class Rows {
 public:
  Rows(const std::vector<TargetTrial>& trials, const recipe::Target& asked, int64_t rows, int64_t batch,
       double alpha, size_t contenders)
      : trials_(trials),
        asked_(asked),
        epoch_steps_(static_cast<double>(std::max<int64_t>(rows / batch, 1))),
        alpha_(alpha),
        share_(alpha / static_cast<double>(std::max<size_t>(contenders, 1))) {}

  TargetRow row(const std::string& id) const {
    TargetRow row{.contender = id};
    std::vector<double> steps, seconds, start_up, loss, accuracy;
    for (const TargetTrial* trial : of(id)) {
      if (trial->failure) {
        row.note = trial->failure->text();
        continue;
      }
      if (trial->looks.empty()) continue;
      ++row.seeds;
      row.reached += trial->reached;
      steps.push_back(static_cast<double>(trial->looks.back().steps));
      seconds.push_back(static_cast<double>(trial->looks.back().ns) / 1e9);
      start_up.push_back(static_cast<double>(trial->start_up_ns) / 1e9);
      loss.push_back(trial->looks.back().loss);
      accuracy.push_back(trial->looks.back().accuracy);
    }
    if (row.seeds == 0) return row;
    row.start_up_s = stats::median(start_up);
    row.best_loss = stats::median(loss);
    row.best_accuracy = stats::median(accuracy);
    if (row.reached < row.seeds) {
      row.note =
          fmt::format("{} of {} trainings did not reach it within {:g} epoch{}", row.seeds - row.reached,
                      row.seeds, asked_.epochs, asked_.epochs == 1 ? "" : "s");
    } else {
      row.steps = over_seeds(steps, 1 - alpha_);
      for (double& count : steps) count /= epoch_steps_;
      row.epochs = over_seeds(steps, 1 - alpha_);
      if (!row.is_referee()) row.seconds = over_seeds(seconds, 1 - alpha_);
    }
    if (!row.is_referee()) compare(row);
    return row;
  }

 private:
  std::vector<const TargetTrial*> of(const std::string& id) const {
    std::vector<const TargetTrial*> own;
    for (const TargetTrial& trial : trials_) {
      if (trial.contender == id) own.push_back(&trial);
    }
    return own;
  }

  // All steps that were asked for.
  double all_steps() const { return asked_.epochs * epoch_steps_; }

  // Steps to the target. One that did not reach it counts as twice all steps, however early it ended.
  double steps_of(const TargetTrial& trial) const {
    return trial.reached ? last_look(trial) : 2 * std::max(last_look(trial), all_steps());
  }

  // The steps that the referee would be known to need if it were looked at where a contender is: several
  // steps in one call make looks rarer, which is no slower convergence.
  double seen_by(const TargetTrial& own, const TargetTrial& referee) const {
    const double steps = steps_of(referee);
    if (!referee.reached) return steps;
    for (const TargetLook& look : own.looks) {
      if (static_cast<double>(look.steps) >= steps) return static_cast<double>(look.steps);
    }
    // Its looks go on as they began, up to the last step.
    const double apart = static_cast<double>(own.looks.front().steps), last = last_look(own);
    const double next = last + std::ceil((steps - last) / apart) * apart;
    return std::clamp(next, steps, std::max(steps, all_steps()));
  }

  // Seed by seed against the referee.
  void compare(TargetRow& row) const {
    std::vector<double> d;
    for (const TargetTrial* own : of(row.contender)) {
      for (const TargetTrial* theirs : of(TargetTrial::kReferee)) {
        if (own->seed != theirs->seed || own->failure || own->looks.empty() || theirs->looks.empty())
          continue;
        // Neither reached it: nothing is known of who is later.
        const bool neither = !own->reached && !theirs->reached;
        d.push_back(neither ? 0 : std::log(steps_of(*own) / seen_by(*own, *theirs)));
      }
    }
    if (d.empty()) return;
    row.ratio = std::exp(stats::mean(d));
    row.p = stats::p_above_zero(d);
    row.convergence = row.p <= share_ ? Convergence::kWorse : Convergence::kWithinChance;
    if (std::exp2(-static_cast<double>(d.size())) <= share_ || !row.note.empty()) return;
    row.note = fmt::format(
        "{} seeds cannot show a worse convergence: the least p is {:.2g}, and {:.2g} is asked for", d.size(),
        std::exp2(-static_cast<double>(d.size())), share_);
  }

  const std::vector<TargetTrial>& trials_;
  const recipe::Target& asked_;
  double epoch_steps_, alpha_;
  double share_;  // of alpha, each contender's
};

}  // namespace

std::vector<TargetRow> target_rows(const std::vector<TargetTrial>& trials,
                                   const std::vector<std::string>& ids, const recipe::Target& asked,
                                   int64_t rows, int64_t batch, double alpha) {
  const auto has = [&](const std::string& id) {
    return std::any_of(trials.begin(), trials.end(), [&](const TargetTrial& t) { return t.contender == id; });
  };
  std::vector<std::string> shown;
  for (const std::string& id : ids) {
    if (has(id)) shown.push_back(id);
  }
  const Rows made(trials, asked, rows, batch, alpha, shown.size());
  std::vector<TargetRow> out;
  if (has(TargetTrial::kReferee)) out.push_back(made.row(TargetTrial::kReferee));
  for (const std::string& id : shown) out.push_back(made.row(id));
  return out;
}

std::vector<std::string> target_notes(const std::vector<TargetTrial>& trials, const recipe::Recipe& recipe) {
  std::vector<std::string> notes;
  if (trials.empty()) return notes;
  int64_t seeds = 0;
  std::vector<HostRound> rounds;
  for (const TargetTrial& trial : trials) {
    seeds = std::max<int64_t>(seeds, trial.seed);
    rounds.insert(rounds.end(), trial.rounds.begin(), trial.rounds.end());
  }
  if (seeds < recipe.target.seeds) {
    notes.push_back(fmt::format(
        "target: {} of {} seeds were trained, then budget.minutes or the run ended; `bakeoff run --resume` "
        "goes on",
        seeds, recipe.target.seeds));
  }
  if (const std::string text = disturbed_text(rounds, "stretches of training"); !text.empty())
    notes.push_back("target: " + text + "; steps are not touched by that, seconds are");
  return notes;
}

}  // namespace bakeoff
