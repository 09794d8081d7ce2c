// G1 to G3: `bakeoff gate` and `bakeoff bisect`, by the functions that real ones use.

#include <fmt/format.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "prove/models.h"
#include "prove/parallel.h"
#include "prove/report.h"
#include "stats/bisection.h"
#include "stats/e_process.h"
#include "stats/noise_testing.h"
#include "stats/regression.h"

namespace bakeoff::prove {
namespace {

using stats::testing::Machine;
using stats::testing::NoiseModel;

// A step of 100 ms: two fresh processes, their warm-up and 8 rounds of two bursts take 15 s.
constexpr double kHeat = 15, kTenMinutes = 600;
constexpr int64_t kRounds = 8;

NoiseModel of_gates() {
  NoiseModel noise = usual();
  noise.rounds = static_cast<int>(kRounds);
  noise.steps = 2;
  return noise;
}

stats::PastHeat past_of(const stats::HeatResult& heat) {
  return {.d = *heat.log_ms[1] - *heat.log_ms[0],
          .within = heat.variance[0].value_or(0) + heat.variance[1].value_or(0),
          .rounds = kRounds};
}

struct GateEnd {
  stats::Change change = stats::Change::kUndecided;
  int heats = 0;
};

// The mutant: Student's t at every look, as if it were the only one.
stats::Change peeked(const stats::EProcess& d) {
  if (d.count() < 3) return stats::Change::kUndecided;
  const auto n = static_cast<double>(d.count());
  const double half =
      boost::math::quantile(boost::math::students_t(n - 1), 1 - kAlpha) * d.sd() / std::sqrt(n);
  if (d.mean() - half > std::log1p(kMargin)) return stats::Change::kRegression;
  return d.mean() + half < std::log1p(kMargin) ? stats::Change::kNone : stats::Change::kUndecided;
}

GateEnd gate(const NoiseModel& noise, double slowdown, uint64_t seed, Mutant mutant) {
  Machine machine(noise, {0, std::log1p(slowdown)}, seed);
  stats::RegressionTest test({.margin = kMargin, .alpha = kAlpha});
  std::vector<stats::PastHeat> past;
  stats::EProcess plain;
  for (double spent = kHeat;; spent += kHeat) {
    const stats::HeatResult heat = machine.heat();
    past.push_back(past_of(heat));
    plain.add(past.back().d);
    if (!test.add(heat)) return {};
    const auto heats = static_cast<int>(test.heats());
    if (mutant == Mutant::kPeeking) {
      const stats::Change seen = peeked(plain);
      if (seen != stats::Change::kUndecided || spent >= kTenMinutes) return {seen, heats};
      continue;
    }
    const auto next = next_step(test, past, kRounds, {spent, kHeat, kTenMinutes});
    if (next.what != stats::NextStep::What::kRunHeat) return {test.change(), heats};
  }
}

struct Counts {
  int red = 0, green = 0, open = 0;
  double heats = 0;
};

Counts gates(const Options& options, const NoiseModel& noise, double slowdown, int n, uint64_t stream) {
  const auto ends = for_each_seed(n, [&](int i) {
    return gate(noise, slowdown, options.seed * 32452843 + stream * 15485863 + static_cast<uint64_t>(i),
                options.mutant);
  });
  Counts counts;
  for (const GateEnd& end : ends) {
    counts.red += end.change == stats::Change::kRegression;
    counts.green += end.change == stats::Change::kNone;
    counts.open += end.change == stats::Change::kUndecided;
    counts.heats += static_cast<double>(end.heats) / n;
  }
  return counts;
}

// False claims: of identical versions, and where head is slower by exactly the margin, where both claims are false.
void g1(const Options& options, Report& report) {
  const int n = tier(options, 2000, 100000);
  uint64_t stream = 1;
  for (const Model& model : models()) {
    if (model.needs_backup || model.resolution > 0) continue;
    NoiseModel noise = model.noise;
    noise.rounds = static_cast<int>(kRounds);
    noise.steps = 2;
    const bool main = stream == 1;
    const int gates_here = main ? n : n / 10;
    const Counts equal = gates(options, noise, 0, gates_here, stream++);
    report.add(at_most("G1", fmt::format("A/A is red, {}", model.name), equal.red, gates_here, kAlpha));
    const Counts at = gates(options, noise, kMargin, gates_here / 2, stream++);
    report.add(
        at_most("G1", fmt::format("at the margin red, {}", model.name), at.red, gates_here / 2, kAlpha));
    report.add(
        at_most("G1", fmt::format("at the margin green, {}", model.name), at.green, gates_here / 2, kAlpha));
  }
}

// Power within ten minutes.
void g2(const Options& options, Report& report) {
  const int n = tier(options, 1000, 20000);
  const struct { double slowdown, bar; } kPlanted[] = {{0.05, 0.99}, {0.10, 0.999}};
  for (const auto& row : kPlanted) {
    const Counts seen = gates(options, of_gates(), row.slowdown, n, 101);
    report.add(at_least("G2", fmt::format("{:.0f}% slower is red in 10 min", 100 * row.slowdown), seen.red, n,
                        row.bar));
    report.add({.id = "G2",
                .what = fmt::format("{:.0f}% slower, heats in the mean", 100 * row.slowdown),
                .bar = "",
                .seen = fmt::format("{:.1f}", seen.heats),
                .barred = false});
  }
  const Counts equal = gates(options, of_gates(), 0, n, 102);
  report.add(at_least("G2", "A/A is green in 10 min", equal.green, n, 0.95));
  NoiseModel loud = of_gates();
  loud.process *= 15;
  const Counts forbidden = gates(options, loud, 0.05, n, 103);
  report.add(at_most("G2", "15 times the noise: 5% slower is green", forbidden.green, n, kAlpha));
}

constexpr size_t kCommits = 64;

// Whether a search for a step of 5% among 64 versions, a fifth of which do not build, names the culprit.
int bisect_once(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  const double shift = std::log1p(0.05);
  const size_t culprit = 1 + random() % kCommits;
  std::vector<bool> broken(kCommits + 1, false);
  for (size_t i = 1; i < kCommits; ++i) broken[i] = uniform(random) < 0.2;
  const auto race = [&](bool slow, size_t most, auto enough) {
    Machine machine(of_gates(), {0, slow ? shift : 0}, random());
    std::vector<stats::PastHeat> past;
    while (past.size() < most) {
      past.push_back(past_of(machine.heat()));
      if (past.size() >= 2 && enough(past)) break;
    }
    return past;
  };
  // The step's size is what the two ends show.
  const double seen = seen_in(race(true, 10, [](const auto&) { return false; })).mean;
  stats::Bisection bisection(kCommits, std::max(seen, 0.01));
  const auto probe = [&](size_t at) -> Result<stats::Probe> {
    if (broken[at]) return stats::Probe{};
    const auto past = race(at >= culprit, stats::kMostHeatsOfProbe, [&](const auto& heats) {
      return says_enough(seen_in(heats), std::max(seen, 0.01));
    });
    return stats::Probe{seen_in(past)};
  };
  if (!search(bisection, probe, 64)) return 0;
  const auto found = bisection.found();
  size_t first = culprit, last = culprit;
  while (first > 1 && broken[first - 1]) --first;
  while (last < kCommits && broken[last]) ++last;
  return int{found.first == first && found.last == last};
}

void g3(const Options& options, Report& report) {
  const int n = tier(options, 200, 5000);
  const auto all = for_each_seed(
      n, [&](int i) { return bisect_once(options.seed * 86028121 + static_cast<uint64_t>(i)); });
  int found = 0;
  for (const int one : all) found += one;
  report.add(at_least("G3", "5% in 64 commits, 20% broken: found", found, n, 0.95));
}

}  // namespace

void prove_gates(const Options& options, Report& report) {
  if (wanted(options, "G1")) g1(options, report);
  if (wanted(options, "G2")) g2(options, report);
  if (wanted(options, "G3")) g3(options, report);
}

}  // namespace bakeoff::prove
