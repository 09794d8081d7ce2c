#pragma once

// The record of requests that were served, a line of latency.jsonl.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/kept.h"

namespace bakeoff {

// One process serving in one mode. Times: ns since serving began. How they are measured: study/latency/latency.h.
struct LatencyTrial {
  std::string contender = {};
  int round = 0;                         // counted from 1
  double rate = 0;                       // arrivals a second; 0: single stream
  std::string started = {};              // UTC
  std::optional<Failure> failure = {};   // absent: ok
  std::vector<int64_t> arrival_ns = {};  // intended; empty in single stream
  std::vector<int64_t> start_ns = {};    // when it was taken up; fewer than arrivals where time ran out
  std::vector<int64_t> end_ns = {};      // when it was answered
  int64_t ns = 0;                        // of all, by the worker's clock
  int64_t went_by_ns = 0;                // the same, by ours
  double step_ms = 0;                    // fastest_step_ms() of the race (study/latency/latency.h)
  HostRound host = {};
  Texts effective = {};
  bool single_stream() const { return rate == 0; }
  bool operator==(const LatencyTrial &) const = default;
};

template <>
struct Kept<LatencyTrial> {
  static constexpr const char *kFile = "latency.jsonl", *kKey = "contender";
};

}  // namespace bakeoff
