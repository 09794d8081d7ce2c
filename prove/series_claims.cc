// T10: a history nominates, a paired re-run decides. T11: warm-up.

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <random>

#include "prove/models.h"
#include "prove/parallel.h"
#include "prove/report.h"
#include "stats/e_process.h"
#include "stats/history.h"
#include "stats/steady.h"
#include "stats/trimmed.h"

namespace bakeoff::prove {
namespace {

constexpr size_t kHistory = 200;

std::vector<double> ar1(size_t n, double sd, double phi, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<double> values(n);
  double noise = normal(random);
  for (double& value : values) {
    value = sd * noise;
    noise = phi * noise + std::sqrt(1 - phi * phi) * normal(random);
  }
  return values;
}

void t10(const Options& options, Report& report) {
  const stats::CusumTable table(kHistory, 0.01, options.seed);
  const int n = tier(options, 3000, 20000);
  struct Seen {
    bool nominated = false;
    bool confirmed = false;
  };
  for (const double phi : {0.0, 0.3, 0.6}) {
    const auto all = for_each_seed(n, [&](int i) {
      const uint64_t seed = options.seed * 49979687 + static_cast<uint64_t>(i);
      std::mt19937_64 random(seed);
      Seen seen;
      seen.nominated = nominate(ar1(kHistory, 0.02, phi, random), table).has_value();
      if (seen.nominated) {
        const Outcome again = race(simulated(usual(), 0, seed), 0, Engine::kRaced, 0, 40, names_a_winner);
        seen.confirmed = names_a_winner(again.verdict);
      }
      return seen;
    });
    const auto found = for_each_seed(n / 10, [&](int i) {
      std::mt19937_64 random(options.seed * 67867967 + static_cast<uint64_t>(i));
      std::vector<double> values = ar1(kHistory, 0.02, phi, random);
      for (size_t k = 120; k < kHistory; ++k) values[k] += 0.05;
      return int{nominate(values, table).has_value()};
    });
    int nominated = 0, confirmed = 0, hits = 0;
    for (const Seen& seen : all) {
      nominated += seen.nominated;
      confirmed += seen.confirmed;
    }
    for (const int hit : found) hits += hit;
    const std::string what = fmt::format("no change, phi {:g}: ", phi);
    report.add(at_most("T10", what + "nominated", nominated, n, 0.02));
    report.add(at_most("T10", what + "after the re-run", confirmed, n, 0.001));
    report.add({.id = "T10",
                .what = fmt::format("a step of 2.5 sd, phi {:g}: nominated", phi),
                .bar = "-",
                .seen = share(hits, n / 10),
                .barred = false});
  }
}

// log of the step time beyond its steady state, by step.
using Shape = std::function<double(double)>;

std::vector<double> steps(size_t n, double phi, uint64_t seed, const Shape& shape) {
  std::mt19937_64 random(seed);
  std::vector<double> ms = ar1(n, 0.02, phi, random);
  for (size_t i = 0; i < n; ++i) ms[i] = 100 * std::exp(ms[i] + shape(static_cast<double>(i)));
  ms[0] *= 30;  // it compiles
  return ms;
}

void t11_bias(const Options& options, Report& report) {
  const struct {
    const char* what;
    Shape shape;
  } kShapes[] = {
      {"flat", [](double) { return 0.0; }},
      {"decay over 15 steps", [](double i) { return 0.3 * std::exp(-i / 15); }},
      {"decay over 40 steps", [](double i) { return 0.15 * std::exp(-i / 40); }},
      {"a step after 30", [](double i) { return i < 30 ? 0.2 : 0.0; }},
      {"a late step, after 90", [](double i) { return i < 90 ? 0.13 : 0.0; }},
  };
  const int n = tier(options, 300, 4000);
  for (const auto& row : kShapes) {
    const auto biases = for_each_seed(n, [&](int i) {
      const auto ms = steps(300, 0.3, options.seed * 86028121 + static_cast<uint64_t>(i), row.shape);
      const stats::SteadyState state = stats::find_steady(ms).value();
      if (!state.steady()) return std::nan("");
      return std::log(stats::mean(std::span<const double>(ms).subspan(state.begin)) / 100) -
             0.0002;  // sd^2/2
    });
    stats::EProcess bias;
    for (const double value : biases) {
      if (std::isfinite(value)) bias.add(value);
    }
    Claim claim = {
        .id = "T11", .what = fmt::format("bias, {}", row.what), .bar = "|bias| <= 0.3%", .seen = ""};
    const double error = bias.sd() / std::sqrt(static_cast<double>(bias.count()));
    claim.seen = fmt::format("{:+.3f}% +- {:.3f}%, steady {:.1f}%", 100 * bias.mean(), 100 * error,
                             100.0 * static_cast<double>(bias.count()) / n);
    claim.held = std::abs(bias.mean()) <= 0.003 + 3 * error;
    report.add(claim);
  }
}

void t11_drift(const Options& options, Report& report) {
  const int n = tier(options, 300, 4000);
  const struct {
    const char* what;
    double whole;  // log, over 300 steps
  } kDrifts[] = {{"drift of 5%", 0.05}, {"drift of 15%", 0.15}, {"drift of -10%", -0.1}};
  for (const auto& row : kDrifts) {
    const auto seen = for_each_seed(n, [&](int i) {
      const auto ms = steps(300, 0.3, options.seed * 122949823 + static_cast<uint64_t>(i),
                            [&](double step) { return row.whole * step / 300; });
      return int{stats::find_steady(ms).value().state == stats::Steadiness::kDrifting};
    });
    int hits = 0;
    for (const int hit : seen) hits += hit;
    report.add(at_least("T11", fmt::format("NOT STEADY, {}", row.what), hits, n, 0.95));
  }
}

}  // namespace

void prove_series(const Options& options, Report& report) {
  if (wanted(options, "T10")) t10(options, report);
  if (wanted(options, "T11")) {
    t11_bias(options, report);
    t11_drift(options, report);
  }
}

}  // namespace bakeoff::prove
