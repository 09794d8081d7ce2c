// A report has the time at which each step ended, how long it waited for data, which steps begin an epoch and
// what was imported. Phases are made of these alone, so that they add up to the whole run whatever the script
// does. A typical step is the median; what a step takes beyond that is warm-up in the first three steps, the
// start of an epoch in the step that begins one, and else belongs to the steps.
//
// Two kinds of scripts break this. Where the framework computes behind the loop, a step ends when it is asked
// for, and marks say too little until a queue is full: the mean until all is done counts instead
// (mean_of_queued). Where steps become longer from step to step, there is no typical one: step_trend() tells
// the caller, who then compares the same steps of both scripts.

#include "explain/phases.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "stats/trimmed.h"

namespace bakeoff::explain {
namespace {

constexpr double kQueued = 3;        // steps are queued if their mean is more than this above their median
constexpr int64_t kTrendSteps = 40;  // fewest steps that show a trend
constexpr double kFromThird = 1.15;  // each third of the steps over the one before, at least
constexpr double kGrown = 1.5;       // the last step over the first, at least
constexpr double kSurely = 2.33;     // standard errors: 99%
constexpr size_t kWarmUp = 3;        // steps that may compile, allocate and tune themselves
constexpr double kLong = 8;          // a step that takes longer than this many medians is unlike the others
constexpr double kLongShare = 0.15, kOneLongShare = 0.3;  // least share of the time: several, one

double seconds(int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kSecond); }

// Imports within imports count once.
int64_t union_of(std::vector<Report::Import> imports) {
  std::ranges::sort(imports, {}, &Report::Import::begin);
  int64_t total = 0, end = 0;
  for (const Report::Import& one : imports) {
    total += std::max<int64_t>(0, one.end - std::max(one.begin, end));
    end = std::max(end, one.end);
  }
  return total;
}

// If the framework computes behind the loop, a step ends when it is asked for, not when it is done. The mean time
// of a step until all are done, without waits and starts of epochs; 0 if steps are not queued.
double mean_of_queued(const Report& report) {
  const std::vector<int64_t>& marks = report.marks;
  const std::set<int64_t> begins(report.epochs.begin(), report.epochs.end());
  int64_t spent = report.begun + report.ns - marks.back(), steps = 0;
  std::vector<double> own;
  for (size_t i = std::max<size_t>(1, std::min(kWarmUp, marks.size() - 1)); i < marks.size(); ++i) {
    if (begins.contains(static_cast<int64_t>(i))) continue;
    const int64_t whole = marks[i] - marks[i - 1];
    own.push_back(seconds(whole - std::min(whole, report.waits[i])));
    spent += whole - std::min(whole, report.waits[i]);
    ++steps;
  }
  if (steps == 0) return 0;
  const double mean = seconds(spent) / static_cast<double>(steps);
  return mean > kQueued * stats::median(own) ? mean : 0;
}

struct Numbered {
  double number = 0;  // of a step
  double seconds = 0;
};

// Whether steps with greater numbers take longer: from third to third of all, and by the slope of a line.
std::optional<StepTrend> grown(std::vector<Numbered> steps) {
  if (static_cast<int64_t>(steps.size()) < kTrendSteps) return std::nullopt;
  std::ranges::stable_sort(steps, {}, &Numbered::number);
  const size_t third = steps.size() / 3;
  std::vector<double> thirds;
  for (size_t k = 0; k < 3; ++k) {
    std::vector<double> part;
    for (size_t i = k * third; i < (k + 1) * third; ++i) part.push_back(steps[i].seconds);
    thirds.push_back(stats::median(part));
  }
  if (thirds[1] < kFromThird * thirds[0] || thirds[2] < kFromThird * thirds[1]) return std::nullopt;
  const auto n = static_cast<double>(steps.size());
  double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  for (Numbered& one : steps) {
    one.seconds = std::min(one.seconds, 2 * thirds[2]);  // something else held this step up
    x += one.number / n;
    y += one.seconds / n;
  }
  for (const Numbered& one : steps) {
    xx += (one.number - x) * (one.number - x);
    xy += (one.number - x) * (one.seconds - y);
    yy += (one.seconds - y) * (one.seconds - y);
  }
  const double slope = xy / xx, error = std::sqrt(std::max(0.0, yy - slope * xy) / (n - 2) / xx);
  const double from = steps.front().number, to = steps.back().number;
  StepTrend trend{.first_s = std::max(0.0, y + slope * (from - x)),
                  .last_s = y + slope * (to - x),
                  .least_per_step_s = slope - kSurely * error,
                  .steps = std::llround(to - from)};
  if (trend.least_per_step_s <= 0 || trend.last_s < kGrown * trend.first_s) return std::nullopt;
  return trend;
}

// Fills in how often a step takes far longer than others. The first three steps may compile.
void find_period(const std::vector<double>& steps, Profile& profile) {
  const double typical = stats::median(steps);
  std::vector<double> lengths;
  double all_s = 0, long_s = 0;
  size_t last = 0, first = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    all_s += steps[i];
    if (steps[i] < kLong * typical) continue;
    long_s += steps[i];
    if (lengths.empty()) first = i;
    lengths.push_back(static_cast<double>(i - last));
    last = i;
  }
  if (lengths.size() > 1) lengths.erase(lengths.begin());  // it began before the first step
  if (lengths.empty() || long_s < (first == last ? kOneLongShare : kLongShare) * all_s) return;
  const double length = stats::median(lengths);
  if (length < 2) return;
  profile.period_steps = length;
  profile.period_s = length * typical + long_s / static_cast<double>(first == last ? 1 : lengths.size() + 1);
}

struct Split {
  int64_t warm_up = 0, wait = 0, epochs = 0, steps = 0;
};

}  // namespace

Profile profile_of_run(const Report& report) {
  Profile profile;
  const int64_t begin = std::min(report.started, report.begun), end = report.begun + report.ns;
  const double imports = seconds(union_of(report.imports));
  profile.total_s = profile.step_s = seconds(end - begin);
  profile.phases = {{"imports", "importing the framework", imports},
                    {"run", "all else", profile.total_s - imports}};
  return profile;
}

std::optional<StepTrend> step_trend(const Report& report) {
  const std::vector<int64_t>& marks = report.marks;
  // Queued steps take longer once the queue is full.
  if (static_cast<int64_t>(marks.size()) < kTrendSteps || mean_of_queued(report) > 0) return std::nullopt;
  const std::set<int64_t> compiles(report.compile_steps.begin(), report.compile_steps.end());
  std::vector<Numbered> all, of_epochs;
  int64_t since = 0, longest = 0;  // where the epoch began, and steps of the longest
  for (size_t i = kWarmUp; i < marks.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const bool begins = std::ranges::find(report.epochs, at) != report.epochs.end();
    if (begins) since = at;
    const int64_t whole = marks[i] - marks[i - 1];
    if (begins || compiles.contains(at)) continue;
    const double took = seconds(whole - std::min(whole, report.waits[i]));
    all.push_back({static_cast<double>(at), took});
    of_epochs.push_back({static_cast<double>(at - since), took});
    longest = std::max(longest, at - since);
  }
  if (auto trend = grown(std::move(all))) return trend;
  if (report.epochs.size() < 2 || longest < kTrendSteps / 2) return std::nullopt;
  auto trend = grown(std::move(of_epochs));
  if (trend) trend->of_epoch = true;
  return trend;
}

Profile profile_of(const Report& report) {
  Profile profile{.steps = report.steps()};
  const int64_t begin = std::min(report.started, report.begun), end = report.begun + report.ns;
  profile.total_s = seconds(end - begin);
  const std::vector<int64_t>& marks = report.marks;
  std::vector<double> own, waits, all;
  for (size_t i = std::min(kWarmUp, marks.size() - 1); i < marks.size(); ++i) {
    if (i == 0) continue;
    const int64_t whole = marks[i] - marks[i - 1];
    own.push_back(seconds(whole - std::min(whole, report.waits[i])));
    waits.push_back(seconds(report.waits[i]));
    all.push_back(seconds(whole));
  }
  profile.step_s = std::max(stats::median(own), mean_of_queued(report));
  const double spent = stats::mean(all);
  profile.wait_share = spent > 0 ? stats::mean(waits) / spent : 0;
  const std::set<int64_t> begins(report.epochs.begin(), report.epochs.end());
  const auto typical = static_cast<int64_t>(profile.step_s * static_cast<double>(kSecond));
  Split split;
  std::vector<double> starts;
  for (size_t i = 1; i < marks.size(); ++i) {
    const int64_t whole = marks[i] - marks[i - 1], wait = std::min(whole, report.waits[i]);
    const int64_t excess = std::max<int64_t>(0, whole - wait - typical);
    split.wait += wait;
    split.steps += whole - wait - excess;
    const bool first = begins.contains(static_cast<int64_t>(i));
    if (first) starts.push_back(seconds(wait + excess));
    (i < kWarmUp ? split.warm_up : first ? split.epochs : split.steps) += excess;
  }
  if (!starts.empty()) profile.epoch_start_s = stats::median(starts);
  std::vector<double> lengths;
  for (auto at = begins.begin(); at != begins.end() && std::next(at) != begins.end(); ++at)
    lengths.push_back(static_cast<double>(*std::next(at) - *at));
  if (!lengths.empty()) profile.epoch_steps = stats::median(lengths);
  if (begins.empty()) find_period(all, profile);
  const int64_t imports = union_of(report.imports);
  profile.phases = {
      {"imports", "importing the framework", seconds(imports)},
      {"set_up", "set-up and first step", seconds(marks.front() - begin - imports)},
      {"warm_up", "warm-up of the next steps", seconds(split.warm_up)},
      {"steps", "steps", seconds(split.steps)},
      {"waits", "waiting for data", seconds(split.wait)},
      {"epochs", "between epochs", seconds(split.epochs)},
      {"end", "after the last step", seconds(end - marks.back())},
  };
  return profile;
}

}  // namespace bakeoff::explain
