// Percentiles of latency exist only where the queue is steady: above its capacity a server's latency grows
// for as long as one measures, and a percentile would tell the length of the run. So it is first asked
// whether the queue grows, and only a steady one gets percentiles with their bounds. Latency counts from the
// moment at which a request was due and not from that at which it was taken up, or a server that stalls would
// hide its own delay. Records come from the contender's process and are checked against what went by outside
// of it: the sum of its service must fit into the time, with little slack.

#include "study/latency/latency_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "records/controls.h"
#include "stats/queue.h"
#include "stats/trimmed.h"

namespace bakeoff {
namespace {

constexpr double kMsPerS = 1e3;
constexpr double kClockSlack = 1e-3;  // seconds; the answer travels after the last reading of the clock
constexpr double kBeside = 1.1, kBesideSlack = 0.2;  // of what is claimed; seconds
constexpr double kShareOfStep = 0.5;
constexpr double kSurelyAbove =
    1.2;  // share of its capacity that is asked for: no steady queue, however few requests
constexpr double kLate = 0.1;  // of the median latency: worth a note

std::vector<double> seconds(const std::vector<int64_t>& ns) {
  std::vector<double> s;
  for (const int64_t one : ns) s.push_back(static_cast<double>(one) / 1e9);
  return s;
}

// A record's times in seconds. In single stream a request arrives when it is taken up.
struct Times {
  std::vector<double> planned, start, end, latency, service, late;
  explicit Times(const LatencyTrial& trial)
      : planned(seconds(trial.single_stream() ? trial.start_ns : trial.arrival_ns)),
        start(seconds(trial.start_ns)),
        end(seconds(trial.end_ns)) {
    for (size_t i = 0; i < start.size(); ++i) {
      latency.push_back(end[i] - planned[i]);
      service.push_back(end[i] - start[i]);
      if (i == 0 || end[i - 1] <= planned[i]) late.push_back(start[i] - planned[i]);
    }
  }
  std::span<const double> arrived() const { return std::span(planned).first(start.size()); }
};

bool complete(const LatencyTrial& t) {
  const bool planned = t.single_stream() || t.arrival_ns.size() >= t.start_ns.size();
  return planned && !t.start_ns.empty() && t.start_ns.size() == t.end_ns.size();
}

std::optional<Broken> check_order(const Times& times) {
  for (size_t i = 0; i < times.start.size(); ++i) {
    const double from = std::max(times.planned[i], i > 0 ? times.end[i - 1] : 0);
    if (times.start[i] >= from && times.end[i] >= times.start[i]) continue;
    return Broken{"requests are taken up one at a time, once they arrived",
                  fmt::format("{:.6f} to {:.6f} s", times.start[i], times.end[i]),
                  fmt::format("{:.6f} s", from)};
  }
  return std::nullopt;
}

// No more than went by, and not much less: beside the requests there are only their arrivals and times to
// read and write.
std::optional<Broken> check_clock(double claimed_s, double elapsed_s) {
  if (!(claimed_s > 0 && claimed_s <= elapsed_s + kClockSlack))
    return Broken{"requests took no longer than went by", fmt::format("{:.6g} s", claimed_s),
                  fmt::format("{:.6g} s", elapsed_s)};
  if (elapsed_s <= kBeside * claimed_s + kBesideSlack) return std::nullopt;
  return Broken{"requests took as long as went by", fmt::format("{:.6g} s", claimed_s),
                fmt::format("{:.6g} s", elapsed_s)};
}

std::optional<Broken> check_service(double answer_ms, double step_ms) {
  if (answer_ms >= kShareOfStep * step_ms) return std::nullopt;
  return Broken{"an answer takes at least half of a step at full throughput",
                fmt::format("{:.4g} ms", answer_ms), fmt::format("{:.4g} ms", kShareOfStep * step_ms)};
}

// The records of one contender in one mode.
class Mode {
 public:
  Mode(std::vector<const LatencyTrial*> trials, const recipe::Latency& asked, double level)
      : trials_(std::move(trials)), asked_(asked), level_(level) {}

  LatencyRow row() {
    row_.contender = trials_.front()->contender;
    row_.rate = trials_.front()->rate;
    row_.processes = static_cast<int>(trials_.size());
    for (const LatencyTrial* trial : trials_) {
      if (!sound(*trial)) return std::move(row_);
      times_.emplace_back(*trial);
    }
    describe();
    if (row_.single_stream())
      settle_.assign(times_.size(), 0);
    else if (!judge_queues())
      return std::move(row_);
    quote();
    return std::move(row_);
  }

 private:
  bool sound(const LatencyTrial& trial) {
    if (trial.failure) {
      row_.note = trial.failure->text();
      return false;
    }
    const std::vector<Broken> broken = check_latency(trial);
    if (!broken.empty()) row_.note = broken.front().verdict();
    return broken.empty();
  }

  void describe() {
    std::vector<double> service, late;
    for (const Times& t : times_) {
      service.insert(service.end(), t.service.begin(), t.service.end());
      late.insert(late.end(), t.late.begin(), t.late.end());
    }
    row_.service_ms = kMsPerS * stats::mean(service);
    row_.load = row_.rate * stats::mean(service);
    if (!late.empty()) row_.late_ms = kMsPerS * stats::quantile(late, 0.99);
  }

  // False: there is no steady queue, and why.
  bool judge_queues() {
    std::vector<stats::Queue> queues;
    for (const Times& t : times_) queues.push_back(stats::judge_queue(t.planned, t.start, t.end, row_.rate));
    const auto is = [](stats::QueueState state) {
      return [state](const stats::Queue& queue) { return queue.state == state; };
    };
    if (const auto growing = std::find_if(queues.begin(), queues.end(), is(stats::QueueState::kGrowing));
        growing != queues.end()) {
      row_.state = LatencyState::kGrowing;
      row_.growth_per_s = growing->growth_per_s;
      row_.note = fmt::format(
          "above its capacity: {:g} requests arrive a second, {:.3g} can be answered; the queue grows by "
          "{:.3g} a "
          "second, {} were waiting when the last one came",
          row_.rate, kMsPerS / row_.service_ms, growing->growth_per_s, growing->waiting);
      return false;
    }
    if (const auto open = std::find_if(queues.begin(), queues.end(), is(stats::QueueState::kTooShort));
        open != queues.end()) {
      const bool above = row_.load >= kSurelyAbove;
      row_.state = above ? LatencyState::kGrowing : LatencyState::kUnsettled;
      if (above) row_.growth_per_s = row_.rate - kMsPerS / row_.service_ms;
      row_.note = above ? above_capacity() : unsettled(*open);
      return false;
    }
    for (const stats::Queue& queue : queues) settle_.push_back(static_cast<size_t>(queue.settle));
    return true;
  }

  // By the time of an answer alone, where the requests were too few to watch the queue grow.
  std::string above_capacity() const {
    return fmt::format(
        "above its capacity: {:g} requests arrive a second, {:.3g} can be answered, so the queue grows for as long as "
        "they arrive",
        row_.rate, kMsPerS / row_.service_ms);
  }

  std::string unsettled(const stats::Queue& queue) const {
    if (!std::isfinite(queue.wanted)) {
      return fmt::format("at {:.0f}% of its capacity, too close to tell whether the queue grows",
                         100 * row_.load);
    }
    return fmt::format(
        "the queue has not become steady at {:.0f}% of its capacity: {} requests of a process are "
        "needed (latency.requests, latency.seconds), {} were made",
        100 * row_.load, static_cast<int64_t>(queue.wanted), times_.front().start.size());
  }

  void quote() {
    std::vector<std::vector<double>> series;
    std::vector<double> all;
    for (size_t i = 0; i < times_.size(); ++i) {
      series.emplace_back();
      for (size_t k = settle_[i]; k < times_[i].latency.size(); ++k)
        series.back().push_back(kMsPerS * times_[i].latency[k]);
      all.insert(all.end(), series.back().begin(), series.back().end());
    }
    row_.state = LatencyState::kSteady;
    row_.requests = static_cast<int64_t>(all.size());
    row_.mean_ms = stats::mean(all);
    std::map<double, double> ascending;
    for (const double p : asked_.percentiles) {
      row_.percentiles.push_back(stats::percentile(series, p / 100, level_));
      ascending[p] = row_.percentiles.back().value;
      stats::Interval range{std::numeric_limits<double>::infinity(), 0};
      for (const auto& one : series) {
        const double value = stats::percentile({one}, p / 100, level_).value;
        range = {std::min(range.low, value), std::max(range.high, value)};
      }
      row_.by_process.push_back(range);
    }
    if (const auto broken = check_percentiles(ascending)) {
      row_.state = LatencyState::kFailed;
      row_.note = broken->text();
    } else if (row_.late_ms > kLate * stats::median(all) && !row_.single_stream()) {
      row_.note = fmt::format("the load generator was late by up to {:.3g} ms, which counts as latency",
                              row_.late_ms);
    }
  }

  std::vector<const LatencyTrial*> trials_;
  const recipe::Latency& asked_;
  double level_;
  std::vector<Times> times_;
  std::vector<size_t> settle_;  // requests at the front of each that are left out
  LatencyRow row_;
};

}  // namespace

std::vector<Broken> check_latency(const LatencyTrial& trial) {
  if (trial.failure) return {};
  if (!complete(trial))
    return {{"every request has a start and an end", "other numbers of them", "the same"}};
  std::vector<Broken> found;
  const auto add = [&](std::optional<Broken> broken) {
    if (broken) found.push_back(std::move(*broken));
  };
  const Times times(trial);
  const double whole_s = static_cast<double>(trial.ns) / 1e9;
  add(check_order(times));
  add(check_clock(std::max(whole_s, times.end.back()), static_cast<double>(trial.elapsed_ns) / 1e9));
  add(check_littles_law(stats::mean_in_flight(times.arrived(), times.end, whole_s),
                        static_cast<double>(times.end.size()) / whole_s, stats::mean(times.latency)));
  add(check_service(kMsPerS * stats::median(times.service), trial.step_ms));
  return found;
}

std::vector<LatencyRow> latency_rows(const std::vector<LatencyTrial>& trials,
                                     const std::vector<std::string>& ids, const recipe::Latency& asked,
                                     double level) {
  std::vector<double> rates = {0};
  rates.insert(rates.end(), asked.arrivals_per_second.begin(), asked.arrivals_per_second.end());
  std::vector<LatencyRow> rows;
  for (const double rate : rates) {
    for (const std::string& id : ids) {
      std::vector<const LatencyTrial*> own;
      for (const LatencyTrial& trial : trials) {
        if (trial.contender == id && trial.rate == rate) own.push_back(&trial);
      }
      if (!own.empty()) rows.push_back(Mode(std::move(own), asked, level).row());
    }
  }
  return rows;
}

std::vector<std::string> latency_notes(const std::vector<LatencyTrial>& trials) {
  int busy = 0;
  std::string example;
  for (const LatencyTrial& trial : trials) {
    busy += !trial.host.busy.empty();
    if (!trial.host.busy.empty()) example = trial.host.busy;
  }
  if (busy == 0) return {};
  return {
      fmt::format("The host disturbed {} of {} measurements of latency, for example: {}. What it did to them "
                  "is in the tails.",
                  busy, trials.size(), example)};
}

}  // namespace bakeoff
