#include "stats/level.h"

#include <algorithm>
#include <cmath>

#include "stats/boundary.h"
#include "stats/e_process.h"

namespace bakeoff::stats {

Level::Level(const PairTable& table, double alpha, const LevelOptions& options)
    : table_(table), options_(options), ceiling_alpha_(kCeilingShare * alpha) {
  if (options.ceiling > 0) alpha -= ceiling_alpha_;
  quicker_alpha_ = table.compares_stalls() ? (1 - kMeanShare) * alpha : alpha;
  mean_alpha_ = kMeanShare * alpha;
}

Interval Level::of(size_t a, size_t b) const {
  const Interval measured = by_t(a, b);
  if (!rests_on_promise(a, b)) return measured;
  const Interval promised = by_promise(std::min(a, b), std::max(a, b));
  const Interval both = measured.intersected(a < b ? promised : promised.mirrored());
  return both.low <= both.high ? both : measured;  // at odds: of probability below alpha
}

Interval Level::by_t(size_t a, size_t b) const {
  const double alpha = alpha_of(a, b);
  const Interval t = table_.interval(a, b, boundary_ratios(table_.met(a, b), alpha), options_.resolution);
  return table_.confirmed(a, b, t, alpha);
}

namespace {

// Calls look(sum, precision) after each heat of a pair to which the promise applies, from the first one that
// counts on; `variance`: of d beside what bursts show.
template <typename Look>
void for_each_look(const std::vector<PromisedHeat>& heats, double variance, size_t from, Look look) {
  double sum = 0, precision = 0;
  for (size_t i = 0; i < heats.size(); ++i) {
    const double weight = 1 / (variance + heats[i].variance);
    sum += weight * heats[i].d;
    precision += weight;
    if (i + 1 >= from) look(sum, precision);
  }
}

}  // namespace

// As with t, what the intervals after each heat have in common.
Interval Level::by_promise(size_t a, size_t b) const {
  // Effects of about 6%, or of a few ceilings.
  const double prior = std::hypot(0.06, 3 * options_.ceiling);
  const double least = std::max(options_.ceiling, options_.resolution);
  Interval common, last;
  for_each_look(table_.promised(a, b), least * least, options_.ceiling_from,
                [&](double sum, double precision) {
                  const double half = known_variance_half_width(1 / precision, prior, ceiling_alpha_);
                  last = {sum / precision - half, sum / precision + half};
                  common = common.intersected(last);
                });
  return common.low <= common.high ? common : last;
}

bool Level::may_differ(size_t a, size_t b) const {
  if (table_.may_differ(a, b, boundary_ratios(table_.met(a, b), alpha_of(a, b)))) return true;
  if (!rests_on_promise(a, b)) return false;
  // The half-width is at least sqrt(2 log(1/alpha) / precision).
  const double least = std::max(options_.ceiling, options_.resolution);
  const double farther = -2 * std::log(ceiling_alpha_);
  bool found = false;
  for_each_look(table_.promised(a, b), least * least, options_.ceiling_from,
                [&](double sum, double precision) { found = found || sum * sum > farther * precision; });
  return found;
}

}  // namespace bakeoff::stats
