// A curve shows the median of the seeds at each look with the range from least to greatest. Looks are at the
// same steps in all trainings, so medians are of equal steps; over seconds the medians of both are drawn. A
// training that reached its target looks no more: where some seed has no look the curve ends, as the others
// alone are the slower ones and would bend it. The referee has no curve over seconds: its time means nothing.

#include "study/training/learning_curves.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "stats/trimmed.h"
#include "study/training/training_setup.h"

namespace bakeoff {

using namespace table;
namespace {

struct Look {
  double seconds = 0, value = 0;
};
using Looks = std::map<int64_t, std::vector<Look>>;  // by the number of steps, one a seed

// Trainings of a contender that did not fail, in the order of the records.
template <class Trial>
std::vector<std::pair<std::string, std::vector<const Trial*>>> by_contender(
    const std::vector<Trial>& trials) {
  std::vector<std::pair<std::string, std::vector<const Trial*>>> out;
  for (const Trial& trial : trials) {
    if (trial.failure) continue;
    auto at =
        std::find_if(out.begin(), out.end(), [&](const auto& one) { return one.first == trial.contender; });
    if (at == out.end()) at = out.insert(out.end(), {trial.contender, {}});
    at->second.push_back(&trial);
  }
  return out;
}

// A training that reached the target looks no more: a look that not all seeds had would show the others alone.
Curve curve_of(const std::string& contender, const Looks& looks, bool over_seconds) {
  Curve curve{.contender = contender};
  size_t seeds = 0;
  for (const auto& [steps, at] : looks) seeds = std::max(seeds, at.size());
  for (const auto& [steps, at] : looks) {
    if (at.size() < seeds) continue;
    std::vector<double> values, seconds;
    for (const Look& look : at) {
      values.push_back(look.value);
      seconds.push_back(look.seconds);
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    curve.points.push_back({over_seconds ? stats::median(seconds) : static_cast<double>(steps),
                            stats::median(values), *least, *most});
  }
  return curve;
}

void add(std::vector<Picture>& pictures, Picture picture) {
  std::erase_if(picture.curves, [](const Curve& curve) { return curve.points.empty(); });
  if (!picture.curves.empty()) pictures.push_back(std::move(picture));
}

// Steps, seconds and loss of every step that reported one.
struct Reported {
  double steps, seconds, loss;
};

std::vector<Reported> reported(const FitTrial& trial) {
  std::vector<Reported> out;
  int64_t steps = 0;
  double seconds = 0;
  for (const Burst& stretch : trial.stretches) {
    const bool first = &stretch == &trial.stretches.front();
    const double took = static_cast<double>(stretch_ns(stretch, first)) / 1e9;
    for (const auto& [step, loss] : stretch.losses) {
      if (!std::isfinite(loss)) continue;
      const double share =
          stretch.steps > 0 ? static_cast<double>(step - steps) / static_cast<double>(stretch.steps) : 1;
      out.push_back({static_cast<double>(step), seconds + took * std::clamp(share, 0.0, 1.0), loss});
    }
    steps += stretch.steps;
    seconds += took;
  }
  std::sort(out.begin(), out.end(), [](const Reported& a, const Reported& b) { return a.steps < b.steps; });
  return out;
}

Curve thinned(const std::string& contender, const std::vector<Reported>& all, bool over_seconds) {
  Curve curve{.contender = contender};
  const size_t points = std::min<size_t>(all.size(), kCurvePoints);
  for (size_t i = 0; i < points; ++i) {
    const size_t from = i * all.size() / points, to = (i + 1) * all.size() / points;
    double loss = 0;
    for (size_t k = from; k < to; ++k) loss += all[k].loss;
    loss /= static_cast<double>(to - from);
    const Reported& last = all[to - 1];
    curve.points.push_back({over_seconds ? last.seconds : last.steps, loss, loss, loss});
  }
  return curve;
}

}  // namespace

std::vector<Picture> target_curves(const std::vector<TargetTrial>& trials) {
  const auto contenders = by_contender(trials);
  std::vector<Picture> pictures;
  for (const bool accuracy : {false, true}) {
    for (const bool over_seconds : {false, true}) {
      const std::string what = accuracy ? "accuracy" : "loss";
      Picture picture{.name = what + (over_seconds ? " over seconds" : " over steps"),
                      .x_title = over_seconds ? "seconds of training" : "steps",
                      .y_title = (accuracy ? "share of held-out rows that are predicted right"
                                           : "loss of held-out rows")};
      bool any = false;
      for (const auto& [contender, trainings] : contenders) {
        if (over_seconds && contender == TargetTrial::kReferee) continue;
        Looks looks;
        for (const TargetTrial* trial : trainings) {
          for (const TargetLook& look : trial->looks) {
            const double value = accuracy ? look.accuracy : look.loss;
            any |= value > 0;
            if (std::isfinite(value))
              looks[look.steps].push_back({static_cast<double>(look.ns) / 1e9, value});
          }
        }
        picture.curves.push_back(curve_of(contender, looks, over_seconds));
      }
      if (any) add(pictures, std::move(picture));
    }
  }
  return pictures;
}

std::vector<Picture> fit_curves(const std::vector<FitTrial>& trials) {
  std::vector<Picture> pictures;
  for (const bool over_seconds : {false, true}) {
    Picture picture{.name = over_seconds ? "loss over seconds" : "loss over steps",
                    .x_title = over_seconds ? "seconds of training" : "steps",
                    .y_title = "loss of the batches trained on"};
    for (const auto& [contender, trainings] : by_contender(trials))
      picture.curves.push_back(thinned(contender, reported(*trainings.front()), over_seconds));
    add(pictures, std::move(picture));
  }
  // Where epochs were watched: the rows held out, too.
  std::vector<TargetTrial> watched;
  for (const FitTrial& trial : trials) {
    if (!trial.failure && !trial.watched.empty())
      watched.push_back({.contender = trial.contender, .seed = trial.seed, .looks = trial.watched});
  }
  for (Picture& picture : target_curves(watched)) {
    if (picture.name.starts_with("loss")) picture.name = "held-out " + picture.name;
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

}  // namespace bakeoff
