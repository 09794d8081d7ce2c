// How long an emitter takes from a workload to the formatted source: every network that ships, every
// framework. The bar, 200 ms, is for the largest; a line a framework, of the network that takes longest.
//
//   emission_bench [--quick]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "emit/all/frameworks.h"
#include "zoo/zoo.h"

namespace bakeoff {
namespace {

constexpr double kBarMs = 200;

struct Emission {
  std::string workload;
  double ms = 0;
  int64_t lines = 0;
};

emit::Settings defaults(const emit::Framework& framework) {
  emit::Settings settings;
  for (const emit::Setting& setting : framework.settings) settings[setting.name] = setting.fallback;
  return settings;
}

// The median of `runs`, after one that is not counted.
Result<Emission> measure(const emit::Framework& framework, const std::string& name, int runs) {
  TRY(const ir::Workload workload, zoo::build(name));
  ir::Training training{.optimizer = {.kind = ir::OptimizerKind::kAdamW, .weight_decay = 0.01}};
  if (!can(framework, ir::Scenario::kTrain)) training.scenario = ir::Scenario::kPredict;
  const emit::Request request{workload, training, defaults(framework), "script" + framework.extension};
  CHECK_OK(check_supported(framework, workload));
  std::vector<double> ms;
  Emission emission{.workload = name};
  for (int run = 0; run <= runs; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    TRY(const emit::Emitted emitted, framework.emit(request));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    if (run > 0) ms.push_back(took.count());
    emission.lines = std::count(emitted.source.begin(), emitted.source.end(), '\n');
  }
  std::nth_element(ms.begin(), ms.begin() + runs / 2, ms.end());
  emission.ms = ms[static_cast<size_t>(runs) / 2];
  return emission;
}

// False: above the bar, or something could not be emitted.
bool slowest(const emit::Framework& framework, int runs) {
  Emission worst;
  for (const std::string& name : zoo::names()) {
    const auto emission = measure(framework, name, runs);
    if (!emission) {
      fmt::print("emission, {}, {}: {} MISSED\n", framework.name, name, emission.error().text());
      return false;
    }
    if (emission->ms > worst.ms) worst = *emission;
  }
  const bool fine = worst.ms < kBarMs;
  fmt::print("emission, {:12} {:10} {:6} lines {:8.2f} ms (bar: below {:g} ms) {}\n", framework.name,
             worst.workload, worst.lines, worst.ms, kBarMs, fine ? "ok" : "MISSED");
  return fine;
}

}  // namespace
}  // namespace bakeoff

int main(int argc, char** argv) {
  const int runs = argc > 1 && std::strcmp(argv[1], "--quick") == 0 ? 1 : 5;
  bool fine = true;
  for (const bakeoff::emit::Framework* framework : bakeoff::emit::frameworks())
    fine = bakeoff::slowest(*framework, runs) && fine;
  return fine ? 0 : 1;
}
