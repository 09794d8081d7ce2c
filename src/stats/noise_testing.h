#pragma once

// Simulated heats with known truth, for the tests of error rates and for the proof (prove/). Seeded, so that
// a test always sees the same.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "stats/pair_table.h"
#include "stats/trimmed.h"

namespace bakeoff::stats::testing {

// Noise on log step times; all zero: none. Standard deviations are relative (0.01 = 1%).
struct NoiseModel {
  double process = 0;          // of a fresh process about its contender
  double process_df = 0;       //   Student's t with so many degrees of freedom; 0: normal
  double order_gain = 0;       // whoever starts first in a heat runs faster by this
  double mode_gap = 0;         // a process runs this much slower in its second mode, one in two
  double machine = 0;          // state of the machine, common to all, AR(1) from burst to burst
  double machine_phi = 0;      //   and from heat to heat
  double step = 0;             // of a step, AR(1) within a burst
  double step_phi = 0;         //
  double spike_share = 0;      // share of the steps that take `spike` more (1 = twice as long)
  double spike = 0;            //
  double drift_per_burst = 0;  // the machine slows down steadily
  double neighbour = 0;        // a two-state neighbour slows bursts by this much; switches one burst in 20
  int neighbour_from = 0;      //   and not before this burst
  double clock_ms = 0;         // times are multiples of this; base step: 100 ms
  std::vector<double> scale = {};  // factor on `process` and `step`, per contender; empty: 1
  int rounds = 4;
  int steps = 8;
};

class Machine {
 public:
  Machine(NoiseModel model, std::vector<double> log_effects, uint64_t seed)
      : model_(std::move(model)), effects_(std::move(log_effects)), random_(seed) {}

  // Step times of a heat of `members`, index = contender. Bursts alternate: a random order, then its reverse
  // (ABBA), and so on.
  std::vector<std::vector<double>> steps(const std::vector<size_t>& members) {
    std::vector<double> process(effects_.size());
    for (const size_t i : members) {
      process[i] = model_.process * scale(i) * shock() + (coin(0.5) ? model_.mode_gap : 0);
    }
    std::vector<size_t> order = members;
    std::shuffle(order.begin(), order.end(), random_);
    process[order.front()] -= model_.order_gain;
    std::vector<std::vector<double>> times(effects_.size());
    for (int round = 0; round < model_.rounds; ++round) {
      for (const size_t i : order) burst(effects_[i] + process[i], scale(i), times[i]);
      std::reverse(order.begin(), order.end());
    }
    return times;
  }

  HeatResult heat(const std::vector<size_t>& members) {
    const std::vector<std::vector<double>> times = steps(members);
    HeatResult result{std::vector<std::optional<double>>(effects_.size())};
    for (const size_t i : members) result.log_ms[i] = log_trimmed_mean(times[i]).value();
    return result;
  }

  HeatResult heat() {
    std::vector<size_t> all(effects_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return heat(all);
  }

  // One paired d = log(contender 0 / contender 1).
  double pair() {
    const HeatResult result = heat({0, 1});
    return *result.log_ms[0] - *result.log_ms[1];
  }

  bool coin(double probability) { return uniform_(random_) < probability; }
  double normal() { return normal_(random_); }

 private:
  double scale(size_t i) const { return model_.scale.empty() ? 1 : model_.scale[i]; }

  // Of variance 1 (3 degrees of freedom and more).
  double shock() {
    if (model_.process_df <= 0) return normal_(random_);
    std::chi_squared_distribution<double> chi(model_.process_df);
    const double df = model_.process_df;
    return normal_(random_) / std::sqrt(chi(random_) / df) * (df > 2 ? std::sqrt((df - 2) / df) : 1);
  }

  void burst(double level, double scale, std::vector<double>& times) {
    machine_ = model_.machine_phi * machine_ +
               std::sqrt(1 - model_.machine_phi * model_.machine_phi) * model_.machine * normal_(random_);
    drifted_ += model_.drift_per_burst;
    const bool awake = bursts_++ >= model_.neighbour_from;
    if (model_.neighbour > 0 && coin(0.05) && awake) neighbour_ = !neighbour_;
    level += machine_ + drifted_ + (neighbour_ ? model_.neighbour : 0);
    double noise = model_.step * normal_(random_);
    for (int step = 0; step < model_.steps; ++step) {
      noise = model_.step_phi * noise +
              std::sqrt(1 - model_.step_phi * model_.step_phi) * model_.step * normal_(random_);
      double ms = 100 * std::exp(level + scale * noise);
      if (model_.spike_share > 0 && coin(model_.spike_share)) ms *= 1 + model_.spike;
      if (model_.clock_ms > 0) ms = model_.clock_ms * std::max(1.0, std::round(ms / model_.clock_ms));
      times.push_back(ms);
    }
  }

  NoiseModel model_;
  std::vector<double> effects_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double machine_ = 0;
  double drifted_ = 0;
  bool neighbour_ = false;
  int bursts_ = 0;
};

}  // namespace bakeoff::stats::testing
