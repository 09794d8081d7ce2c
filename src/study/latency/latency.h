#pragma once

// How long requests take that arrive by themselves, in the scenario "predict". A request is one step: `batch`
// rows forward, until the whole output is there.
//
//   single stream   the next request arrives when the last one is answered: the time of an answer, no queue
//   open loop       requests arrive at random at a stated rate (Poisson), seeded, the same moments for every
//                   contender of a round, whether or not earlier ones are answered; latency counts from the
//                   moment a request was to arrive, so what it had to wait behind a slow one is part of it
//
// Measured after the race, of those that the gate has proven and that the race did not throw out: one fresh
// process after the other, alone on the machine, in random order within a round. Each warms up, then serves
// single stream and every rate. Records are the raw times (latency.jsonl); their results are a pure
// function of them (study/latency/latency_summary.h).

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "recipe/recipe.h"
#include "records/trial.h"
#include "study/study.h"

namespace bakeoff {

// Moments, ns from 0, of `requests` arrivals at `per_s` a second: gaps are independent and exponential.
std::vector<int64_t> poisson_arrivals(double per_s, int64_t requests, uint64_t seed);

// Requests of one process at `per_s` a second: as many as are asked for, and fit the recipe's seconds.
int64_t planned_requests(const recipe::Latency& latency, double per_s);

// Milliseconds of a step in the fastest burst of a contender's trials that had the processors to themselves,
// of those of 100 ms and more; 0: there is none.
double fastest_step_ms(const std::vector<Trial>& trials, const std::string& contender);

// Study::run of latencies, into latency.jsonl.
Status measure_latencies(const Afterwards& race);

}  // namespace bakeoff
