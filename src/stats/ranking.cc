// Levels steps down. A pass computes intervals of all open pairs at alpha / (number of pairs) and
// eliminates. Fewer open pairs have a larger share each, so passes repeat until one eliminates nobody. 256
// contenders have 32,640 pairs, judged after every heat. Most are alike at any level: that_may_differ()
// drops a pair if even the whole of alpha does not separate it.
//
// left_[i] is the pass in which contender i left. A pair is judged at the level of the earlier of its two.
//
// The leader needs no proof: all statements are about pairs and hold whichever contender leads. It is kept
// stable (leader_band), because heats pair contenders with the leader, and a new leader starts new pairs.
//
// Ranks and tie groups: collect "a is slower than b", close it over chains (a > b and b > c give a > c,
// also if a and c never met), and count.

#include "stats/ranking.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stats/level.h"
#include "stats/ties.h"

namespace bakeoff::stats {
namespace {

using Matrix = std::vector<std::vector<bool>>;

std::vector<size_t> by_effect(const std::vector<std::optional<double>>& effects) {
  std::vector<size_t> order;
  for (size_t i = 0; i < effects.size(); ++i) {
    if (effects[i]) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return *effects[a] < *effects[b]; });
  return order;
}

// By whom it is beaten most surely: `behind` is a lower bound of log(contender / rival).
void note_defeat(Standing& standing, size_t rival, double behind, double above) {
  if (behind <= above || (standing.eliminated_by && behind <= standing.behind)) return;
  standing.eliminated_by = rival;
  standing.behind = behind;
}

// The level of each pair, by stepping down: see the header.
class Levels {
 public:
  // Notes in race.standings who is eliminated and by whom.
  Levels(const PairTable& table, const std::vector<std::optional<double>>& effects,
         const RankingOptions& options, Race& race)
      : left_(effects.size()) {
    std::vector<size_t> open;
    for (size_t i = 0; i < effects.size(); ++i) {
      if (!table.left_out(i)) open.push_back(i);
    }
    const double above = std::log1p(options.eliminate_above);
    const LevelOptions evidence = {options.resolution, options.ceiling, options.ceiling_from, options.about};
    std::vector<Pair> apart = that_may_differ(table, effects, open, Level(table, options.alpha, evidence));
    for (bool again = true; again;) {
      levels_.emplace_back(table, options.alpha / static_cast<double>(comparisons(open.size())), evidence);
      std::erase_if(apart, [&](const Pair& pair) {
        return race.standings[pair.first].eliminated_by || race.standings[pair.second].eliminated_by;
      });
      for (const auto& [a, b] : apart) {
        const Interval gap = levels_.back().of(a, b);
        note_defeat(race.standings[a], b, gap.low, above);
        note_defeat(race.standings[b], a, -gap.high, above);
      }
      const size_t had = open.size();
      std::erase_if(open, [&](size_t i) { return race.standings[i].eliminated_by.has_value(); });
      again = open.size() < had && open.size() > 1;
      for (size_t i = 0; i < left_.size(); ++i) {
        if (again && !race.standings[i].eliminated_by) left_[i] = levels_.size();
      }
    }
  }

  // d = log(a / b) at the level of all pairs, before anyone has left.
  Interval together(size_t a, size_t b) const { return levels_.front().of(a, b); }
  // d = log(a / b) at the level of the pair.
  Interval of(size_t a, size_t b) { return levels_[std::min(left_[a], left_[b])].of(a, b); }

 private:
  using Pair = std::pair<size_t, size_t>;

  // Pairs of `open` that the whole of alpha would tell apart: no smaller level tells others apart.
  static std::vector<Pair> that_may_differ(const PairTable& table,
                                           const std::vector<std::optional<double>>& effects,
                                           const std::vector<size_t>& open, const Level& level) {
    std::vector<Pair> pairs;
    for (size_t k = 1; k < open.size(); ++k) {  // in the order of the table's memory
      for (size_t j = 0; effects[open[k]] && j < k; ++j) {
        if (effects[open[j]] && table.met(open[j], open[k]) > 0 && level.may_differ(open[j], open[k]))
          pairs.emplace_back(open[j], open[k]);
      }
    }
    return pairs;
  }

  std::vector<Level> levels_;  // by pass
  std::vector<size_t> left_;   // the pass in which a contender left; the last pass if it stays
};

std::optional<size_t> lead(const PairTable& table, const std::vector<size_t>& order,
                           const std::vector<std::optional<double>>& effects, double band, const Race& race) {
  std::optional<size_t> leader;
  double least = 0;
  for (const size_t i : order) {
    if (race.standings[i].eliminated_by) continue;
    if (!leader) least = *effects[i];
    if (*effects[i] > least + band) break;
    if (!leader || (band > 0 && table.heats(i) > table.heats(*leader))) leader = i;
  }
  if (leader) return leader;
  // Every contender is beaten by another: circular evidence, with probability below alpha. The best estimate
  // leads.
  if (!order.empty()) return order.front();
  return std::nullopt;
}

void compare_with_leader(const PairTable& table, Levels& levels, size_t i, size_t leader, double margin,
                         Standing& standing) {
  if (i == leader) {
    standing.interval = {0, 0};
    standing.verdict = Verdict::kSame;
    standing.within_margin = true;
    return;
  }
  standing.pairs = table.met(i, leader);
  standing.gap = table.gap(i, leader);
  standing.stalls = table.stalls(i, leader);
  standing.interval = levels.of(i, leader);
  standing.verdict = judge(standing.interval, margin);
  standing.within_margin = within_margin(standing.interval, margin);
  if (standing.verdict == Verdict::kUndecided && standing.eliminated_by) standing.verdict = Verdict::kSlower;
}

// Transitive closure (Warshall): i > via and via > j give i > j.
void close_chains(Matrix& relation) {
  for (size_t via = 0; via < relation.size(); ++via) {
    for (size_t i = 0; i < relation.size(); ++i) {
      if (!relation[i][via]) continue;
      for (size_t j = 0; j < relation.size(); ++j) {
        if (relation[via][j]) relation[i][j] = true;
      }
    }
  }
}

// slower[i][j]: i is surely slower than j.
Matrix slower_than(const Race& race, const std::vector<PairGap>& pairs) {
  const size_t contenders = race.standings.size();
  Matrix slower(contenders, std::vector<bool>(contenders, false));
  for (const PairGap& pair : pairs) {
    if (pair.interval.low > 0) slower[pair.a][pair.b] = true;
    if (pair.interval.high < 0) slower[pair.b][pair.a] = true;
  }
  for (size_t i = 0; i < contenders; ++i) {
    const Standing& standing = race.standings[i];
    if (standing.eliminated_by) slower[i][*standing.eliminated_by] = true;
    if (standing.interval.low > 0) slower[i][*race.leader] = true;
    if (standing.interval.high < 0) slower[*race.leader][i] = true;
  }
  close_chains(slower);
  return slower;
}

// Two contenders each slower than the other (evidence in a circle) count as tied.
bool separated(const Matrix& slower, size_t i, size_t j) { return slower[i][j] != slower[j][i]; }

void place(const std::vector<size_t>& order, const Matrix& slower, Ranking& ranking) {
  Matrix tied(slower.size(), std::vector<bool>(slower.size(), false));
  for (const size_t i : order) {
    Place& own = ranking.places[i];
    own.best = 1;
    own.worst = order.size();
    for (const size_t j : order) {
      tied[i][j] = !separated(slower, i, j);
      if (tied[i][j]) continue;
      if (slower[i][j]) {
        ++own.best;
      } else {
        --own.worst;
      }
    }
  }
  ranking.tie_groups = tie_groups(order, tied);
  for (const size_t i : order) ranking.places[i].letters = letters(ranking.tie_groups, i);
}

struct Judged {
  Race race;
  std::optional<Levels> levels;  // absent below two contenders
  std::vector<std::optional<double>> effects;
};

Judged judge_all(const PairTable& table, const RankingOptions& options) {
  const size_t contenders = table.contenders();
  Judged judged;
  Race& race = judged.race;
  race.standings.resize(contenders);
  if (contenders < 2) return judged;
  judged.effects = table.effects();
  const std::vector<std::optional<double>>& effects = judged.effects;
  const std::vector<size_t> order = by_effect(effects);
  Levels& levels = judged.levels.emplace(table, effects, options, race);
  race.leader = lead(table, order, effects, std::log1p(options.leader_band), race);
  if (!race.leader) return judged;
  for (const size_t i : order) {
    Standing& standing = race.standings[i];
    standing.effect = *effects[i] - *effects[*race.leader];
    compare_with_leader(table, levels, i, *race.leader, options.margin, standing);
    if (standing.eliminated_by) {
      race.eliminated.push_back(i);
    } else if (standing.verdict == Verdict::kUndecided) {
      race.still_undecided.push_back(i);
    }
  }
  std::sort(race.eliminated.begin(), race.eliminated.end());
  if (race.eliminated.size() + 1 == order.size()) race.winner = race.leader;
  return judged;
}

}  // namespace

size_t comparisons(size_t open) { return open < 2 ? 1 : open * (open - 1) / 2; }

Race race_state(const PairTable& table, const RankingOptions& options) {
  return judge_all(table, options).race;
}

Ranking rank(const PairTable& table, const RankingOptions& options) {
  const size_t contenders = table.contenders();
  Judged judged = judge_all(table, options);
  Ranking ranking;
  ranking.race = std::move(judged.race);
  ranking.order = by_effect(judged.effects);
  ranking.places.resize(contenders);
  for (size_t a = 0; a < contenders; ++a) {
    for (size_t b = a + 1; b < contenders; ++b) {
      if (table.met(a, b) == 0) continue;
      ranking.pairs.push_back({a, b, table.met(a, b), table.gap(a, b), judged.levels->of(a, b),
                               table.stalls(a, b), judged.levels->together(a, b)});
    }
  }
  place(ranking.order, slower_than(ranking.race, ranking.pairs), ranking);
  return ranking;
}

}  // namespace bakeoff::stats
