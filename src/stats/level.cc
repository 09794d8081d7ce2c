#include "stats/level.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "stats/boundary.h"
#include "stats/e_process.h"

namespace bakeoff::stats {

Level::Level(const PairTable& table, double alpha, const LevelOptions& options)
    : table_(table),
      options_(options),
      ceiling_alpha_(ceiling_share(options.ceiling) * alpha),
      farther_(options.ceiling > 0 ? -2 * std::log(ceiling_alpha_) : 0) {
  alpha -= ceiling_alpha_;
  quicker_alpha_ = table.compares_stalls() ? (1 - kMeanShare) * alpha : alpha;
  mean_alpha_ = kMeanShare * alpha;
}

Interval Level::of(size_t a, size_t b) const {
  return table_.with_nodes(a, b, of_heats(a, b), alpha_of(a, b), options_.about);
}

Interval Level::of_heats(size_t a, size_t b) const {
  const Interval measured = by_t(a, b);
  if (!rests_on_promise(a, b)) return measured;
  const Interval both = measured.intersected(by_promise(a, b));
  return both.low <= both.high ? both : measured;  // at odds: of probability below alpha
}

Interval Level::by_t(size_t a, size_t b) const {
  const double alpha = alpha_of(a, b);
  const Interval t = table_.interval(a, b, boundary_ratios(table_.met(a, b), alpha), options_.resolution);
  return table_.confirmed(a, b, t, alpha);
}

namespace {

// The mean of d over promised heats, weighted by 1 / variance, and its variance; `variance`: of d beside what
// bursts show.
struct Weighted {
  double mean = 0;
  double variance = std::numeric_limits<double>::infinity();
};
Weighted weighted(const std::vector<PromisedHeat>& heats, double variance) {
  double sum = 0, precision = 0;
  for (const PromisedHeat& heat : heats) {
    const double weight = 1 / (variance + heat.variance);
    sum += weight * heat.d;
    precision += weight;
  }
  return {sum / precision, 1 / precision};
}

}  // namespace

// The interval of the latest look alone: those before add little where the variance is known.
Interval Level::by_promise(size_t a, size_t b) const {
  if (a > b) return by_promise(b, a).mirrored();
  const std::vector<PromisedHeat>& heats = table_.promised(a, b);
  if (heats.empty() || heats.size() < options_.ceiling_from) return {};
  // Effects of about 6%, or of a few ceilings.
  const double prior = std::hypot(0.06, 3 * options_.ceiling);
  const double least = std::max(options_.ceiling, options_.resolution);
  const Weighted d = weighted(heats, least * least);
  const double half = known_variance_half_width(d.variance, prior, ceiling_alpha_);
  return {d.mean - half, d.mean + half};
}

bool Level::may_differ(size_t a, size_t b) const {
  if (table_.may_differ(a, b, boundary_ratios(table_.met(a, b), alpha_of(a, b)))) return true;
  const std::vector<PromisedHeat>& heats = table_.promised(a, b);
  if (!rests_on_promise(a, b) || heats.empty() || heats.size() < options_.ceiling_from) return false;
  const double least = std::max(options_.ceiling, options_.resolution);
  const Weighted d = weighted(heats, least * least);
  return d.mean * d.mean > farther_ * d.variance;  // the half-width is larger still
}

}  // namespace bakeoff::stats
