#include "explain/phases.h"

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "stats/trimmed.h"

namespace bakeoff::explain {
namespace {

constexpr double kQueued = 3;  // mean time of a step over its median, from which on steps are queued
constexpr size_t kWarmUp = 3;  // steps that may compile, allocate and tune themselves

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

// A step of a framework that computes behind the loop ends when it is asked for, not when it is done: then what
// counts is the mean time of a step until all are done, without waits and starts of epochs. 0: it does not.
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
