// T8, T9: many contenders, raced in heats, against running all of them equally often with the same guarantee
// (the same intervals, family and stopping rule). Cost = processes started, for any duration: the worst
// case for the race, as those it drops early are the slow ones. T8 with simulated noise, and with that of
// recorded blocks where there are some.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "prove/models.h"
#include "prove/parallel.h"
#include "prove/report.h"
#include "stats/racing.h"
#include "stats/trimmed.h"

namespace bakeoff::prove {
namespace {

using stats::testing::Machine;
using stats::testing::NoiseModel;

// The heat of some members, index = contender.
using Heats = std::function<stats::HeatResult(const std::vector<size_t>& members)>;

// Each member's log time is its effect and d / sqrt(2) of a recorded block drawn at random, with either sign:
// two of them differ by the gap and by noise with the spread of d.
Heats recorded_heats(const std::vector<Block>& recorded, std::vector<double> effects, uint64_t seed) {
  std::vector<double> noise;
  for (const Block& block : recorded) noise.push_back(log_ratio(block) / std::sqrt(2.0));
  return [noise, effects = std::move(effects),
          random = std::mt19937_64(seed)](const std::vector<size_t>& members) mutable {
    stats::HeatResult heat{std::vector<std::optional<double>>(effects.size())};
    std::uniform_int_distribution<size_t> any(0, noise.size() - 1);
    for (const size_t i : members) heat.log_ms[i] = effects[i] + (random() & 1 ? 1 : -1) * noise[any(random)];
    return heat;
  };
}

Heats simulated_heats(NoiseModel noise, std::vector<double> effects, uint64_t seed) {
  return [machine = Machine(std::move(noise), std::move(effects), seed)](
             const std::vector<size_t>& members) mutable { return machine.heat(members); };
}

stats::RacingOptions racing() {
  stats::RacingOptions options = {.confirm_heats = 0};
  options.ranking.alpha = kAlpha;
  options.ranking.margin = kMargin;
  options.ranking.ceiling = 0.1;
  return options;
}

struct Cost {
  double race = 0;
  double uniform = 0;
  bool wrong = false;
  bool winner = false;
  bool all_tied = false;
  bool finished = true;
};

// The best lost, or a verdict against the leader that the truth denies.
bool wrong(const stats::Race& race, const std::vector<double>& effects) {
  if (!race.leader) return true;
  const double best = *std::min_element(effects.begin(), effects.end());
  const double epsilon = std::log1p(kMargin);
  for (size_t i = 0; i < effects.size(); ++i) {
    const double gap = effects[i] - effects[*race.leader];
    const stats::Standing& standing = race.standings[i];
    if (standing.eliminated_by && effects[i] == best) return true;
    if (standing.verdict == stats::Verdict::kSame && std::abs(gap) > epsilon) return true;
    if (standing.verdict == stats::Verdict::kFaster && gap >= 0) return true;
    if (standing.verdict == stats::Verdict::kMateriallySlower && gap <= epsilon) return true;
    if (standing.verdict == stats::Verdict::kSlower && gap < 0) return true;
  }
  return false;
}

stats::Race race_to_the_end(const Heats& run, size_t k, const stats::RacingOptions& options, Cost& cost) {
  stats::PairTable table(k, std::log1p(kMargin), stats::Backup::kOnSigns);
  const std::vector<stats::ContenderState> states(k);
  const double most = 2000.0 * static_cast<double>(k);
  for (;;) {
    stats::Race state = race_state(table, options.ranking);
    const stats::Heat heat = next_heat(table, state, states, 0, options);
    if (heat.phase != stats::Phase::kRace) return state;
    cost.race += static_cast<double>(heat.members.size());
    if (cost.race > most || !table.add(run(heat.members))) {
      cost.finished = false;
      return state;
    }
  }
}

// Everybody in every heat: of 256 contenders 32,640 pairs a heat, too many to look for signs in each.
double uniform_cost(const Heats& run, size_t k, const stats::RankingOptions& options) {
  stats::PairTable table(k);
  std::vector<size_t> all(k);
  std::iota(all.begin(), all.end(), size_t{0});
  for (size_t heats = 1; heats < 2000; ++heats) {
    if (!table.add(run(all))) break;
    if (heats < 3) continue;
    if (race_state(table, options).still_undecided.empty()) return static_cast<double>(heats * k);
  }
  return 2000.0 * static_cast<double>(k);
}

// Ever denser towards the best: log 2 (i/(K-1))^2; one in six lies within the margin.
std::vector<double> crowded(size_t k) {
  std::vector<double> effects(k);
  for (size_t i = 0; i < k; ++i) {
    const double place = static_cast<double>(i) / static_cast<double>(k - 1);
    effects[i] = std::log(2.0) * place * place;
  }
  return effects;
}

struct Field {
  size_t k = 0;
  bool crowded = false;
  double ceiling = 0;  // 0: no promise is made
  double bar = 0;      // share of uniform; 0: none
  int n = 0;
  const std::vector<Block>* recorded = nullptr;  // null: simulated noise
};

Cost race_against_uniform(const Field& field, uint64_t seed) {
  stats::RacingOptions options = racing();
  options.ranking.ceiling = field.ceiling;
  const std::vector<double> effects = shuffled(field.crowded ? crowded(field.k) : wide(field.k), seed);
  Cost cost;
  const auto heats = [&](uint64_t its_seed) {
    return field.recorded ? recorded_heats(*field.recorded, effects, its_seed)
                          : simulated_heats(brisk(), effects, its_seed);
  };
  cost.wrong = wrong(race_to_the_end(heats(seed), field.k, options, cost), effects);
  cost.uniform = uniform_cost(heats(seed + 500000000), field.k, options.ranking);
  return cost;
}

double spread(const std::vector<Block>& recorded) {
  std::vector<double> d;
  for (const Block& block : recorded) d.push_back(log_ratio(block));
  return std::sqrt(stats::variance(d));
}

void t8_field(const Options& options, const Field& field, Report& report) {
  const auto costs = for_each_seed(field.n, [&](int i) {
    return race_against_uniform(field, options.seed * 104729 + field.k * 1009 + static_cast<uint64_t>(i));
  });
  double raced = 0, uniform = 0;
  int mistakes = 0, unfinished = 0;
  for (const Cost& cost : costs) {
    raced += cost.race;
    uniform += cost.uniform;
    mistakes += cost.wrong;
    unfinished += !cost.finished;
  }
  const std::string what = fmt::format(
      "K = {}, {}{}{}", field.k, field.crowded ? "crowded" : "wide gaps",
      field.recorded ? fmt::format(", recorded sd(d) {:.2f}%", 100 * spread(*field.recorded)) : "",
      field.ceiling > 0 ? "" : ", no ceiling");
  report.add({.id = "T8",
              .what = what + ": starts",
              .bar = field.bar > 0 ? fmt::format("<= {:g}% of uniform", 100 * field.bar) : "-",
              .seen = fmt::format("{:.1f}% ({:.0f} of {:.0f} a race)", 100 * raced / uniform, raced / field.n,
                                  uniform / field.n),
              .held = raced <= field.bar * uniform && unfinished == 0,
              .barred = field.bar > 0});
  report.add(at_most("T8", what + ": wrong", mistakes, field.n, 0.01));
}

// The bars are for machines on which 5% can be found (T5): sd(d) of at most 3%. A promise of three times
// sd(d).
void t8_recorded(const Options& options, Report& report) {
  if (options.recorded.size() < 2) return;
  const double sd = spread(options.recorded);
  const struct {
    size_t k;
    int quick, full;
    double wide, crowded;
  } kRows[] = {{16, 20, 200, 0.35, 0.40}, {64, 0, 20, 0.12, 0.30}};
  for (const auto& row : kRows) {
    const int n = tier(options, row.quick, row.full);
    if (n == 0) continue;
    t8_field(options, {row.k, false, 3 * sd, row.wide, n, &options.recorded}, report);
    t8_field(options, {row.k, true, 3 * sd, row.crowded, n, &options.recorded}, report);
  }
}

void t8(const Options& options, Report& report) {
  const struct {
    size_t k;
    int quick, full;
    double wide, crowded;
  } kRows[] = {{16, 200, 2000, 0.35, 0.40}, {64, 12, 500, 0.12, 0.30}, {256, 2, 100, 0.07, 0.25}};
  const double ceiling = racing().ranking.ceiling;
  for (const auto& row : kRows) {
    if (in_part(options) && row.k > 100) continue;
    const int n = tier(options, row.quick, row.full);
    t8_field(options, {row.k, false, ceiling, row.wide, n}, report);
    t8_field(options, {row.k, true, ceiling, row.crowded, n}, report);
    if (!options.full) continue;
    t8_field(options, {row.k, false, 0, 0, std::max(10, n / 10)}, report);
    t8_field(options, {row.k, true, 0, 0, std::max(10, n / 10)}, report);
  }
  t8_recorded(options, report);
}

void t9(const Options& options, Report& report) {
  const struct {
    size_t k;
    int quick, full;
  } kRows[] = {{4, 500, 4000}, {8, 300, 3000}, {16, 120, 1000}, {64, 0, 200}};
  for (const auto& row : kRows) {
    const int n = tier(options, row.quick, row.full);
    if (n == 0) continue;
    const auto costs = for_each_seed(n, [&](int i) {
      Cost cost;
      const Heats heats = simulated_heats(brisk(), std::vector<double>(row.k, 0.0),
                                          options.seed * 15485863 + row.k * 1009 + static_cast<uint64_t>(i));
      const stats::Race race = race_to_the_end(heats, row.k, racing(), cost);
      cost.winner = race.winner.has_value();
      cost.wrong = !race.eliminated.empty();
      cost.all_tied = std::all_of(race.standings.begin(), race.standings.end(),
                                  [](const stats::Standing& s) { return s.within_margin; });
      return cost;
    });
    int winners = 0, eliminated = 0, tied = 0;
    for (const Cost& cost : costs) {
      winners += cost.winner;
      eliminated += cost.wrong;
      tied += cost.all_tied;
    }
    const std::string what = fmt::format("K = {}, all tied: ", row.k);
    report.add(at_most("T9", what + "a single winner", winners, n, 0.01));
    report.add(at_least("T9", what + "all within the margin", tied, n, 0.97));
    report.add(at_most("T9", what + "somebody eliminated", eliminated, n, 0.01));
  }
}

// The promise behind the ceiling kept with room to spare, and just kept: A/A as wide as it was ever seen.
void t9_wide_noise(const Options& options, Report& report) {
  const int n = tier(options, 300, 3000);
  const auto lost = for_each_seed(n, [&](int i) {
    NoiseModel noise = {.process = 0.07, .rounds = 2, .steps = 2};
    Machine machine(noise, std::vector<double>(8, 0.0), options.seed * 32452843 + static_cast<uint64_t>(i));
    stats::PairTable table(8);
    const std::vector<stats::ContenderState> states(8);
    for (int heat = 0; heat < 40; ++heat) {
      const stats::Race state = race_state(table, racing().ranking);
      if (!state.eliminated.empty() || !table.add(machine.heat())) return 1;
    }
    return 0;
  });
  const int hits = static_cast<int>(std::count(lost.begin(), lost.end(), 1));
  Claim claim = at_most("T9", "K = 8, sd(d) 9.9%: somebody eliminated", hits, n, 0.01);
  report.add(claim);
}

}  // namespace

void prove_races(const Options& options, Report& report) {
  if (wanted(options, "T8")) t8(options, report);
  if (wanted(options, "T9")) {
    t9(options, report);
    t9_wide_noise(options, report);
  }
}

}  // namespace bakeoff::prove
