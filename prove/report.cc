#include "prove/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace bakeoff::prove {
namespace {

constexpr double kChance = 0.001;

}  // namespace

bool wanted(const Options& options, const std::string& id) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), id) != options.only.end();
}

void Report::add(Claim claim) {
  const char* word = claim.open ? "OPEN" : !claim.barred ? "-" : claim.held ? "ok" : "MISSED";
  fmt::print("{:<4} {:<44} {:<26} {:<40} {}\n", claim.id, claim.what, claim.bar, claim.seen, word);
  std::fflush(stdout);
  claims_.push_back(std::move(claim));
}

int Report::missed() const {
  return static_cast<int>(
      std::count_if(claims_.begin(), claims_.end(), [](const Claim& c) { return c.barred && !c.held; }));
}

int most_by_chance(int n, double rate) {
  using Up = boost::math::policies::policy<
      boost::math::policies::discrete_quantile<boost::math::policies::integer_round_up>>;
  const boost::math::binomial_distribution<double, Up> binomial(n, rate);
  return static_cast<int>(boost::math::quantile(boost::math::complement(binomial, kChance)));
}

int fewest_by_chance(int n, double rate) { return n - most_by_chance(n, 1 - rate); }

std::string share(int hits, int n) { return fmt::format("{:.2f}% ({} of {})", 100.0 * hits / n, hits, n); }

Claim at_most(const std::string& id, const std::string& what, int hits, int n, double rate) {
  return {.id = id,
          .what = what,
          .bar = fmt::format("<= {:g}% (+chance: {})", 100 * rate, most_by_chance(n, rate)),
          .seen = share(hits, n),
          .held = hits <= most_by_chance(n, rate)};
}

Claim at_least(const std::string& id, const std::string& what, int hits, int n, double rate) {
  return {.id = id,
          .what = what,
          .bar = fmt::format(">= {:g}% (-chance: {})", 100 * rate, fewest_by_chance(n, rate)),
          .seen = share(hits, n),
          .held = hits >= fewest_by_chance(n, rate)};
}

Claim figure_at_most(const std::string& id, const std::string& what, double figure, double error, double bar,
                     const std::string& unit) {
  return {.id = id,
          .what = what,
          .bar = fmt::format("<= {:.3g} {}", bar, unit),
          .seen = fmt::format("{:.3g} +- {:.2g} {}", figure, error, unit),
          .held = figure <= bar + 3 * error};
}

Status write_json(const Report& report, const Options& options) {
  if (options.json.empty()) return Done{};
  nlohmann::json root;
  root["seed"] = options.seed;
  root["tier"] = options.full ? "full" : "quick";
  for (const Claim& claim : report.claims()) {
    root["claims"].push_back({{"id", claim.id},
                              {"what", claim.what},
                              {"bar", claim.bar},
                              {"seen", claim.seen},
                              {"barred", claim.barred},
                              {"open", claim.open},
                              {"held", claim.held}});
  }
  for (const Contest& contest : report.contests) {
    for (const Score& score : contest.scores) {
      root["contests"].push_back({{"noise", contest.noise},
                                  {"rule", score.rule},
                                  {"traces", contest.traces},
                                  {"false_verdicts", score.false_verdicts},
                                  {"found_2", score.found_2},
                                  {"found_5", score.found_5}});
    }
  }
  std::ofstream out(options.json);
  out << root.dump(1) << '\n';
  out.close();
  if (!out) return Error{.message = "cannot be written", .where = options.json};
  return Done{};
}

}  // namespace bakeoff::prove
