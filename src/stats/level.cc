#include "stats/level.h"

#include <algorithm>
#include <cmath>

#include "stats/boundary.h"
#include "stats/e_process.h"

namespace bakeoff::stats {

Level::Level(const PairTable& table, double alpha, const LevelOptions& options)
    : table_(table), options_(options), ceiling_alpha_(kCeilingShare * alpha) {
  if (options.ceiling > 0) alpha -= ceiling_alpha_;
  quicker_.alpha = table.compares_stalls() ? (1 - kMeanShare) * alpha : alpha;
  mean_.alpha = kMeanShare * alpha;
}

Interval Level::of(size_t a, size_t b) {
  const Interval measured = by_t(a, b);
  if (options_.ceiling <= 0 || table_.stalls(a, b).decides) return measured;
  const Interval promised = by_promise(std::min(a, b), std::max(a, b));
  const Interval both = measured.intersected(a < b ? promised : promised.mirrored());
  return both.low <= both.high ? both : measured;  // at odds: of probability below alpha
}

// As with t, what the intervals after each heat have in common.
Interval Level::by_promise(size_t a, size_t b) const {
  // Effects of about 6%, or of a few ceilings.
  const double prior = std::hypot(0.06, 3 * options_.ceiling);
  const double least = std::max(options_.ceiling, options_.resolution);
  Interval common, last;
  double sum = 0, precision = 0;
  size_t heats = 0;
  for (const PromisedHeat& heat : table_.promised(a, b)) {
    const double weight = 1 / (least * least + heat.variance);
    sum += weight * heat.d;
    precision += weight;
    if (++heats < options_.ceiling_from) continue;
    const double half = known_variance_half_width(1 / precision, prior, ceiling_alpha_);
    last = {sum / precision - half, sum / precision + half};
    common = common.intersected(last);
  }
  return common.low <= common.high ? common : last;
}

Interval Level::by_t(size_t a, size_t b) {
  const size_t n = table_.met(a, b);
  if (n < 2) return {};
  Share& share = table_.stalls(a, b).decides ? mean_ : quicker_;
  while (share.ratios.size() <= n) share.ratios.push_back(boundary_ratio(share.ratios.size(), share.alpha));
  const Interval t = table_.interval(a, b, share.ratios, options_.resolution);
  return table_.confirmed(a, b, t, share.alpha);
}

}  // namespace bakeoff::stats
