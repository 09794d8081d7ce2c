#include "summary/pair_ratios.h"

#include <cmath>
#include <limits>
#include <set>

#include "stats/verdict.h"

namespace bakeoff {
namespace {

std::set<std::string> timed_ids(const Summary& s) {
  std::set<std::string> ids;
  for (const Row& row : s.ranked) {
    if (!row.at_least) ids.insert(row.contender.id);
  }
  return ids;
}

// Whether `a` says more than `b`: more ends are bounded, or the interval is narrower.
bool says_more(const stats::Interval& a, const stats::Interval& b) {
  const auto ends = [](const stats::Interval& d) {
    return int{d.low > -stats::kInfinity} + int{d.high < stats::kInfinity};
  };
  if (ends(a) != ends(b)) return ends(a) > ends(b);
  return ends(a) == 2 && a.width() < b.width();
}

stats::Interval log_of(const Estimate& e) {
  return {e.low > 0 ? std::log(e.low) : -stats::kInfinity,
          std::isfinite(e.high) ? std::log(e.high) : stats::kInfinity};
}

}  // namespace

void add_pairs(const stats::Ranking& ranking, const std::vector<std::string>& ids, Summary& s) {
  for (const stats::PairGap& pair : ranking.pairs) {
    s.pairs.push_back({.a = ids[pair.a],
                       .b = ids[pair.b],
                       .heats = static_cast<int>(pair.pairs),
                       .ratio = with_known_ends(
                           {std::exp(pair.gap), std::exp(pair.together.low), std::exp(pair.together.high)})});
  }
}

void keep_pairs_of_ranked(Summary& s) {
  const std::set<std::string> ids = timed_ids(s);
  std::erase_if(s.pairs,
                [&](const PairRatio& pair) { return !ids.contains(pair.a) || !ids.contains(pair.b); });
}

PairRatios::PairRatios(const Summary& s) {
  for (const PairRatio& pair : s.pairs) {
    const Link link = {pair.heats, std::log(pair.ratio.value), log_of(pair.ratio)};
    links_[pair.a][pair.b] = link;
    links_[pair.b][pair.a] = {link.heats, -link.gap, link.d.mirrored()};
  }
  for (const Row& row : s.ranked) {
    if (!row.at_least) continue;
    const std::string leader = leader_of(s, row).contender.id;
    const Link link = {row.heats, std::log(*row.at_least), {std::log(*row.at_least), stats::kInfinity}, true};
    links_[row.contender.id][leader] = link;
    links_[leader][row.contender.id] = {link.heats, -link.gap, link.d.mirrored(), true};
  }
}

std::optional<PairRatios::Link> PairRatios::direct(const std::string& a, const std::string& b) const {
  const auto of = links_.find(a);
  if (of == links_.end()) return std::nullopt;
  const auto found = of->second.find(b);
  return found == of->second.end() ? std::nullopt : std::optional(found->second);
}

std::optional<PairRatio> PairRatios::between(const std::string& a, const std::string& b) const {
  std::optional<Link> best = direct(a, b);
  std::string through;
  const auto of = links_.find(a);
  if (of == links_.end()) return std::nullopt;
  if (!best || !best->d.bounded()) {
    for (const auto& [third, first] : of->second) {
      const auto second = direct(third, b);
      if (third == b || !second || (first.bound && second->bound)) continue;
      const Link chain = {0,
                          first.gap + second->gap,
                          {first.d.low + second->d.low, first.d.high + second->d.high},
                          first.bound || second->bound};
      if (best && !says_more(chain.d, best->d)) continue;
      best = chain;
      through = third;
    }
  }
  if (!best) return std::nullopt;
  return PairRatio{.a = a,
                   .b = b,
                   .heats = best->heats,
                   .ratio = {std::exp(best->gap), std::exp(best->d.low), std::exp(best->d.high)},
                   .through = through,
                   .bound = best->bound};
}

PairVerdict compared(const Estimate& time_ratio, double margin) {
  switch (stats::judge(log_of(time_ratio), margin)) {
    case stats::Verdict::kFaster:
      return PairVerdict::kFaster;
    case stats::Verdict::kSame:
      return PairVerdict::kSame;
    case stats::Verdict::kSlower:
    case stats::Verdict::kMateriallySlower:
      return PairVerdict::kSlower;
    case stats::Verdict::kUndecided:
      break;
  }
  return PairVerdict::kUndecided;
}

Estimate inverse(const Estimate& e) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return {1 / e.value, std::isfinite(e.high) ? 1 / e.high : 0, e.low > 0 ? 1 / e.low : kInf};
}

}  // namespace bakeoff
