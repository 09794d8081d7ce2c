#pragma once

// Two versions of a script that are compared by a figure which they print: throughput, a loss, memory. Each pair is two
// fresh processes, in random order, as they run without Bakeoff.

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"
#include "regression/metric.h"
#include "regression/script_pair.h"

namespace bakeoff::regression {

class MetricPair : public Pairing {
 public:
  static Result<std::unique_ptr<MetricPair>> make(ScriptSide base, ScriptSide head, const Metric& metric);

  std::vector<Row> rows() const override;
  // One pair of runs. Errors: a run fails, prints no such figure or one of 0 and below, or the first pair does not end in
  // the time that is left.
  Result<std::vector<PairHeats>> heat(const std::vector<size_t>& open, int64_t rounds,
                                      double left_s) override;
  double round_s(const std::vector<size_t>& open) const override;
  bool whole_runs() const override { return true; }
  std::string per() const override { return "run"; }
  std::vector<std::string> notes() const override;
  std::string file = {};  // of the row

 private:
  MetricPair() = default;
  Result<std::optional<double>> run(const ScriptSide& side, double left_s);
  ScriptSide sides_[2];
  Metric metric_ = {};
  MetricReader reader_ = {};
  std::mt19937_64 random_{1};
  double pair_s_ = 0;      // of the last pair
  size_t pairs_ = 0;       // so far
  size_t most_lines_ = 0;  // of a run, with a figure
};

}  // namespace bakeoff::regression
