#pragma once

// Whether the queue of a server that answers one request at a time becomes steady, from the times of the
// requests. Only then do its latencies have a distribution with percentiles: above capacity they rise as
// long as requests arrive, so they depend on the length of the run.
//
//   const Queue queue = judge_queue(arrival, start, end, 50);       // 50 requests arrive a second
//   if (queue.state == QueueState::kSteady) use(latencies from queue.settle on);
//
// `load` is arrival rate x mean service time: the requested share of the server's capacity. The closer the
// load is to 1, the longer it takes until the empty queue at the beginning has no effect: for exponential
// service the relaxation time is s / (1 - sqrt(load))^2 (Cohen, The Single Server Queue, 1982, II.2.1), for
// others about (1 + c^2)/2 times that, with c the coefficient of variation of service (the scale of heavy
// traffic), but never less than for exponential service. A run of less than 20 relaxation times is too
// short; its first two relaxation times are left out.

#include <cstddef>
#include <cstdint>
#include <span>

#include "stats/interval.h"

namespace bakeoff::stats {

enum class QueueState {
  kSteady,
  kGrowing,   // more requests arrive than can be answered
  kTooShort,  // too close to capacity, or too few requests, to decide or to become steady
};

struct Queue {
  QueueState state = QueueState::kTooShort;
  double load = 0;              // rate x mean service time
  Interval load_interval = {};  // 99%
  double growth_per_s = 0;      // growth of the number of waiting requests, from first to last arrival
  int64_t waiting = 0;          // requests that had arrived and were not answered when the last one arrived
  int64_t settle = 0;  // first requests, which the empty queue at the beginning affects; kSteady only
  double wanted = 0;   // number of requests that would suffice; infinite at or above capacity
  bool operator==(const Queue&) const = default;
};

// Times in seconds, in order of arrival; start and end are shorter than arrival if the run was cut off.
// `rate`: intended arrivals per second.
Queue judge_queue(std::span<const double> arrival, std::span<const double> start, std::span<const double> end,
                  double rate);

// Mean number of requests in the system from 0 to `until`, computed from arrivals and departures. Both
// ascend.
double mean_in_flight(std::span<const double> arrival, std::span<const double> end, double until);

}  // namespace bakeoff::stats
