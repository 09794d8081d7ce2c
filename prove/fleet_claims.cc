// L1 to L3: a fleet's race. 256 contenders on 64 nodes, in waves that are planned together, against the same race
// heat by heat on one machine; and two equal contenders on few and on many nodes of which each favours one of them. Who
// runs, what decides and when it is over are the product's own functions; only noise, nodes and turns are simulated.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

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
  int most = 4000;     // heats
  bool these = false;  // the truth is the mean over these nodes, not over all that there could be
};

struct Outcome {
  double starts = 0, waves = 0, heats = 0;
  bool wrong = false, finished = false;
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

Outcome race(const Fleet& fleet, const std::vector<double>& effects, uint64_t seed,
             Mutant mutant = Mutant::kNone) {
  stats::RacingOptions options = {.confirm_heats = 0};
  options.ranking.alpha = kAlpha;
  options.ranking.margin = kMargin;
  stats::PairTable table(effects.size(), std::log1p(kMargin), stats::Backup::kOnSigns);
  const std::vector<stats::ContenderState> states(effects.size());
  Nodes nodes(fleet, effects, seed);
  Outcome outcome;
  while (outcome.heats < fleet.most) {
    const stats::Race now = race_state(table, options.ranking);
    outcome.wrong = outcome.wrong || denied(now, fleet.these ? nodes.mean() : effects);
    if (mutant == Mutant::kNodesVeto && table.signs(0, 1).nodes) return outcome;
    const auto wave =
        next_wave(table, now, states, 0, options, mutant == Mutant::kWavesOfOne ? 1 : fleet.wave);
    if (wave.empty()) {
      outcome.finished = true;
      break;
    }
    ++outcome.waves;
    for (const stats::Heat& heat : wave) {
      outcome.starts += static_cast<double>(heat.members.size());
      ++outcome.heats;
      stats::HeatResult result = nodes.heat(heat.members);
      if (mutant == Mutant::kNodesForgotten) result.node = 0;
      if (!table.add(result)) return outcome;
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
    wrong += both.fleet.wrong;
    unfinished += !both.fleet.finished;
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

// Two equal contenders, of which each node favours one. The guarantee is of the nodes that ran. What is said of all that
// there could be is wrong more often the fewer ran: a race may be decided before any node ran twice. Those two bars are
// from what was seen.
void few(const Options& options, Report& report) {
  struct Row {
    size_t nodes;
    bool these;
    double rate;
  };
  for (const auto& [nodes, these, rate] : {Row{2, true, 0.01}, Row{8, true, 0.01}, Row{4, false, 0.15},
                                           Row{8, false, 0.08}, Row{64, false, 0.01}}) {
    const int races = tier(options, 300, 2000);
    const Fleet fleet{.nodes = nodes, .own = 0.03 / std::sqrt(2.0), .wave = 8, .most = 96, .these = these};
    const auto all = for_each_seed(races, [&, n = nodes](int i) {
      return race(fleet, {0, 0}, options.seed * 32452843 + n * 1000003 + static_cast<uint64_t>(i),
                  options.mutant);
    });
    const auto wrong =
        static_cast<int>(std::ranges::count_if(all, [](const Outcome& one) { return one.wrong; }));
    report.add(at_most("L2",
                       fmt::format("{} nodes that differ by 3% (sd), of {}: wrong", nodes,
                                   these ? "their mean" : "all nodes' mean, equal"),
                       wrong, races, rate));
  }
}

// A difference that all nodes share is found, though they differ; a small one takes more waves than one.
void found(const Options& options, Report& report) {
  const int races = tier(options, 100, 1000);
  const Fleet fleet{.nodes = 32, .own = 0.02 / std::sqrt(2.0), .wave = 16, .most = 400};
  for (const double gap : {0.08, 0.025}) {
    const std::vector<double> effects = {0, std::log1p(gap)};
    const auto all = for_each_seed(races, [&](int i) {
      return race(fleet, effects, options.seed * 49979687 + static_cast<uint64_t>(i), options.mutant);
    });
    int finished = 0, wrong = 0;
    for (const Outcome& one : all) finished += one.finished, wrong += one.wrong;
    report.add(at_least(
        "L3",
        fmt::format("{:g}% apart, 32 nodes that differ by 2% (sd): decided within 400 heats", 100 * gap),
        finished, races, 0.95));
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
