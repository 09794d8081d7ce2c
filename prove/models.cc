#include "prove/models.h"

#include <cmath>

#include "prove/blocks.h"
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

double sd_of(const Model& model, int pairs) {
  const Source source = simulated(model.noise, 0, 99);
  stats::EProcess d;
  for (int i = 0; i < pairs; ++i) d.add(log_ratio(source()));
  return d.sd();
}

}  // namespace bakeoff::prove
