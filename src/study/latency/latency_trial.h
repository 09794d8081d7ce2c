#pragma once

// The record of requests that were served, a line of latency.jsonl.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/kept.h"

namespace bakeoff {

// One process that serves requests in one mode. Times are ns since serving began. study/latency/latency.h
// says how they are measured.
struct LatencyTrial {
  std::string contender = {};
  int round = 0;                         // counted from 1
  double rate = 0;                       // arrivals per second; 0: single stream
  std::string started = {};              // UTC
  std::optional<Failure> failure = {};   // absent: ok
  std::vector<int64_t> arrival_ns = {};  // planned arrival of each request; empty in single stream
  std::vector<int64_t> start_ns = {};    // when the worker began each request; fewer if time ran out
  std::vector<int64_t> end_ns = {};      // when the worker answered each request
  int64_t ns = 0;                        // duration of all requests by the worker's clock
  int64_t elapsed_ns = 0;                // the same duration by our clock
  double step_ms = 0;                    // fastest_step_ms() of the race (study/latency/latency.h)
  HostRound host = {};
  Texts effective = {};
  bool single_stream() const { return rate == 0; }
  bool operator==(const LatencyTrial&) const = default;
};

template <>
struct Kept<LatencyTrial> {
  static constexpr const char* kFile = "latency.jsonl";
  static constexpr const char* kKey = "contender";
};

}  // namespace bakeoff
