#include "stats/level.h"

#include <algorithm>

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
  const size_t n = table_.promised(a, b);
  if (options_.ceiling <= 0 || n < std::max<size_t>(options_.ceiling_from, 1)) return measured;
  if (n >= halves_.size()) halves_.resize(n + 1);
  if (!halves_[n])
    halves_[n] = ceiling_half_width(n, std::max(options_.ceiling, options_.resolution), ceiling_alpha_);
  const double gap = table_.promised_gap(a, b);
  const Interval both = {std::max(measured.low, gap - *halves_[n]),
                         std::min(measured.high, gap + *halves_[n])};
  return both.low <= both.high ? both : measured;  // at odds: of probability below alpha
}

Interval Level::by_t(size_t a, size_t b) {
  const size_t n = table_.met(a, b);
  if (n < 2) return {};
  Share& share = table_.stalls(a, b).decides ? mean_ : quicker_;
  if (n >= share.ratios.size()) share.ratios.resize(n + 1);
  if (!share.ratios[n]) share.ratios[n] = critical_ratio(n, share.alpha);
  const Interval t = table_.interval(a, b, *share.ratios[n], options_.resolution);
  return table_.confirmed(a, b, t, share.alpha);
}

}  // namespace bakeoff::stats
