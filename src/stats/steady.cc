// All tests use one number, `long_run`: the variance of a mean of many neighbouring steps, times their
// number. It comes from differences, so warm-up and drift do not enter it. Relative to it a mean of n steps
// has variance 1 / n, a slope 1 / sum (t - mean t)^2, and a change of level costs 3 ln n. With the plain
// variance instead, correlated steps would show changes everywhere.
//
// PELT knows no slopes: it turns a slow drift into stairs, and the last stair looks steady. last_line()
// therefore asks whether one line through the last stairs fits as well as the stairs.

#include "stats/steady.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stats/change_points.h"
#include "stats/ess.h"
#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

constexpr double kSpikeSds = 5;
constexpr size_t kSpikeReach = 5;    // the window is this many on either side
constexpr double kHalvesZ = 2.5758;  // two-sided 99%
constexpr double kTrendZ = 3.2905;   // two-sided 99.9%
constexpr size_t kFewestSteps = 12;
constexpr double kLeastVariance = 1e-10;  // 0.001% of a step: equal times must not read rounding as change

// Replaces spikes in place and returns their indices.
std::vector<size_t> despike(std::vector<double>& values) {
  const std::vector<double> medians = running_medians(values, kSpikeReach);
  std::vector<double> residuals(values.size());
  std::transform(values.begin(), values.end(), medians.begin(), residuals.begin(), std::minus<>());
  const double scale = residual_sd(residuals);
  std::vector<size_t> spikes;
  for (size_t i = 0; i < values.size() && scale > 0; ++i) {
    if (std::abs(values[i] - medians[i]) <= kSpikeSds * scale) continue;
    spikes.push_back(i);
    values[i] = medians[i];
  }
  return spikes;
}

// A straight line through values at t = 0, 1, 2, ...
struct Line {
  double steps = 0;  // that it covers
  double slope = 0;
  double times = 0;      // sum (t - mean t)^2
  double residuals = 0;  // sum of squares about the line
  double level = 0;      // sum of squares about the mean
};

Line fit_line(std::span<const double> values) {
  Line line{.steps = static_cast<double>(values.size())};
  const double centre = mean(values);
  const double middle = (static_cast<double>(values.size()) - 1) / 2;
  double products = 0;
  for (size_t t = 0; t < values.size(); ++t) {
    const double time = static_cast<double>(t) - middle;
    products += time * (values[t] - centre);
    line.times += time * time;
    line.level += (values[t] - centre) * (values[t] - centre);
  }
  if (line.times > 0) line.slope = products / line.times;
  line.residuals = line.level - line.slope * products;
  return line;
}

// The line of the last segment; or that of the most segments at the end which one line fits no worse than
// their levels do, a change of level costing 2 ln n x long-run variance: these changes are the stairs of a
// drift.
Line last_line(std::span<const double> logs, const std::vector<size_t>& starts, double long_run) {
  Line line = fit_line(logs.subspan(starts.back()));
  const double price = 2 * std::log(static_cast<double>(logs.size())) * long_run;
  double stairs = line.level;
  for (size_t s = starts.size() - 1; s-- > 0;) {
    stairs += fit_line(logs.subspan(starts[s], starts[s + 1] - starts[s])).level + price;
    const Line longer = fit_line(logs.subspan(starts[s]));
    if (longer.residuals <= stairs) line = longer;
  }
  return line;
}

// Beyond z standard errors from 0 and beyond the tolerance.
bool drifts(double change, double standard_error, double z, double tolerance) {
  return std::abs(change) > z * standard_error && std::abs(change) > tolerance;
}

// Compares the halves of the last segment; true when they differ.
bool compare_halves(std::span<const double> last, double long_run, double tolerance, SteadyState& state) {
  const size_t half = last.size() / 2;
  const double change = mean(last.last(half)) - mean(last.first(half));
  const double error = std::sqrt(long_run * 2 / static_cast<double>(half));
  state.drift = std::expm1(change);
  state.drift_interval = {std::expm1(change - kHalvesZ * error), std::expm1(change + kHalvesZ * error)};
  state.equivalent = change - kHalvesZ * error >= -tolerance && change + kHalvesZ * error <= tolerance;
  return drifts(change, error, kHalvesZ, tolerance);
}

bool has_trend(std::span<const double> logs, const std::vector<size_t>& starts, double long_run,
               double tolerance, SteadyState& state) {
  const Line line = last_line(logs, starts, long_run);
  const double error = line.times > 0 ? std::sqrt(long_run / line.times) * line.steps : 0;
  state.trend = std::expm1(line.slope * line.steps);
  return drifts(line.slope * line.steps, error, kTrendZ, tolerance);
}

// Where MSER-5 would start (White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics
// for simulation", 2000): among the means of batches of 5, the start that makes the squared standard error of
// the rest, sum (x - mean)^2 / k^2, least. A start beyond the middle says that the rule does not apply: 0
// then.
size_t mser5(std::span<const double> values) {
  constexpr size_t kBatch = 5;
  const size_t batches = values.size() / kBatch;
  double sum = 0, squares = 0, least = std::numeric_limits<double>::infinity();
  const double centre = mean(values);  // sums of deviations from it lose no digits
  size_t start = 0;
  for (size_t b = batches; b-- > 0;) {
    const double batch = mean(values.subspan(b * kBatch, kBatch)) - centre;
    sum += batch;
    squares += batch * batch;
    const double k = static_cast<double>(batches - b);
    const double error = (squares - sum * sum / k) / (k * k);
    if (k >= kBatch && error <= least) {
      least = error;
      start = b;
    }
  }
  return start > batches / 2 ? 0 : start * kBatch;
}

// Steps at the start of the last segment that MSER-5 takes for warm-up, where they differ from the rest
// significantly (99%): on a flat series the rule picks its start from noise.
size_t rest_of_decay(std::span<const double> last, double long_run) {
  const size_t start = mser5(last);
  if (start == 0) return 0;
  const double change = mean(last.subspan(start)) - mean(last.first(start));
  const double error =
      std::sqrt(long_run * (1 / static_cast<double>(start) + 1 / static_cast<double>(last.size() - start)));
  return std::abs(change) > kHalvesZ * error ? start : 0;
}

bool keeps_changing(const std::vector<size_t>& starts, size_t n) {
  return std::count_if(starts.begin(), starts.end(), [n](size_t start) { return start > n / 2; }) >= 2;
}

}  // namespace

std::string_view name(Steadiness state) {
  if (state == Steadiness::kSteady) return "steady";
  return state == Steadiness::kDrifting ? "not steady" : "too short";
}

Result<SteadyState> find_steady(std::span<const double> step_ms, const SteadyOptions& options) {
  for (size_t i = 0; i < step_ms.size(); ++i) {
    if (std::isfinite(step_ms[i]) && step_ms[i] > 0) continue;
    return Error{fmt::format("step {} took {} ms, which is no positive time", i + 1, step_ms[i])};
  }
  SteadyState state;
  state.begin = std::min(options.skip, step_ms.size());
  std::vector<double> logs;
  for (const double ms : step_ms.subspan(state.begin)) logs.push_back(std::log(ms));
  if (logs.size() < kFewestSteps) return state;

  const size_t skipped = state.begin;
  state.spikes = despike(logs);
  const Noise noise = difference_noise(logs);
  const double n = static_cast<double>(logs.size());
  const double long_run = std::max(noise.long_run_variance(), kLeastVariance);
  const std::vector<size_t> starts = pelt(logs, 3 * std::log(n) * long_run);
  for (size_t& spike : state.spikes) spike += skipped;
  for (size_t i = 1; i < starts.size(); ++i) state.level_changes.push_back(starts[i] + skipped);
  state.begin = starts.back() + skipped;

  std::span<const double> last = std::span<const double>(logs).subspan(starts.back());
  const size_t rest_of_warm_up = rest_of_decay(last, long_run);
  last = last.subspan(rest_of_warm_up);
  state.begin += rest_of_warm_up;
  const double tolerance = std::log1p(options.tolerance);
  const bool halves_differ = compare_halves(last, long_run, tolerance, state);
  const bool trend = has_trend(logs, starts, long_run, tolerance, state);
  state.n_eff = static_cast<double>(last.size()) * (1 - noise.phi) / (1 + noise.phi);
  if (halves_differ || trend || keeps_changing(starts, logs.size())) {
    state.state = Steadiness::kDrifting;
  } else if (state.n_eff >= kSmallestEffectiveSize) {
    state.state = Steadiness::kSteady;
  }
  return state;
}

}  // namespace bakeoff::stats
