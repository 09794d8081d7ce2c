#pragma once

// Whether the queue before a server that answers one request at a time becomes steady, from the times of the
// requests. Only then have its latencies a distribution that a percentile could be of: above capacity they
// rise as long as requests arrive, and what a run shows of them is its own length.
//
//   const Queue queue = judge_queue(arrival, start, end, 50);       // 50 requests arrive a second
//   if (queue.state == QueueState::kSteady) use(latencies from queue.settle on);
//
// `load` is arrival rate x mean service time, the share of the server's capacity that is asked for. Requests
// that arrive at random need more time to forget that the queue began empty the closer the load is to 1: for
// exponential service the relaxation time is s / (1 - sqrt(load))^2 (Cohen, The Single Server Queue, 1982,
// II.2.1), for others about (1 + c^2)/2 times that, c the coefficient of variation of service (the scale of
// heavy traffic); never taken shorter than for exponential service. A run of less than 20 relaxation times is
// too short, and the first two of it are left out.

#include <cstddef>
#include <cstdint>
#include <span>

#include "stats/interval.h"

namespace bakeoff::stats {

enum class QueueState {
  kSteady,
  kGrowing,   // more arrives than can be answered
  kTooShort,  // too close to capacity, or too few requests, to tell or to become steady
};

struct Queue {
  QueueState state = QueueState::kTooShort;
  double load = 0;              // rate x mean service time
  Interval load_interval = {};  // 99%
  double growth_per_s = 0;      // by which the number of requests that wait grew from first to last arrival
  int64_t waiting = 0;          // that had arrived and were not answered when the last one arrived
  int64_t settle = 0;           // requests at the front that show the empty queue it began with; kSteady only
  double wanted = 0;            // requests that would do; infinite at or above capacity
  bool operator==(const Queue&) const = default;
};

// Seconds, in order of arrival; start and end are shorter than arrival where the run was cut off. `rate`:
// arrivals a second that were intended.
Queue judge_queue(std::span<const double> arrival, std::span<const double> start, std::span<const double> end,
                  double rate);

// Mean number of requests in the system from 0 to `until`, by following arrivals and departures through time.
// Both ascend.
double mean_in_flight(std::span<const double> arrival, std::span<const double> end, double until);

}  // namespace bakeoff::stats
