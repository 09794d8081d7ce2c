#pragma once

// Simulated heats with known truth, for the tests of error rates and for the proof (prove/). Seeded, so that
// a test always sees the same.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "stats/heat_value.h"
#include "stats/pair_table.h"
#include "stats/planning.h"

namespace bakeoff::stats::testing {

// What a fresh process differs by from its contender, in units of `process`; all of mean 0 and, where it is
// finite, variance 1.
enum class Shape { kNormal, kExponential, kLognormal };

// Noise on log step times; all zero: none. Standard deviations are relative (0.01 = 1%).
struct NoiseModel {
  double process = 0;     // of a fresh process about its contender
  double process_df = 0;  //   degrees of freedom of Student's t; 0: `process_shape`
  Shape process_shape = Shape::kNormal;
  double process_phi = 0;  //   correlation from heat to heat (AR(1)): fresh processes, and yet alike
  double (*loudness)(int heat) = nullptr;  // factor on `process` and `step` in a heat, counted from 0
  double order_gain = 0;                   // the first to start in a heat runs faster by this
  double mode_gap = 0;                     // a process runs this much slower in its second mode, one in two
  double machine = 0;                      // state of the machine, common to all, AR(1) from burst to burst
  double machine_phi = 0;                  //   and from heat to heat
  double step = 0;                         // of a step, AR(1) within a burst
  double step_phi = 0;                     //
  double spike_share = 0;                  // share of the steps that take `spike` more (1 = twice as long)
  double spike = 0;                        //
  double drift_per_burst = 0;              // the machine slows down steadily
  double neighbour = 0;    // a two-state neighbour slows bursts by this much; switches one burst in 20
  int neighbour_from = 0;  //   and not before this burst
  double bad_share = 0;    // share of the processes of which every second step, by chance, takes `bad` more
  double bad = 0;          //
  double clock_ms = 0;     // times are multiples of this; base step: 100 ms
  std::vector<double> scale = {};    // factor on `process`, `mode_gap` and `step`, per contender; empty: 1
  std::vector<double> lead_in = {};  // by how much a burst's first step, which does not count, takes longer
  // Contender 0 does more work in every so-many-th of all its steps, lead-in included: 5% more on average. As
  // a race does, each burst has one lead-in step, and with probability kSecondLeadIn a second one
  // (stats/planning.h). 0: no such work.
  int recurs = 0;
  // What a unit of stolen processor time costs each contender (log time); empty: nothing is stolen. The share
  // follows the heat's regime, which lasts four heats on average: 5% in the mean, 25% at most; each burst has
  // a share of its own about it. Of mean 0: a contender's effect holds at the mean share.
  std::vector<double> steal_slope = {};
  int rounds = 4;
  int steps = 8;  // that count, of a burst
};

// What was measured of one process.
struct ProcessTimes {
  std::vector<double> step_ms = {};     // of the steps that count
  std::vector<double> burst_ms = {};    // per step, of each burst's steps that count: what heat_value() takes
  std::vector<double> lead_in_ms = {};  // of each burst's first step, which does not count
  std::vector<double> steal = {};       // share of processor time stolen during each burst
};

class Machine {
 public:
  Machine(NoiseModel model, std::vector<double> log_effects, uint64_t seed)
      : model_(std::move(model)),
        effects_(std::move(log_effects)),
        random_(seed),
        lasting_(effects_.size(), 0.0),
        process_(effects_.size(), 0.0),
        bad_(effects_.size(), false),
        done_(effects_.size(), 0),
        keys_(effects_.size(), 0.0) {}

  // Fresh processes of `members`. As a race does (race/heat.cc) they start in random order, and that of every
  // second heat is the reverse of the one before.
  void start(const std::vector<size_t>& members) {
    const bool reversed = heats_ % 2 == 1;
    loud_ = model_.loudness ? model_.loudness(heats_) : 1;
    ++heats_;
    if (!reversed) {
      for (double& key : keys_) key = uniform_(random_);
    }
    if (!model_.steal_slope.empty() && (!regime_ || coin(0.25)))
      regime_ = std::min(kMostSteal, -kMeanSteal * std::log1p(-uniform_(random_)));
    for (const size_t i : members) {
      const double phi = model_.process_phi;
      lasting_[i] = started_.contains(i) ? phi * lasting_[i] + std::sqrt(1 - phi * phi) * shock() : shock();
      started_.insert(i);
      process_[i] = std::clamp(model_.process * loud_ * scale(i) * lasting_[i], -kMostLog, kMostLog) +
                    scale(i) * model_.mode_gap * (coin(0.5) ? 0.5 : -0.5);
      bad_[i] = model_.bad_share > 0 && coin(model_.bad_share);
      done_[i] = 0;
    }
    order_ = members;
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return keys_[a] < keys_[b]; });
    if (reversed) std::reverse(order_.begin(), order_.end());
    process_[order_.front()] -= model_.order_gain;
  }

  // One burst of each of them, in random order. `times`: index = contender.
  void round(std::vector<ProcessTimes>& times) {
    std::shuffle(order_.begin(), order_.end(), random_);
    for (const size_t i : order_) burst(i, times[i]);
  }

  // A heat of `members`, index = contender.
  std::vector<ProcessTimes> times(const std::vector<size_t>& members) {
    std::vector<ProcessTimes> all(effects_.size());
    start(members);
    for (int k = 0; k < model_.rounds; ++k) round(all);
    return all;
  }

  HeatResult heat(const std::vector<size_t>& members) { return result_of(times(members), members); }

  HeatResult heat() {
    std::vector<size_t> all(effects_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return heat(all);
  }

  // What a race makes of a heat.
  static HeatResult result_of(const std::vector<ProcessTimes>& times, const std::vector<size_t>& members) {
    HeatResult result{std::vector<std::optional<double>>(times.size())};
    double steal = 0, bursts = 0;
    result.log_mean_ms.resize(times.size());
    result.variance.resize(times.size());
    for (const size_t i : members) {
      const HeatMeasure measure = measure_heat(times[i].burst_ms).value();
      result.log_ms[i] = measure.log_ms;
      result.log_mean_ms[i] = measure.log_mean_ms;
      result.variance[i] = measure.variance_high();
      for (const double share : times[i].steal) steal += share, ++bursts;
    }
    if (bursts > 0) result.steal = steal / bursts;
    return result;
  }

  // One paired d = log(contender 0 / contender 1).
  double pair() {
    const HeatResult result = heat({0, 1});
    return *result.log_ms[0] - *result.log_ms[1];
  }

  bool coin(double probability) { return uniform_(random_) < probability; }
  double normal() { return normal_(random_); }

 private:
  static constexpr double kMeanSteal = 0.05, kMostSteal = 0.25;
  static constexpr double kMostLog =
      10;  // 22,000 times slower: of Cauchy's distribution, lest times overflow

  double scale(size_t i) const { return model_.scale.empty() ? 1 : model_.scale[i]; }

  // Of variance 1 (Student's t: with 3 degrees of freedom and more).
  double shock() {
    if (model_.process_df > 0) {
      std::chi_squared_distribution<double> chi(model_.process_df);
      const double df = model_.process_df;
      return normal_(random_) / std::sqrt(chi(random_) / df) * (df > 2 ? std::sqrt((df - 2) / df) : 1);
    }
    const double z = normal_(random_);
    if (model_.process_shape == Shape::kExponential) return -std::log1p(-uniform_(random_)) - 1;
    if (model_.process_shape == Shape::kLognormal)
      return (std::exp(z) - std::exp(0.5)) / std::sqrt(std::exp(2.0) - std::exp(1.0));
    return z;
  }

  double log_level(size_t i, ProcessTimes& times) {
    machine_ = model_.machine_phi * machine_ +
               std::sqrt(1 - model_.machine_phi * model_.machine_phi) * model_.machine * normal_(random_);
    drifted_ += model_.drift_per_burst;
    const bool awake = bursts_++ >= model_.neighbour_from;
    if (model_.neighbour > 0 && coin(0.05) && awake) neighbour_ = !neighbour_;
    double level = effects_[i] + process_[i] + machine_ + drifted_ + (neighbour_ ? model_.neighbour : 0);
    if (model_.steal_slope.empty()) return level;
    // Gamma of shape 2 about the regime.
    const double share =
        -regime_.value() / 2 * (std::log1p(-uniform_(random_)) + std::log1p(-uniform_(random_)));
    times.steal.push_back(share);
    const double mean = kMeanSteal * (1 - std::exp(-kMostSteal / kMeanSteal));  // of the capped regimes
    return level + model_.steal_slope[i] * (share - mean);
  }

  void burst(size_t i, ProcessTimes& times) {
    const double level = log_level(i, times);
    const double sd = model_.step * loud_ * scale(i);
    double noise = normal_(random_);
    double sum = 0;
    if (!model_.lead_in.empty())
      times.lead_in_ms.push_back(kBaseMs * std::exp(level + sd * noise) * (1 + model_.lead_in[i]));
    if (model_.recurs > 0) done_[i] += coin(kSecondLeadIn) ? 2 : 1;
    for (int step = 0; step < model_.steps; ++step) {
      noise = model_.step_phi * noise + std::sqrt(1 - model_.step_phi * model_.step_phi) * normal_(random_);
      double ms = kBaseMs * std::exp(level + sd * noise);
      if (model_.spike_share > 0 && coin(model_.spike_share)) ms *= 1 + model_.spike;
      if (bad_[i] && coin(0.5)) ms *= 1 + model_.bad;
      if (i == 0 && model_.recurs > 0 && ++done_[i] % model_.recurs == 0) ms *= 1 + 0.05 * model_.recurs;
      if (model_.clock_ms > 0) ms = model_.clock_ms * std::max(1.0, std::round(ms / model_.clock_ms));
      times.step_ms.push_back(ms);
      sum += ms;
    }
    times.burst_ms.push_back(sum / model_.steps);
  }

  static constexpr double kBaseMs = 100;

  NoiseModel model_;
  std::vector<double> effects_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  std::vector<double> lasting_;  // shock of the latest process, by contender
  std::set<size_t> started_;
  std::vector<double> process_;  // of the running heat, by contender
  std::vector<bool> bad_;        // the same
  std::vector<int> done_;        // steps of the running process, the same
  std::vector<double> keys_;     // of the start order
  std::vector<size_t> order_;    // of the running heat
  double loud_ = 1;
  std::optional<double> regime_;  // share stolen in this heat; absent: not drawn yet
  double machine_ = 0;
  double drifted_ = 0;
  bool neighbour_ = false;
  int bursts_ = 0;
  int heats_ = 0;
};

}  // namespace bakeoff::stats::testing
