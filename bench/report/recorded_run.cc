// Writes a run directory as a long race leaves it behind, without racing: every contender of a recipe proven
// and timed in every heat, with made-up times (from STEP_MS up, a fifth apart) in the numbers that the recipe
// asks for.
//
//   recorded_run RECIPE FOLDER HEATS STEP_MS

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "plan/plan.h"
#include "recipe/recipe.h"
#include "records/records.h"
#include "tensor/rng.h"

namespace bakeoff {
namespace {

Parity proof(const std::string& id, int64_t steps) {
  Parity parity{.contender = id};
  parity.checks = {{"float64 loss", "loss", 2e-16, 1e-10, true},
                   {"float64 gradients", "grad/conv1.weight", 3e-15, 1e-8, true},
                   {"optimizer update", "update/fc1.weight", 4e-13, 1e-8, true},
                   {"float32 losses", "step 9", 3e-7, 1e-4, true}};
  for (int64_t i = 0; i < steps; ++i) parity.losses.push_back(2.3 / std::sqrt(1 + static_cast<double>(i)));
  return parity;
}

Trial trial(const recipe::Recipe& recipe, const std::string& id, int heat, double step_ms, tensor::Rng& rng) {
  constexpr double kNsPerMs = 1e6;
  Trial t{.contender = id, .heat = heat, .started = "2026-11-21T08:00:00Z"};
  t.start_ns = 50'000'000;
  t.import_ns = 1'700'000'000;
  t.build_ns = 200'000'000;
  t.first_step_ns = static_cast<int64_t>(step_ms * kNsPerMs) + 300'000'000;
  t.warmup_ns = static_cast<int64_t>(5 * step_ms * kNsPerMs);
  t.peak_rss_bytes = int64_t{700} << 20;
  t.last_loss = 0.4;
  const double process = 1 + 0.01 * rng.normal();
  const auto steps = std::max<int64_t>(2, std::llround(recipe.race.burst_seconds * 1e3 / step_ms));
  for (int64_t b = 0; b < recipe.race.bursts; ++b) {
    int64_t total = 0;
    for (int64_t s = 0; s < steps; ++s) {
      const double ms = step_ms * process * (1 + 0.03 * std::abs(rng.normal()));
      total += static_cast<int64_t>(ms * kNsPerMs);
      if (s > 0) t.step_ns.push_back(static_cast<int64_t>(ms * kNsPerMs));
    }
    t.bursts.push_back({total, steps});
  }
  return t;
}

Status run(const std::string& recipe_file, const std::string& folder, int heats, double step_ms) {
  TRY(const recipe::Recipe recipe, recipe::load(recipe_file));
  TRY(Plan plan, make_plan(recipe, folder, {}, {}));
  const auto& contenders = plan.manifest.contenders;
  for (int64_t i = 0; i < recipe.race.parity_steps; ++i)
    plan.manifest.referee_losses.push_back(2.3 / std::sqrt(1 + static_cast<double>(i)));
  CHECK_OK(plan.directory.write(plan.manifest));
  for (const auto& contender : contenders)
    CHECK_OK(plan.directory.append(proof(contender.id, recipe.race.parity_steps)));
  tensor::Rng rng(1);
  for (int heat = 1; heat <= heats; ++heat) {
    double ms = step_ms;
    for (const auto& contender : contenders) {
      CHECK_OK(plan.directory.append(trial(recipe, contender.id, heat, ms, rng)));
      ms *= 1.2;
    }
  }
  std::cout << fmt::format("{} contenders, {} heats\n", contenders.size(), heats);
  return Done{};
}

}  // namespace
}  // namespace bakeoff

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: recorded_run RECIPE FOLDER HEATS STEP_MS\n";
    return 2;
  }
  const auto status = bakeoff::run(argv[1], argv[2], std::atoi(argv[3]), std::atof(argv[4]));
  if (!status) std::cerr << status.error().text() << "\n";
  return status ? 0 : 1;
}
