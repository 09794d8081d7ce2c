#include "stats/steady.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

constexpr int kSeries = 300;

// 100 ms steps whose log follows `shape(step)` with AR(1) noise; the first step compiles for 30 times as
// long.
std::vector<double> steps(size_t n, double sd, double phi, uint64_t seed,
                          const std::function<double(double)>& shape) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> ms(n);
  double noise = sd * normal(random);
  for (size_t i = 0; i < n; ++i) {
    ms[i] = 100 * std::exp(shape(static_cast<double>(i)) + noise);
    noise = phi * noise + std::sqrt(1 - phi * phi) * sd * normal(random);
  }
  ms[0] *= 30;
  return ms;
}

double flat(double) { return 0; }

struct Count {
  int steady = 0;
  int drifting = 0;
  double bias = 0;  // mean over the steady ones of the log of their kept steps; the truth is 0
};

Count count(size_t n, double sd, double phi, const std::function<double(double)>& shape) {
  Count count;
  for (uint64_t seed = 0; seed < kSeries; ++seed) {
    const std::vector<double> ms = steps(n, sd, phi, seed, shape);
    const SteadyState state = find_steady(ms).value();
    count.drifting += state.state == Steadiness::kDrifting;
    if (!state.steady()) continue;
    ++count.steady;
    count.bias += std::log(median(std::span<const double>(ms).subspan(state.begin)) / 100);
  }
  count.bias /= std::max(count.steady, 1);
  return count;
}

TEST(Steady, AFlatSeriesIsSteadyFromTheSecondStep) {
  for (const double phi : {0.0, 0.3, 0.6}) {
    for (const size_t n : {60, 200}) {
      SCOPED_TRACE(::testing::Message() << "phi " << phi << ", " << n << " steps");
      const Count seen = count(n, 0.02, phi, flat);
      EXPECT_LE(seen.drifting, kSeries * 6 / 100);
      const bool long_enough = static_cast<double>(n) * (1 - phi) / (1 + phi) > 25;
      EXPECT_GE(seen.steady, kSeries * (long_enough ? 90 : 50) / 100);  // else many are too short
      EXPECT_NEAR(seen.bias, 0, 0.003);
    }
  }
}

TEST(Steady, WarmUpLeavesNoBias) {
  const struct {
    const char* what;
    std::function<double(double)> shape;
  } kCases[] = {
      {"late step", [](double i) { return i < 110 ? 0.3 : 0; }},
      {"small late step", [](double i) { return i < 110 ? 0.05 : 0; }},
      {"early step", [](double i) { return i < 12 ? 0.5 : 0; }},
      {"decay", [](double i) { return 0.5 * std::exp(-i / 10); }},
      {"slower at first, then too fast", [](double i) { return i < 20 ? 0.4 : (i < 40 ? -0.2 : 0); }},
  };
  for (const auto& row : kCases) {
    SCOPED_TRACE(row.what);
    const Count seen = count(200, 0.02, 0.3, row.shape);
    EXPECT_GE(seen.steady, kSeries * 90 / 100);
    EXPECT_NEAR(seen.bias, 0, 0.003);
  }
}

TEST(Steady, DriftIsNotSteady) {
  const struct {
    const char* what;
    std::function<double(double)> shape;
  } kCases[] = {
      {"slow drift up", [](double i) { return 0.06 * i / 200; }},
      {"drift down", [](double i) { return -0.1 * i / 200; }},
      {"fast drift", [](double i) { return 0.3 * i / 200; }},
      {"two states", [](double i) { return std::fmod(i, 60) < 30 ? 0.0 : 0.2; }},
      {"starts to drift half-way", [](double i) { return i < 100 ? 0.0 : 0.1 * (i - 100) / 100; }},
  };
  for (const auto& row : kCases) {
    const Count seen = count(200, 0.02, 0.3, row.shape);
    EXPECT_GE(seen.drifting, kSeries * 95 / 100) << row.what;
  }
}

TEST(Steady, TellsWhereTheLevelChanged) {
  const std::vector<double> ms = steps(200, 0.01, 0, 1, [](double i) { return i < 40 ? 0.3 : 0; });
  const SteadyState state = find_steady(ms).value();
  EXPECT_EQ(state.begin, 40);
  EXPECT_EQ(state.level_changes, (std::vector<size_t>{40}));
  EXPECT_TRUE(state.steady());
  EXPECT_TRUE(state.drift_interval.contains(0));
  EXPECT_GT(state.n_eff, 80);
  EXPECT_LE(state.n_eff, 160);
  EXPECT_TRUE(state.equivalent);
}

TEST(Steady, ADriftIsMeasured) {
  const std::vector<double> ms = steps(400, 0.005, 0, 2, [](double i) { return 0.04 * i / 400; });
  const SteadyState state = find_steady(ms).value();
  EXPECT_EQ(state.state, Steadiness::kDrifting);
  EXPECT_NEAR(state.trend, std::expm1(0.04), 0.004);
}

// The last 150 of 8,000 steps climb by 10%, as beside a neighbour that begins to work.
TEST(Steady, AClimbAtTheEndIsNotCarriedOverTheWholeSeries) {
  const std::vector<double> ms =
      steps(8000, 0.005, 0, 3, [](double i) { return std::max(0.0, 0.1 * (i - 7850) / 150); });
  const SteadyState state = find_steady(ms).value();
  EXPECT_GT(state.trend, 0.01);
  EXPECT_LT(state.trend, 0.15);
}

TEST(Steady, SpikesAreNamedAndMoveNothing) {
  std::vector<double> ms = steps(200, 0.01, 0, 3, flat);
  const SteadyState before = find_steady(ms).value();
  EXPECT_TRUE(before.spikes.empty());
  for (const size_t i : {20, 77, 78, 150}) ms[i] *= 4;
  const SteadyState after = find_steady(ms).value();
  EXPECT_EQ(after.spikes, (std::vector<size_t>{20, 77, 78, 150}));
  EXPECT_EQ(after.begin, before.begin);
  EXPECT_TRUE(after.steady());
}

TEST(Steady, TooFewStepsAreTooShort) {
  for (const size_t n : {0, 1, 2, 12}) {
    const SteadyState state = find_steady(std::vector<double>(n, 5.0)).value();
    EXPECT_EQ(state.state, Steadiness::kTooShort) << n;
    EXPECT_EQ(state.begin, std::min<size_t>(n, 1));
  }
  // A late step leaves seven steps.
  const std::vector<double> late = steps(60, 0.01, 0, 4, [](double i) { return i < 53 ? 0.5 : 0; });
  const SteadyState state = find_steady(late).value();
  EXPECT_EQ(state.state, Steadiness::kTooShort);
  EXPECT_EQ(state.begin, 53);
}

TEST(Steady, ACoarseClockIsNoTrouble) {
  EXPECT_TRUE(find_steady(std::vector<double>(100, 5.0))->steady());
  std::vector<double> ms = steps(200, 0.01, 0, 5, flat);
  for (double& value : ms) value = std::round(value);  // nearly all are 99, 100 or 101
  const SteadyState state = find_steady(ms).value();
  EXPECT_TRUE(state.steady());
  EXPECT_EQ(state.begin, 1);
}

TEST(Steady, HasNoUnit) {
  std::vector<double> ms = steps(150, 0.02, 0.3, 6, [](double i) { return std::exp(-i / 8); });
  const SteadyState plain = find_steady(ms).value();
  for (double& value : ms) value *= 1024;  // microseconds, nearly; exact in binary
  const SteadyState scaled = find_steady(ms).value();
  EXPECT_EQ(scaled.begin, plain.begin);
  EXPECT_EQ(scaled.state, plain.state);
  EXPECT_EQ(scaled.level_changes, plain.level_changes);
  EXPECT_NEAR(scaled.drift, plain.drift, 1e-9);
}

TEST(Steady, RefusesWhatIsNoTime) {
  std::vector<double> ms(50, 5.0);
  ms[17] = std::numeric_limits<double>::quiet_NaN();
  const Result<SteadyState> state = find_steady(ms);
  ASSERT_FALSE(state);
  EXPECT_NE(state.error().message.find("step 18"), std::string::npos) << state.error().message;
}

TEST(Steadiness, HasNames) {
  EXPECT_EQ(name(Steadiness::kSteady), "steady");
  EXPECT_EQ(name(Steadiness::kDrifting), "not steady");
  EXPECT_EQ(name(Steadiness::kTooShort), "too short");
}

}  // namespace
}  // namespace bakeoff::stats
