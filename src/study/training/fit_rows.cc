// Rows of whole trainings. A framework may do more steps than it was asked for (calls of several steps), so
// its seconds are scaled by the share that was wanted, and the row says so. A training that diverged has no
// place in a median: one value that is not finite leaves the whole range empty. Several seeds give least,
// middle and greatest, and no interval: of three trainings one would be a fiction. Whether a contender ended
// elsewhere than the others is asked within its group alone, and of two neither is the odd one.

#include "study/training/fit_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/texts.h"
#include "evidence/host_rounds.h"
#include "stats/trimmed.h"
#include "study/training/training_setup.h"

namespace bakeoff {
namespace {

std::optional<SeedRange> range_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  for (const double value : values) {
    if (!(std::abs(value) < kNotFinite)) return std::nullopt;
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return SeedRange{*least, stats::median(values), *most};
}

// One contender's trainings, summed up.
class FitAccumulator {
 public:
  FitAccumulator(const recipe::Fit& asked, const FitScale& scale)
      : asked_(asked),
        of_epoch_(static_cast<double>(std::max<int64_t>(scale.rows / std::max<int64_t>(scale.batch, 1), 1))) {
  }

  void add(const FitTrial& trial) {
    if (trial.failure || !trial.on_trained || trial.on_trained->steps == 0) {
      if (trial.failure) failure_ = trial.failure->text();
      return;
    }
    const double steps = static_cast<double>(trial.on_trained->steps);
    const double wanted = wanted_by(trial);
    const double share = wanted / steps;  // a little below 1 where a framework did more steps than asked
    if (steps != wanted) overdone_ = trial.on_trained->steps, overdone_of_ = wanted;
    epochs_.push_back(wanted / of_epoch_);
    stopped_ += trial.stopped > 0;
    wanted_.push_back(wanted);
    seconds_.push_back(static_cast<double>(trial.on_trained->ns) / 1e9 * share);
    start_up_.push_back(static_cast<double>(trial.start_up_ns) / 1e9);
    loss_.push_back(trial.on_trained->loss);
    const TargetLook& judged = trial.on_held ? *trial.on_held : *trial.on_trained;
    if (trial.on_held) held_loss_.push_back(judged.loss);
    accuracy_.push_back(judged.accuracy);
    add_stretches(trial, share);
    rounds_.insert(rounds_.end(), trial.rounds.begin(), trial.rounds.end());
  }

  FitRow row(const RankedContender& of, bool classes) const {
    FitRow row{.contender = of.contender, .group = of.group};
    std::vector<std::string> notes;
    if (!failure_.empty()) notes.push_back(failure_);
    row.seeds = static_cast<int>(seconds_.size());
    if (row.seeds > 0) {
      row.seconds = range_of(seconds_).value_or(SeedRange{});
      row.epoch_s = stats::median(epoch_s_);
      row.start_up_s = stats::median(start_up_);
      if (wait_s_.size() == seconds_.size()) row.wait_s = stats::median(wait_s_);
      if (of.step_ms) row.over_steps = row.seconds.median / (*of.step_ms / 1e3 * stats::median(wanted_));
      row.loss = range_of(loss_);
      row.held_loss = range_of(held_loss_);
      if (classes) row.accuracy = range_of(accuracy_);
      if (!row.loss) notes.push_back("its loss is NaN or infinite");
      if (overdone_ > 0)
        notes.push_back(
            fmt::format("it did {} steps, as it runs several at once; the seconds are those of {:.0f}",
                        overdone_, overdone_of_));
      if (asked_.patience > 0) row.epochs = range_of(epochs_);
      if (stopped_ > 0)
        notes.push_back(
            fmt::format("ended early{}: its held-out loss had not fallen{} for {} epoch{}",
                        stopped_ < row.seeds ? fmt::format(" in {} of {}", stopped_, row.seeds) : "",
                        asked_.min_delta > 0 ? fmt::format(" by {:g}", asked_.min_delta) : "",
                        asked_.patience, asked_.patience == 1 ? "" : "s"));
      if (auto text = disturbed_text(rounds_, "stretches of training"); !text.empty())
        notes.push_back(std::move(text));
    }
    row.note = join(notes, "; ");
    return row;
  }

 private:
  // Steps of a training: of the epochs asked for, or up to where it ended early.
  double wanted_by(const FitTrial& trial) const {
    return static_cast<double>(trial.stopped > 0 ? trial.stopped : asked_.epochs) * of_epoch_;
  }

  void add_stretches(const FitTrial& trial, double share) {
    double waited = 0;
    bool told = true;
    Burst epoch;  // of stretches that may be parts of one
    size_t epochs = 0;
    for (const Burst& stretch : trial.stretches) {
      epoch.steps += stretch.steps;
      epoch.ns += stretch_ns(stretch, &stretch == &trial.stretches.front());
      const bool last = &stretch == &trial.stretches.back() && epochs == 0;
      if (last || static_cast<double>(epoch.steps) > of_epoch_ - 1) {
        epoch_s_.push_back(std::exchange(epoch, {}).ms_per_step() / 1e3 * of_epoch_);
        ++epochs;
      }
      told = told && stretch.wait;
      if (stretch.wait) waited += static_cast<double>(stretch.wait->ns + stretch.wait->first_ns) / 1e9;
    }
    if (told) wait_s_.push_back(waited * share);
  }

  const recipe::Fit& asked_;
  double of_epoch_;
  std::string failure_;
  int64_t overdone_ = 0;
  double overdone_of_ = 0;
  int stopped_ = 0;  // trainings that ended early
  std::vector<double> epochs_, wanted_, seconds_, start_up_, loss_, held_loss_, accuracy_, epoch_s_, wait_s_;
  std::vector<HostRound> rounds_;
};

// Says who ended elsewhere than its group.
void hold_against_group(std::vector<FitRow>& rows, const FitScale& scale) {
  std::map<std::string, std::vector<FitRow*>> groups;
  for (FitRow& row : rows) {
    if (row.loss) groups[row.group].push_back(&row);
  }
  const double tolerance = scale.as_is ? kLossToleranceAsIs : kLossTolerance;
  for (auto& [name, members] : groups) {
    std::vector<double> losses;
    for (const FitRow* row : members) losses.push_back(row->loss->median);
    const double middle = stats::median(losses);
    for (FitRow* row : members) {
      // Of two neither is the odd one: each is held against the other.
      const double other = losses.size() == 2 ? losses[row == members[0] ? 1 : 0] : middle;
      const double distance = std::abs(row->loss->median - other);
      const double allowed = std::max(tolerance * std::abs(other), kLossFloor * scale.untrained_loss);
      if (losses.size() < 2 || distance <= allowed) continue;
      row->outlier = true;
      const std::string text =
          fmt::format("its loss of {:.3g} is {:.2g} away from its group's {:.3g}; {:.2g} may be chance",
                      row->loss->median, distance, other, allowed);
      row->note = row->note.empty() ? text : text + "; " + row->note;
    }
  }
}

}  // namespace

std::vector<FitRow> fit_rows(const std::vector<FitTrial>& trials,
                             const std::vector<RankedContender>& contenders, const recipe::Fit& asked,
                             const FitScale& scale) {
  std::vector<FitRow> rows;
  const bool classes = std::any_of(trials.begin(), trials.end(), [](const FitTrial& t) {
    return (t.on_held && t.on_held->accuracy > 0) || (t.on_trained && t.on_trained->accuracy > 0);
  });
  for (const RankedContender& of : contenders) {
    FitAccumulator sum(asked, scale);
    bool any = false;
    for (const FitTrial& trial : trials) {
      if (trial.contender != of.contender) continue;
      sum.add(trial);
      any = true;
    }
    if (any) rows.push_back(sum.row(of, classes));
  }
  hold_against_group(rows, scale);
  return rows;
}

}  // namespace bakeoff
