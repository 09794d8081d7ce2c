// The optimizers against closed forms: sums over the history of gradients instead of recursions.

#include "referee/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace bakeoff::referee {
namespace {

using ir::DecayForm;
using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;

const std::vector<double> kGradients = {0.3, -1.2, 0.05, 2.0, -0.4, 0.7};

// Weight after each step from w = 1 under kGradients; no weight decay.
std::vector<double> path(const Optimizer& o) {
  Weights weights = {{{1}, {1.0}}};
  OptimizerState state = initial_state(weights);
  std::vector<double> seen;
  for (const double g : kGradients) {
    step(o, {{{1}, {g}}}, state, weights);
    seen.push_back(weights[0].data[0]);
  }
  EXPECT_EQ(state.steps, static_cast<int64_t>(kGradients.size()));
  return seen;
}

// sum over i <= t of decay^(t - i) values[i].
double faded(const std::vector<double>& values, size_t t, double decay) {
  double sum = 0;
  for (size_t i = 0; i <= t; ++i) sum += std::pow(decay, static_cast<double>(t - i)) * values[i];
  return sum;
}

std::vector<double> squares() {
  std::vector<double> all;
  for (const double g : kGradients) all.push_back(g * g);
  return all;
}

// The path that the updates u(t) lead along: w(t) = 1 - lr sum u.
template <typename Update>
void expect_path(const Optimizer& o, const Update& update) {
  const auto seen = path(o);
  double w = 1;
  for (size_t t = 0; t < seen.size(); ++t) {
    w -= o.lr * update(t);
    EXPECT_NEAR(seen[t], w, 1e-13) << "step " << t;
  }
}

TEST(Optimizer, Sgd) {
  expect_path({.kind = OptimizerKind::kSgd, .lr = 0.1}, [](size_t t) { return kGradients[t]; });
}

TEST(Optimizer, SgdWithMomentum) {
  expect_path({.kind = OptimizerKind::kSgd, .lr = 0.1, .momentum = 0.9},
              [](size_t t) { return faded(kGradients, t, 0.9); });
}

TEST(Optimizer, SgdWithNesterov) {
  expect_path({.kind = OptimizerKind::kSgd, .lr = 0.1, .momentum = 0.8, .nesterov = true},
              [](size_t t) { return kGradients[t] + 0.8 * faded(kGradients, t, 0.8); });
}

TEST(Optimizer, RmspropWithEpsOutsideAndInside) {
  const auto v = [](size_t t) { return 0.3 * faded(squares(), t, 0.7); };
  Optimizer o{.kind = OptimizerKind::kRmsprop, .lr = 0.01, .rho = 0.7, .eps = 0.02};
  expect_path(o, [&](size_t t) { return kGradients[t] / (std::sqrt(v(t)) + 0.02); });
  o.eps_form = EpsForm::kInside;
  expect_path(o, [&](size_t t) { return kGradients[t] / std::sqrt(v(t) + 0.02); });
}

TEST(Optimizer, RmspropWithMomentum) {
  std::vector<double> scaled;
  for (size_t t = 0; t < kGradients.size(); ++t) {
    scaled.push_back(kGradients[t] / (std::sqrt(0.1 * faded(squares(), t, 0.9)) + 1e-3));
  }
  expect_path({.kind = OptimizerKind::kRmsprop, .lr = 0.01, .momentum = 0.5, .eps = 1e-3},
              [&](size_t t) { return faded(scaled, t, 0.5); });
}

struct Moments {
  double m, v, first, second;  // m and v before correction, 1 - beta^t
  explicit Moments(size_t t)
      : m(0.2 * faded(kGradients, t, 0.8)),
        v(0.05 * faded(squares(), t, 0.95)),
        first(1 - std::pow(0.8, static_cast<double>(t + 1))),
        second(1 - std::pow(0.95, static_cast<double>(t + 1))) {}
};

Optimizer adam(EpsForm form) {
  return {
      .kind = OptimizerKind::kAdam, .lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 0.01, .eps_form = form};
}

TEST(Optimizer, AdamWithEveryEpsForm) {
  expect_path(adam(EpsForm::kOutside), [](size_t t) {
    const Moments a(t);
    return a.m / a.first / (std::sqrt(a.v / a.second) + 0.01);
  });
  expect_path(adam(EpsForm::kInside), [](size_t t) {
    const Moments a(t);
    return a.m / a.first / std::sqrt(a.v / a.second + 0.01);
  });
  expect_path(adam(EpsForm::kHat), [](size_t t) {
    const Moments a(t);
    return std::sqrt(a.second) / a.first * a.m / (std::sqrt(a.v) + 0.01);
  });
}

TEST(Optimizer, EpsHatIsAnEpsThatChangesWithTime) {
  // lr sqrt(c2)/c1 m / (sqrt v + e) = lr (m/c1) / (sqrt(v/c2) + e/sqrt(c2)).
  expect_path(adam(EpsForm::kHat), [](size_t t) {
    const Moments a(t);
    return a.m / a.first / (std::sqrt(a.v / a.second) + 0.01 / std::sqrt(a.second));
  });
}

// Weight from 1 after five steps with gradients of zero.
double after_five(const Optimizer& o) {
  Weights weights = {{{1}, {1.0}}};
  OptimizerState state = initial_state(weights);
  for (int i = 0; i < 5; ++i) step(o, {{{1}, {0.0}}}, state, weights);
  return weights[0].data[0];
}

TEST(Optimizer, DecoupledDecayShrinksGeometrically) {
  const double wanted = std::pow(1 - 0.1 * 0.3, 5);
  for (const auto kind : {OptimizerKind::kSgd, OptimizerKind::kRmsprop, OptimizerKind::kAdam}) {
    EXPECT_NEAR(
        after_five({.kind = kind, .lr = 0.1, .weight_decay = 0.3, .decay_form = DecayForm::kDecoupled}),
        wanted, 1e-15);
  }
  EXPECT_NEAR(after_five({.kind = OptimizerKind::kAdamW, .lr = 0.1, .weight_decay = 0.3}), wanted, 1e-15)
      << "AdamW is decoupled whatever decay_form says";
}

TEST(Optimizer, L2DecayEntersTheGradient) {
  EXPECT_NEAR(after_five({.kind = OptimizerKind::kSgd, .lr = 0.1, .weight_decay = 0.3}), std::pow(0.97, 5),
              1e-15);
  // Adam's first step has length lr whatever the size of the gradient 0.3 w.
  Weights weights = {{{1}, {1.0}}};
  OptimizerState state = initial_state(weights);
  step({.kind = OptimizerKind::kAdam, .lr = 0.1, .eps = 0, .weight_decay = 0.3}, {{{1}, {0.0}}}, state,
       weights);
  EXPECT_NEAR(weights[0].data[0], 0.9, 1e-15);
}

TEST(Optimizer, LeavesRunningStatisticsAlone) {
  Weights weights = {{{2}, {1, 2}}, {{2}, {3, 4}}};
  OptimizerState state = initial_state(weights);
  step({.kind = OptimizerKind::kAdamW, .weight_decay = 0.5}, {{{2}, {1, 1}}, {}}, state, weights);
  EXPECT_EQ(weights[1].data, (std::vector<double>{3, 4}));
  EXPECT_NE(weights[0].data[0], 1);
}

Weights one(double w) { return {{{1}, {w}}}; }

// Updates of SGD by a gradient of 1 show the learning rates themselves.
TEST(Optimizer, FollowsItsSchedule) {
  const double pi = std::acos(-1.0);
  struct Rates {
    ir::Schedule schedule;
    std::vector<std::pair<int64_t, double>> rates;  // step, share of lr
  };
  const Rates cases[] = {
      {{.kind = ir::ScheduleKind::kConstant, .warmup_steps = 4, .warmup_from = 0.2},
       {{0, 0.2}, {1, 0.4}, {3, 0.8}, {4, 1}, {1000000, 1}}},
      {{.kind = ir::ScheduleKind::kStep, .every = 3, .step_factor = 0.5},
       {{0, 1}, {2, 1}, {3, 0.5}, {5, 0.5}, {6, 0.25}, {30, std::pow(0.5, 10)}}},
      {{.kind = ir::ScheduleKind::kStep, .warmup_steps = 2, .every = 3, .step_factor = 0.5},
       {{0, 0}, {1, 0.5}, {2, 1}, {4, 1}, {5, 0.5}}},
      {{.kind = ir::ScheduleKind::kCosine, .warmup_steps = 2, .steps = 4, .final = 0.1},
       {{0, 0},
        {2, 1},
        {3, 0.1 + 0.9 * (1 + std::cos(pi / 4)) / 2},
        {4, 0.55},
        {6, 0.1},
        {7, 0.1},
        {900, 0.1}}},
      {{.kind = ir::ScheduleKind::kLinear, .steps = 10}, {{0, 1}, {1, 0.9}, {9, 0.1}, {10, 0}, {11, 0}}},
  };
  for (const Rates& c : cases) {
    SCOPED_TRACE(ir::name(c.schedule.kind));
    for (const auto& [t, share] : c.rates) {
      OptimizerState state = initial_state(one(0));
      state.steps = t;
      Weights weights = one(0);
      step({.lr = 0.5, .schedule = c.schedule}, one(1), state, weights);
      EXPECT_NEAR(weights[0].data[0], -0.5 * share, 1e-15) << "step " << t;
    }
  }
}

TEST(Optimizer, DecayFollowsTheScheduleToo) {
  const ir::Schedule schedule{.kind = ir::ScheduleKind::kStep, .every = 1, .step_factor = 0.5};
  OptimizerState state = initial_state(one(1));
  Weights weights = one(1);
  const Optimizer o{
      .lr = 0.1, .weight_decay = 0.2, .decay_form = DecayForm::kDecoupled, .schedule = schedule};
  for (int n = 0; n < 2; ++n) step(o, one(0), state, weights);
  EXPECT_NEAR(weights[0].data[0], (1 - 0.1 * 0.2) * (1 - 0.05 * 0.2), 1e-15);
}

TEST(Optimizer, ClipsBeforeItDecays) {
  const Weights gradients = {{{2}, {3, 0}}, {{1}, {-4}}, {}};
  const Weights halved = clipped({.clip_norm = 2.5}, gradients);
  EXPECT_NEAR(halved[0].data[0], 1.5, 1e-15);
  EXPECT_NEAR(halved[1].data[0], -2, 1e-15);
  EXPECT_TRUE(halved[2].data.empty());
  EXPECT_EQ(clipped({.clip_norm = 5}, gradients)[1].data[0], -4) << "a norm at the limit stays";
  EXPECT_FALSE(clipping_acts({.clip_norm = 5}, gradients));
  EXPECT_TRUE(clipping_acts({.clip_norm = 4.99}, gradients));
  EXPECT_EQ(clipped({.clip_norm = 1}, one(0))[0].data[0], 0) << "no gradient, no division";
  EXPECT_EQ(clipped({.clip_value = 3.5}, gradients)[1].data[0], -3.5);
  EXPECT_FALSE(clipping_acts({.clip_value = 4}, gradients));
  EXPECT_TRUE(clipping_acts({.clip_value = 3}, gradients));
  OptimizerState state = initial_state(one(1));
  Weights weights = one(1);
  step({.lr = 0.1, .weight_decay = 0.5, .clip_value = 1}, one(7), state, weights);
  EXPECT_NEAR(weights[0].data[0], 1 - 0.1 * (1 + 0.5), 1e-15);
}

TEST(Optimizer, SparesParametersTheDecay) {
  for (const auto form : {DecayForm::kL2, DecayForm::kDecoupled}) {
    Weights weights = {{{1}, {1.0}}, {{1}, {1.0}}};
    const Weights zeros = {{{1}, {0.0}}, {{1}, {0.0}}};
    OptimizerState state = initial_state(weights);
    step({.lr = 0.1, .weight_decay = 0.5, .decay_form = form, .no_decay = {1}}, zeros, state, weights);
    EXPECT_NEAR(weights[0].data[0], 0.95, 1e-15);
    EXPECT_EQ(weights[1].data[0], 1);
  }
}

// The closed form of a_1 = w_1, a_t = d a_(t-1) + (1 - d) w_t.
TEST(Optimizer, AveragesItsWeights) {
  const double d = 0.75;
  Weights weights = one(1);
  OptimizerState state = initial_state(weights);
  std::vector<double> path;
  for (const double g : kGradients) {
    step({.lr = 0.1, .ema = d}, one(g), state, weights);
    path.push_back(weights[0].data[0]);
    double expected = std::pow(d, static_cast<double>(path.size() - 1)) * path[0];
    for (size_t t = 1; t < path.size(); ++t)
      expected += (1 - d) * std::pow(d, static_cast<double>(path.size() - 1 - t)) * path[t];
    EXPECT_NEAR(state.average[0].data[0], expected, 1e-15);
  }
}

}  // namespace
}  // namespace bakeoff::referee
