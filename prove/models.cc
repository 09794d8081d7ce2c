#include "prove/models.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "prove/blocks.h"
#include "prove/engine.h"
#include "stats/e_process.h"

namespace bakeoff::prove {

using stats::testing::NoiseModel;

NoiseModel usual() {
  return {.process = 0.0097, .machine = 0.02, .machine_phi = 0.9, .step = 0.01, .step_phi = 0.5};
}

const std::vector<Model>& models() {
  static const std::vector<Model> kModels = [] {
    NoiseModel unequal = usual();
    unequal.scale = {1, 4};
    NoiseModel late = usual();
    late.neighbour = 0.3;
    late.neighbour_from = 160;  // of 320 bursts in 40 pairs
    NoiseModel both = usual();
    both.drift_per_burst = 0.002;
    both.neighbour = 0.1;
    return std::vector<Model>{
        {"usual mixture", usual()},
        {"process effects", {.process = 0.07, .step = 0.01}},
        {"AR(1) machine", {.machine = 0.05, .machine_phi = 0.97, .step = 0.01}},
        {"AR(1) steps", {.step = 0.05, .step_phi = 0.8}},
        {"spikes", {.process = 0.01, .step = 0.01, .spike_share = 0.05, .spike = 1}},
        {"drift", {.process = 0.01, .step = 0.01, .drift_per_burst = 0.002}},
        {"noisy neighbour", {.process = 0.01, .step = 0.01, .neighbour = 0.5}},
        {"drift and neighbour", both},
        {"neighbour half-way", late},
        {"heavy tails", {.process = 0.01, .process_df = 2.5, .step = 0.01}},
        {"two modes", {.process = 0.01, .mode_gap = 0.05, .step = 0.01}},
        {"unequal arms", unequal},
        {"coarse clock", {.machine = 0.02, .step = 0.01, .clock_ms = 15.6, .rounds = 2, .steps = 2}, 0.16},
        {"sharp modes", {.process = 0.0005, .mode_gap = 0.05, .step = 0.002}, 0, true},
        {"order effect", {.process = 0.0005, .order_gain = 0.02, .step = 0.002}, 0, true},
    };
  }();
  return kModels;
}

namespace {

double falls_16_times(int heat) { return std::max(0.25, std::pow(0.5, heat / 4.0)); }  // the variance
double falls_100_times(int heat) { return heat < 2 ? 1 : 0.1; }
double alternates(int heat) { return heat % 2 == 0 ? 1 : 5; }

NoiseModel correlated(double phi) {
  NoiseModel noise = usual();
  noise.process_phi = phi;
  return noise;
}

// Of one contender only: d has the shape of its processes.
NoiseModel one_sided(stats::testing::Shape shape) {
  return {.process = 0.02, .process_shape = shape, .step = 0.002, .scale = {1, 0.01}};
}

// d takes two values about its centre, blurred by so much of their half distance.
NoiseModel two_values(double blur) { return {.process = 0.02 * blur, .mode_gap = 0.04, .scale = {1, 0.001}}; }

// sd of a burst 4.8% beside what steal makes of it, as recorded on a busy cloud machine.
NoiseModel stolen(double slope_a, double slope_b, int bursts) {
  return {.step = 0.06, .step_phi = 0.5, .steal_slope = {slope_a, slope_b}, .rounds = bursts, .steps = 3};
}

}  // namespace

const std::vector<HostModel>& host_models() {
  static const std::vector<HostModel> kModels = [] {
    using stats::testing::Shape;
    const auto louder = [](double (*loudness)(int)) {
      NoiseModel noise = usual();
      noise.loudness = loudness;
      return noise;
    };
    NoiseModel lead_in = usual();
    lead_in.lead_in = {0.107, 0.037};
    NoiseModel bad = usual();
    bad.bad_share = 1.0 / 32;
    bad.bad = 1.1;
    const char* const kPast = "d depends on the heats before";
    const char* const kSkewed = "d is skewed";
    const char* const kExposed = "steal hits one more, for minutes";
    const char* const kModes = "d has two values";
    return std::vector<HostModel>{
        {"variance falls 16 times in 8 heats", louder(falls_16_times)},
        {"variance falls 100 times at heat 3", louder(falls_100_times)},
        {"sd alternates 1 : 5", louder(alternates)},
        {"Student's t, 1.5 degrees", {.process = 0.01, .process_df = 1.5, .step = 0.01}},
        {"Cauchy", {.process = 0.01, .process_df = 1, .step = 0.01}},
        {"one process in 32 bad", bad},
        {"first step of a burst +10.7%, +3.7%", lead_in},
        {"steal in regimes, equal slopes, 4 bursts", stolen(1.6, 1.6, 4)},
        {"steal in regimes, equal slopes, 16 bursts", stolen(1.6, 1.6, 16)},
        {"both have two modes, blurred", {.process = 0.006, .mode_gap = 0.04}},
        {"both have two modes, sharp", {.process = 0.0006, .mode_gap = 0.04}, "d has three values"},
        {"one has two modes, blurred", two_values(0.3), kModes},
        {"one has two modes, sharp", two_values(0.03), kModes},
        {"steal in regimes, slopes 1.6 and 0.6, 4 bursts", stolen(1.6, 0.6, 4), kExposed},
        {"steal in regimes, slopes 1.6 and 0.6, 16 bursts", stolen(1.6, 0.6, 16), kExposed},
        {"skewed, exponential", one_sided(Shape::kExponential), kSkewed},
        {"skewed, lognormal", one_sided(Shape::kLognormal), kSkewed},
        {"correlated from heat to heat, .3", correlated(0.3), kPast},
        {"correlated from heat to heat, .6", correlated(0.6), kPast},
        {"correlated from heat to heat, .9", correlated(0.9), kPast},
    };
  }();
  return kModels;
}

double sd_of(const Model& model, int pairs) {
  const Source source = simulated(model.noise, 0, 99);
  stats::EProcess d;
  for (int i = 0; i < pairs; ++i) d.add(log_ratio(source()));
  return d.sd();
}

NoiseModel brisk() {
  return {.process = 0.0092, .machine = 0.02, .machine_phi = 0.9, .step = 0.007, .rounds = 2, .steps = 2};
}

std::vector<double> shuffled(std::vector<double> effects, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::shuffle(effects.begin(), effects.end(), random);
  return effects;
}

std::vector<double> wide(size_t k) {
  std::vector<double> effects(k, 0.0);
  effects[1] = std::log1p(kMargin / 2);
  for (size_t i = 2; i < k; ++i) {
    effects[i] = std::log(1.1) +
                 (std::log(4.0) - std::log(1.1)) * static_cast<double>(i - 2) / static_cast<double>(k - 3);
  }
  return effects;
}

}  // namespace bakeoff::prove
