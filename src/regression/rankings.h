#pragma once

// Finished runs side by side, each with the ranking of its own race: of several machines, or of several days. What
// compares two contenders was paired within one race ("behind"); of two runs no ratio of times is ever made.
//
//   to_text(rankings({first, second, third}), 80)   // as many beside each other as 80 columns have room for

#include <optional>
#include <string>
#include <vector>

#include "summary/summary.h"
#include "table/numbers.h"

namespace bakeoff::regression {

// A contender's place in its own run.
struct Place {
  int rank_best = 0, rank_worst = 0;
  double ms = 0;                      // of a step: median over the heats
  Estimate ratio = {};                // to that run's leader
  std::optional<double> joules = {};  // of a sample
  std::optional<double> price = {};   // of a million samples, in the recipe's currency
};

struct RankedRun {
  std::string run = {}, started = {};
  std::string machine = {};   // "Example CPU, 2 processors"
  std::string workload = {};  // "mnist_cnn, batch 64"
  std::string state = {};     // "decided", "interrupted"
  std::string currency = {};
  bool fleet = false;
  std::vector<std::optional<Place>> places =
      {};  // parallel to the contenders; nullopt: not ranked in this run
};

struct Rankings {
  std::vector<RankedRun> runs = {};
  std::vector<std::string> ids = {},
                           names = {};  // of contenders that any run has ranked: in files; as people say
  bool same_work = true;                // one workload with the same data, weights and batch
};

Rankings rankings(const std::vector<Summary>& runs);

// A contender's place in its run; nullopt: the run has not ranked it, or has no time of it.
std::optional<Place> place_in(const Summary& run, const std::string& contender);
// "mnist_cnn": the text of a workload begins with "workload mnist_cnn(".
std::string workload_name(const Manifest& manifest);

// Beside each other or below, each block headed by one of `heads`.
std::string blocks_text(const Rankings& rankings, const std::vector<std::string>& heads, int width);
// "2", or "2-3" where places are shared.
std::string rank_text(const Place& place);
// Why there is no ratio of times of two runs.
std::string never_paired(const Rankings& rankings);

std::string to_text(const Rankings& rankings, int width);
std::string to_json(const Rankings& rankings);  // {"format": "bakeoff rankings 1", "runs": [...]}
std::string to_csv(const Rankings& rankings);   // a line for each run and contender

// Of energies and prices, which may be of any size: "0.143", "27,900", "2.79e+298".
std::string any_size(const std::optional<double>& value);

}  // namespace bakeoff::regression
