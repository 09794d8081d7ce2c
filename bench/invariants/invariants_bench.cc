// What it costs to check every rule on one trial of each of 256 contenders.

#include <fmt/format.h>

#include <chrono>
#include <vector>

#include "evidence/invariants.h"
#include "stats/trimmed.h"

namespace bakeoff {
namespace {

constexpr size_t kContenders = 256;
constexpr double kBarMs = 1;

// Four bursts of five steps of 100 ms, with everything that a rule asks for.
Trial trial(const std::string& contender) {
  Trial t{.contender = contender, .heat = 1, .first_step_ns = 400'000'000};
  for (int i = 0; i < 4; ++i) {
    Burst burst{.ns = 500'000'000, .steps = 5, .asked = 5};
    burst.used = {{"wall_s", 0.51},           {"cpu_s", 0.9},      {"wait_s", 0.001},
                  {"minor_faults", 100},      {"major_faults", 0}, {"voluntary_switches", 20},
                  {"involuntary_switches", 3}};
    burst.losses = {{10 + 5 * i, 1.0}};
    t.bursts.push_back(burst);
    t.step_ns.insert(t.step_ns.end(), 4, 100'000'000);
    t.rounds.push_back({.wall_ns = 600'000'000, .seen = {{"others", 0.01}, {"steal", 0.0}}});
  }
  t.start_ns = t.import_ns = t.build_ns = t.warmup_ns = 500'000'000;
  t.user_s = 4;
  return t;
}

int run() {
  std::vector<Trial> trials;
  std::map<std::string, TrialBounds> bounds;
  for (size_t i = 0; i < kContenders; ++i) {
    const std::string id = fmt::format("contender {}", i);
    trials.push_back(trial(id));
    bounds[id] = {.cores = 2,
                  .flops_per_step = 12.4e9,
                  .bytes_per_step = 3e7,
                  .peak_flops = 204e9,
                  .levels = {{0, 400e9}, {1e6, 196e9}, {3e7, 35e9}},
                  .losses = {{10, 1.0}, {15, 1.0}}};
  }
  std::vector<double> ms;
  size_t broken = 0;
  for (int i = 0; i < 200; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (const Trial& one : trials) broken += check_trial(one, bounds.at(one.contender)).size();
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  const double median = stats::median(ms);
  fmt::print("{} rules were broken by sound trials\n", broken);
  fmt::print("invariants of {} contenders: {:.3f} ms (bar: below {:g} ms) {}\n", kContenders, median, kBarMs,
             median < kBarMs && broken == 0 ? "ok" : "MISSED");
  return median < kBarMs && broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace bakeoff

int main() { return bakeoff::run(); }
