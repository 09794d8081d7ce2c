#include "stats/queue.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "stats/ess.h"
#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

constexpr double kLevel = 0.99;
constexpr double kRelaxations = 20;  // of a run
constexpr double kSettling = 2;      // of them left out

// Requests that arrive within one relaxation time.
double relaxation(double load, double variation) {
  if (!(load < 1)) return kInfinity;
  const double gap = 1 - std::sqrt(load);
  return std::max(1.0, (1 + variation) / 2) * load / (gap * gap);
}

}  // namespace

Queue judge_queue(std::span<const double> arrival, std::span<const double> start, std::span<const double> end,
                  double rate) {
  Queue queue{.wanted = kInfinity};
  if (start.size() < 2 || arrival.size() < start.size()) return queue;
  std::vector<double> service;
  for (size_t i = 0; i < start.size(); ++i) service.push_back(end[i] - start[i]);
  const double mean_s = mean(service);
  queue.load = rate * mean_s;
  if (const auto estimate = mean_estimate(service, kLevel))
    queue.load_interval = {rate * estimate->interval.low, rate * estimate->interval.high};
  const auto answered = std::upper_bound(end.begin(), end.end(), arrival.back()) - end.begin();
  queue.waiting = static_cast<int64_t>(arrival.size()) - answered;
  // The last one has only just come.
  queue.growth_per_s = static_cast<double>(queue.waiting - 1) / (arrival.back() - arrival.front());
  const double fastest = *std::min_element(service.begin(), service.end());
  if (queue.load_interval.low >= 1 || rate * fastest >= 1) {
    queue.state = QueueState::kGrowing;
    return queue;
  }
  // With the upper end of the load's interval: near capacity a small error of the load is a large one of
  // the relaxation time.
  const double variation = variance(service) / (mean_s * mean_s);
  const double forgets = relaxation(queue.load_interval.high, variation);
  queue.wanted = std::ceil(kRelaxations * forgets);
  if (start.size() < arrival.size() || static_cast<double>(start.size()) < queue.wanted) return queue;
  queue.state = QueueState::kSteady;
  queue.settle = static_cast<int64_t>(std::ceil(kSettling * forgets));
  return queue;
}

double mean_in_flight(std::span<const double> arrival, std::span<const double> end, double until) {
  double area = 0, now = 0;
  size_t came = 0, went = 0;
  while (came < arrival.size() || went < end.size()) {
    const bool comes = came < arrival.size() && (went == end.size() || arrival[came] <= end[went]);
    const double next = std::min(comes ? arrival[came] : end[went], until);
    area += (static_cast<double>(came) - static_cast<double>(went)) * (next - now);
    now = next;
    ++(comes ? came : went);
  }
  return (area + (static_cast<double>(came) - static_cast<double>(went)) * (until - now)) / until;
}

}  // namespace bakeoff::stats
