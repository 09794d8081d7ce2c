// T15: many contenders, and any false statement at all: a verdict, an elimination, a separation, a rank
// range, a tie letter, a winner, at any look. Raced by the very functions that races use: who runs, how alpha
// is shared, when it is over.

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "prove/models.h"
#include "prove/parallel.h"
#include "prove/report.h"
#include "stats/racing.h"
#include "stats/trimmed.h"

namespace bakeoff::prove {
namespace {

using stats::testing::Machine;
using stats::testing::NoiseModel;

constexpr int kHeats = 60;  // at most

// sd(d) 1.4% in two bursts of two steps.
NoiseModel brisk(std::vector<double> scale = {}) {
  return {.process = 0.0092,
          .machine = 0.02,
          .machine_phi = 0.9,
          .step = 0.007,
          .scale = std::move(scale),
          .rounds = 2,
          .steps = 2};
}

struct Field {
  std::string name;
  std::vector<double> effects;  // log
  std::vector<double> scale = {};
  int quick = 0, full = 0;
};

bool shares_a_letter(const std::string& a, const std::string& b) {
  return a.find_first_of(b) != std::string::npos;
}

bool wrong_verdict(const stats::Standing& standing, double gap) {
  const double epsilon = std::log1p(kMargin);
  switch (standing.verdict) {
    case stats::Verdict::kFaster:
      return gap >= 0;
    case stats::Verdict::kSame:
      return std::abs(gap) > epsilon;
    case stats::Verdict::kSlower:
      return gap <= 0;
    case stats::Verdict::kMateriallySlower:
      return gap <= epsilon;
    case stats::Verdict::kUndecided:
      return false;
  }
  return false;
}

// Anything that the ranking says and the truth denies.
bool any_false(const stats::Ranking& ranking, const std::vector<double>& effects) {
  const stats::Race& race = ranking.race;
  if (!race.leader) return false;
  for (const size_t i : ranking.order) {
    const stats::Standing& standing = race.standings[i];
    const double gap = effects[i] - effects[*race.leader];
    if (i != *race.leader && wrong_verdict(standing, gap)) return true;
    if (standing.eliminated_by && effects[i] <= effects[*standing.eliminated_by]) return true;
    if (race.winner == i && std::any_of(ranking.order.begin(), ranking.order.end(),
                                        [&](size_t j) { return j != i && effects[j] <= effects[i]; }))
      return true;
    size_t best = 1, worst = 0;  // that the truth allows
    for (const size_t j : ranking.order) {
      best += effects[j] < effects[i];
      worst += effects[j] <= effects[i];
      if (effects[j] == effects[i] && !shares_a_letter(ranking.places[i].letters, ranking.places[j].letters))
        return true;
    }
    if (ranking.places[i].best > best || ranking.places[i].worst < worst) return true;
  }
  return false;
}

// Whether some pair of heats with everybody in them is called different by t with the variance of all
// contenders: what is left of the logs when heats and contenders are taken out.
bool pooled_is_wrong(const std::vector<std::vector<double>>& heats, size_t k) {
  const auto n = static_cast<double>(heats.size());
  const auto contenders = static_cast<double>(k);
  if (heats.size() < 2) return false;
  std::vector<double> means(k, 0.0);
  double whole = 0, of_heats = 0;
  for (const std::vector<double>& heat : heats) {
    const double heat_mean = stats::mean(heat);
    of_heats += heat_mean / n;
    for (size_t i = 0; i < k; ++i) means[i] += heat[i] / n;
  }
  for (const std::vector<double>& heat : heats) {
    const double heat_mean = stats::mean(heat);
    for (size_t i = 0; i < k; ++i) {
      const double rest = heat[i] - heat_mean - means[i] + of_heats;
      whole += rest * rest;
    }
  }
  const double degrees = (n - 1) * (contenders - 1);
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  // By Bonferroni over pairs and looks: careful in all but the variance.
  const double level = kAlpha / static_cast<double>(stats::comparisons(k)) / kHeats;
  const boost::math::students_t student(degrees);
  return *high - *low > boost::math::quantile(student, 1 - level / 2) * std::sqrt(2 * whole / degrees / n);
}

bool race_errs(const Field& field, uint64_t seed, Mutant mutant) {
  const size_t k = field.effects.size();
  Machine machine(brisk(field.scale), field.effects, seed);
  stats::RacingOptions options = {.confirm_heats = 0};
  options.ranking.alpha = kAlpha;
  options.ranking.margin = kMargin;
  if (mutant == Mutant::kUnshared)
    options.ranking.alpha = std::min(0.99, kAlpha * static_cast<double>(stats::comparisons(k)));
  stats::PairTable table(k, std::log1p(kMargin), stats::Backup::kOnSigns);
  const std::vector<stats::ContenderState> states(k);
  std::vector<std::vector<double>> complete;
  for (int heat = 0; heat < kHeats; ++heat) {
    if (mutant == Mutant::kPooledVariance) {
      std::vector<double>& row = complete.emplace_back();
      for (const auto& value : machine.heat().log_ms) row.push_back(*value);
      if (pooled_is_wrong(complete, k)) return true;
      continue;
    }
    const stats::Ranking ranking = stats::rank(table, options.ranking);
    if (any_false(ranking, field.effects)) return true;
    const stats::Heat next = next_heat(table, ranking.race, states, 0, options);
    if (next.phase != stats::Phase::kRace) return false;
    if (!table.add(machine.heat(next.members))) return true;
  }
  return false;
}

std::vector<double> tiers(size_t of, size_t each, double apart) {
  std::vector<double> effects;
  for (size_t tier = 0; tier < of; ++tier)
    effects.insert(effects.end(), each, static_cast<double>(tier) * std::log1p(apart));
  return effects;
}

std::vector<double> ladder(size_t k, double rung) {
  std::vector<double> effects;
  for (size_t i = 0; i < k; ++i) effects.push_back(static_cast<double>(i) * rung);
  return effects;
}

std::vector<Field> fields() {
  const double margin = std::log1p(kMargin);
  std::vector<double> six_and_three(6, 0.0), three_and_six = {0, 0.1, 0.2}, beyond(9, 1.0001 * margin);
  for (const double behind : {0.1, 0.2, 0.3}) six_and_three.push_back(behind);
  three_and_six.insert(three_and_six.end(), 6, 0.3);
  beyond[0] = 0;
  return {
      {"K = 3 identical", std::vector<double>(3, 0.0), {}, 2000, 20000},
      {"K = 6 identical", std::vector<double>(6, 0.0), {}, 1000, 10000},
      {"K = 9 identical", std::vector<double>(9, 0.0), {}, 600, 6000},
      {"K = 16 identical", std::vector<double>(16, 0.0), {}, 200, 2000},
      {"K = 9 identical, one three times as noisy",
       std::vector<double>(9, 0.0),
       {3, 1, 1, 1, 1, 1, 1, 1, 1},
       600,
       4000},
      {"6 identical, 3 behind them", six_and_three, {}, 600, 6000},
      {"3 apart, 6 identical behind them", three_and_six, {}, 600, 6000},
      {"3 tiers of 3 identical, 10% apart", tiers(3, 3, 0.1), {}, 600, 6000},
      {"4 tiers of 2 identical, 5% apart", tiers(4, 2, 0.05), {}, 600, 6000},
      {"8 behind the first by just more than the margin", beyond, {}, 600, 6000},
      {"K = 6, each 0.3% behind the one before", ladder(6, 0.003), {}, 600, 6000},
      {"K = 6, each just more than the margin behind", ladder(6, 1.0001 * margin), {}, 600, 6000},
  };
}

}  // namespace

void prove_families(const Options& options, Report& report) {
  if (!wanted(options, "T15")) return;
  for (const Field& field : fields()) {
    const bool identical =
        std::all_of(field.effects.begin(), field.effects.end(), [](double e) { return e == 0; });
    if (options.mutant == Mutant::kPooledVariance && !identical) continue;  // it knows nothing else
    const int n = tier(options, field.quick, field.full);
    const auto errors = for_each_seed(n, [&](int i) {
      return int{race_errs(field, options.seed * 198491317 + static_cast<uint64_t>(i), options.mutant)};
    });
    const int hits = static_cast<int>(std::count(errors.begin(), errors.end(), 1));
    report.add(at_most("T15", "any false statement, " + field.name, hits, n, kAlpha));
  }
}

}  // namespace bakeoff::prove
