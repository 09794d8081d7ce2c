// L1 to L3: a fleet's race. 256 contenders on 64 nodes, in waves that are planned together, against the same race
// heat by heat on one machine; and two equal contenders on few and on many nodes of which each favours one of them. Who
// runs, what decides and when it is over are the product's own functions; only noise, nodes and turns are simulated.
// At every look both statements are made that a report may make: of the nodes that ran, and from 4 nodes on of all that
// there could be. They are held against two truths: the mean over the fleet's nodes, and what nodes are drawn around.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <span>

#include "prove/models.h"
#include "prove/parallel.h"
#include "prove/report.h"
#include "stats/racing.h"

namespace bakeoff::prove {
namespace {

using stats::testing::Machine;

struct Fleet {
  size_t contenders = 2;
  size_t nodes = 64;
  double own = 0;    // sd of what a node adds to the log time of a contender, for ever
  double drift = 0;  // what the first node adds to contender 1 more in each heat that it runs
  size_t wave = 8;
  int most = 4000;  // heats
};

struct Outcome {
  double starts = 0, waves = 0, heats = 0;
  bool wrong_of_these = false, wrong_of_kind = false, decided = false;
};

// Nodes with noise and a liking of their own.
class Nodes {
 public:
  Nodes(const Fleet& fleet, const std::vector<double>& effects, uint64_t seed)
      : fleet_(fleet), random_(seed) {
    std::normal_distribution<double> own(0, fleet.own);
    for (size_t n = 0; n < fleet.nodes; ++n) {
      std::vector<double> here = effects;
      for (double& effect : here) effect += fleet.own > 0 ? own(random_) : 0.0;
      mean_.resize(effects.size());
      for (size_t i = 0; i < here.size(); ++i) mean_[i] += here[i] / static_cast<double>(fleet.nodes);
      machines_.emplace_back(brisk(), here, seed * 7919 + n);
      ran_.push_back(0);
    }
  }

  const std::vector<double>& mean() const { return mean_; }

  // The node that is free first takes a block: any node.
  stats::HeatResult heat(const std::vector<size_t>& members) {
    const size_t node = std::uniform_int_distribution<size_t>(0, machines_.size() - 1)(random_);
    stats::HeatResult result = machines_[node].heat(members);
    result.node = static_cast<int>(node);
    const double drifted = node == 0 ? fleet_.drift * ran_[node] : 0;
    ++ran_[node];
    for (const size_t member : members) {
      if (member != 1) continue;
      *result.log_ms[member] += drifted;
      *result.log_mean_ms[member] += drifted;
    }
    return result;
  }

 private:
  const Fleet& fleet_;
  std::mt19937_64 random_;
  std::vector<Machine> machines_;
  std::vector<int> ran_;
  std::vector<double> mean_;  // effects over the nodes
};

bool denied(const stats::Race& race, const std::vector<double>& effects) {
  if (!race.leader) return false;
  const double epsilon = std::log1p(kMargin);
  for (size_t i = 0; i < effects.size(); ++i) {
    const double gap = effects[i] - effects[*race.leader];
    const stats::Verdict verdict = race.standings[i].verdict;
    if (race.standings[i].eliminated_by && effects[i] == *std::ranges::min_element(effects) && gap <= 0)
      return true;
    if (verdict == stats::Verdict::kSame && std::abs(gap) > epsilon) return true;
    if (verdict == stats::Verdict::kFaster && gap >= 0) return true;
    if (verdict == stats::Verdict::kMateriallySlower && gap <= epsilon) return true;
    if (verdict == stats::Verdict::kSlower && gap <= 0) return true;
  }
  return false;
}

// What the heats so far say about these nodes or about their kind.
stats::Race said(std::span<const stats::HeatResult> heats, size_t contenders, stats::RankingOptions options,
                 stats::About about) {
  stats::PairTable table(contenders, std::log1p(kMargin), stats::Backup::kOnSigns);
  for (const stats::HeatResult& heat : heats) (void)table.add(heat);
  options.about = about;
  return race_state(table, options);
}

Outcome race(const Fleet& fleet, const std::vector<double>& effects, uint64_t seed,
             Mutant mutant = Mutant::kNone) {
  using enum stats::About;
  stats::RacingOptions options = {.confirm_heats = 0};
  options.ranking.alpha = kAlpha;
  options.ranking.margin = kMargin;
  stats::PairTable table(effects.size(), std::log1p(kMargin), stats::Backup::kOnSigns);
  const std::vector<stats::ContenderState> states(effects.size());
  Nodes nodes(fleet, effects, seed);
  Outcome outcome;
  std::vector<stats::HeatResult> heats;
  std::set<int> ran;
  while (outcome.heats < fleet.most) {
    stats::Race now = race_state(table, options.ranking);
    outcome.wrong_of_these = outcome.wrong_of_these || denied(now, nodes.mean());
    if (ran.size() >= stats::kFewestOfAKind) {
      std::vector<int> node;
      for (const stats::HeatResult& heat : heats) node.push_back(heat.node);
      const stats::Race early = said(std::span(heats).first(stats::earliest_of(node)), effects.size(),
                                     options.ranking, kTheseNodes);
      stats::RankingOptions of_kind = options.ranking;
      of_kind.about = mutant == Mutant::kNodesForgotten ? kTheseNodes : kTheirKind;
      now = race_state(table, of_kind);
      outcome.wrong_of_kind = outcome.wrong_of_kind || denied(now, effects);
      outcome.decided = now.leader && now.still_undecided.empty();
      leave_to_these_nodes(now, early);
    }
    if (mutant == Mutant::kNodesVeto && table.signs(0, 1).nodes) return outcome;
    const auto wave =
        next_wave(table, now, states, 0, options, mutant == Mutant::kWavesOfOne ? 1 : fleet.wave);
    if (wave.empty()) break;
    ++outcome.waves;
    for (const stats::Heat& heat : wave) {
      outcome.starts += static_cast<double>(heat.members.size());
      ++outcome.heats;
      stats::HeatResult result = nodes.heat(heat.members);
      ran.insert(result.node);
      if (mutant == Mutant::kNodesForgotten) result.node = 0;
      if (!table.add(result)) return outcome;
      heats.push_back(std::move(result));
    }
  }
  return outcome;
}

void many(const Options& options, Report& report) {
  const int races = tier(options, 20, 200);
  const Fleet fleet{.contenders = 256, .nodes = 64, .own = 0.004, .drift = 0.001, .wave = 74};
  const Fleet alone{.contenders = 256, .nodes = 1, .wave = 1, .most = 20000};
  struct Both {
    Outcome fleet, alone;
  };
  const auto all = for_each_seed(races, [&](int i) {
    const uint64_t seed = options.seed * 15485863 + static_cast<uint64_t>(i);
    const std::vector<double> effects = shuffled(wide(256), seed);
    return Both{race(fleet, effects, seed, options.mutant), race(alone, effects, seed + 1)};
  });
  Outcome sum, one;
  int wrong = 0, unfinished = 0;
  for (const Both& both : all) {
    sum.starts += both.fleet.starts, sum.waves += both.fleet.waves, sum.heats += both.fleet.heats;
    one.starts += both.alone.starts, one.waves += both.alone.waves;
    wrong += both.fleet.wrong_of_kind;
    unfinished += !both.fleet.decided;
  }
  report.add(
      {.id = "L1",
       .what = "256 contenders, 64 nodes: starts",
       .bar = "<= 200% of one machine's",
       .seen = fmt::format("{:.0f}% ({:.0f} a race)", 100 * sum.starts / one.starts, sum.starts / races),
       .held = sum.starts <= 2 * one.starts && unfinished == 0,
       .barred = true});
  // A node runs one heat at a time; a wave of 74 on 64 nodes takes two turns.
  report.add({.id = "L1",
              .what = "the same: turns of heats",
              .bar = "<= 20% of one machine's",
              .seen = fmt::format("{:.1f}% ({:.1f} a race, in {:.1f} waves)", 100 * 2 * sum.waves / one.waves,
                                  2 * sum.waves / races, sum.waves / races),
              .held = 2 * sum.waves <= 0.2 * one.waves,
              .barred = true});
  report.add(
      at_most("L1", "the same, each node likes other contenders, one drifts: wrong", wrong, races, 0.01));
}

// Two equal contenders, of which each node favours one, by much and by little.
void few(const Options& options, Report& report) {
  const int races = tier(options, 300, 2000);
  for (const size_t nodes : {size_t{2}, size_t{4}, size_t{8}, size_t{64}}) {
    for (const double differ : {0.03, 0.01}) {
      const Fleet fleet{.nodes = nodes, .own = differ / std::sqrt(2.0), .wave = 8, .most = 96};
      const auto all = for_each_seed(races, [&, n = nodes](int i) {
        return race(fleet, {0, 0}, options.seed * 32452843 + n * 1000003 + static_cast<uint64_t>(i),
                    options.mutant);
      });
      const auto count = [&](bool Outcome::*what) {
        return static_cast<int>(std::ranges::count_if(all, what));
      };
      const std::string where = fmt::format("{} nodes that differ by {:g}% (sd)", nodes, 100 * differ);
      report.add(
          at_most("L2", where + ", of these nodes: wrong", count(&Outcome::wrong_of_these), races, 0.01));
      if (nodes >= stats::kFewestOfAKind)
        report.add(
            at_most("L2", where + ", of their kind: wrong", count(&Outcome::wrong_of_kind), races, 0.01));
    }
  }
}

// A difference that all nodes share is found, though they differ; a small one takes more waves than one.
void found(const Options& options, Report& report) {
  struct Row {
    size_t nodes;
    double differ, gap, bar;
  };
  for (const auto& [nodes, differ, gap, bar] : {Row{32, 0.02, 0.08, 0.95}, Row{32, 0.02, 0.025, 0.95},
                                                Row{8, 0.005, 0.05, 0.95}, Row{4, 0.001, 0.1, 0.9}}) {
    const int races = tier(options, 100, 1000);
    const Fleet fleet{.nodes = nodes, .own = differ / std::sqrt(2.0), .wave = 16, .most = 400};
    const std::vector<double> effects = {0, std::log1p(gap)};
    const auto all = for_each_seed(races, [&](int i) {
      return race(fleet, effects, options.seed * 49979687 + static_cast<uint64_t>(i), options.mutant);
    });
    int decided = 0, wrong = 0;
    for (const Outcome& one : all) decided += one.decided, wrong += one.wrong_of_kind;
    report.add(at_least("L3",
                        fmt::format("{:g}% apart, {} nodes that differ by {:g}% (sd): decided of their kind",
                                    100 * gap, nodes, 100 * differ),
                        decided, races, bar));
    report.add(at_most("L3", "the same: wrong", wrong, races, 0.01));
  }
}

}  // namespace

void prove_fleets(const Options& options, Report& report) {
  if (wanted(options, "L1") && !in_part(options)) many(options, report);
  if (wanted(options, "L2")) few(options, report);
  if (wanted(options, "L3")) found(options, report);
}

}  // namespace bakeoff::prove
