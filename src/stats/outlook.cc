// The rest of a race has no formula: the boundary is a table, verdicts have several edges, and a pair's
// distance from an edge is uncertain. So 63 courses are simulated. Each draws every pair's true gap once,
// from what its heats have shown, and then further heats about it.
//
// Heats serve several pairs: the leader and live - 1 others run in each. A course therefore needs as many
// heats as its slowest pair, or all turns / (live - 1) if that is more. The report gives the median course,
// and the 7th from either end as the range of 8 in 10.

#include "stats/outlook.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "stats/boundary.h"
#include "stats/distributions.h"
#include "stats/level.h"
#include "stats/verdict.h"

namespace bakeoff::stats {
namespace {

constexpr size_t kCourses = 63;
constexpr size_t kMostLooks = 2'000'000;  // of all courses: a fraction of a second
constexpr size_t kMostHeats = 5000, kLeastHeats = 50;

struct Course {
  double heats = 0, seconds = 0;
  bool more = false;
};

// The number of further heats after which the pair is decided in one course; `most` + 1 if it is not.
size_t heats_until_decided(const OpenPair& pair, double margin, size_t most, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const double heats = static_cast<double>(pair.seen.count());
  const double gap = pair.seen.mean() + std::sqrt(pair.seen_variance / heats) * normal(random);
  const double sd = std::sqrt(pair.next_variance);
  EProcess look = pair.seen;
  Interval common = pair.known;
  for (size_t more = 1; more <= most; ++more) {
    look.add(gap + sd * normal(random));
    const Interval now = look.interval_at(boundary_ratio(look.count(), pair.alpha));
    const Interval both = common.intersected(now);
    common = both.low <= both.high ? both : now;
    if (judge(common, margin) != Verdict::kUndecided) return more;
  }
  return most + 1;
}

Course course(std::span<const OpenPair> pairs, double leader_s, size_t live, double margin, size_t most,
              std::mt19937_64& random) {
  Course found;
  double turns = 0;
  for (const OpenPair& pair : pairs) {
    const size_t needed = heats_until_decided(pair, margin, most, random);
    found.more |= needed > most;
    const auto heats = static_cast<double>(std::min(needed, most));
    turns += heats;
    found.seconds += heats * pair.heat_s;
    found.heats = std::max(found.heats, heats);
  }
  found.heats = std::max(found.heats, std::ceil(turns / static_cast<double>(live - 1)));
  found.seconds += found.heats * leader_s;
  return found;
}

}  // namespace

std::optional<double> slower_by_now(const PairTable& table, size_t a, size_t b) {
  if (table.met(a, b) < 2) return std::nullopt;
  const EProcess& seen = table.seen(a, b);
  if (!(seen.sd() > 0)) return std::nullopt;
  const auto heats = static_cast<double>(seen.count());
  const double t = table.gap(a, b) * std::sqrt(heats) / seen.sd();
  return student_cdf(heats - 1, t);
}

OpenPair open_pair(const PairTable& table, const Race& race, const RankingOptions& options, size_t contender,
                   std::span<const PastHeat> past, int64_t rounds, double heat_s) {
  const size_t low = std::min(contender, *race.leader), high = std::max(contender, *race.leader);
  size_t open = 0;
  for (size_t i = 0; i < race.standings.size(); ++i)
    open += !table.left_out(i) && !race.standings[i].eliminated_by;
  const Level level(table, options.alpha / static_cast<double>(comparisons(open)),
                    {options.resolution, options.ceiling, options.ceiling_from});
  const HeatVariance variance = heat_variance(past);
  OpenPair pair = {.seen = table.seen(low, high),
                   .known = level.of(low, high),
                   .alpha = level.alpha_of(low, high),
                   .next_variance = variance.restart + variance.round / static_cast<double>(rounds),
                   .heat_s = heat_s};
  for (const PastHeat& heat : past) {
    const double of_heat = variance.restart + variance.round / static_cast<double>(heat.rounds);
    pair.seen_variance += of_heat / static_cast<double>(past.size());
  }
  return pair;
}

Rest rest_of_race(std::span<const OpenPair> pairs, double leader_s, size_t live, double margin) {
  if (pairs.empty()) return {};
  std::mt19937_64 random(1);
  const size_t most = std::clamp(kMostLooks / (kCourses * pairs.size()), kLeastHeats, kMostHeats);
  std::vector<Course> courses;
  for (size_t i = 0; i < kCourses; ++i)
    courses.push_back(course(pairs, leader_s, live, margin, most, random));
  std::sort(courses.begin(), courses.end(),
            [](const Course& a, const Course& b) { return a.seconds < b.seconds; });
  const Course& middle = courses[kCourses / 2];
  return {middle.heats, middle.seconds, courses[kCourses / 10].seconds,
          courses[kCourses - 1 - kCourses / 10].seconds, middle.more};
}

}  // namespace bakeoff::stats
