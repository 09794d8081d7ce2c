// A user who is told "not decided yet" wants to know whether waiting helps. The answer is computed from the
// records alone, so that a report says next week what the progress line said during the race.
//
// It does not extrapolate the past speed of the race. It takes the next heat from the planner that the race
// itself would ask: who takes part and how many rounds a heat has change as contenders leave. stats/outlook.h
// then says how many such heats decide at the noise seen so far. Heats take longer by the calendar than the
// sum of their bursts; overhead() measures by how much. Where the rest is long, the gap is mostly too small
// for the noise, and a wider margin is the better advice: the first one that takes at most half an hour is
// offered.

#include "race/outlook.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <map>

#include "evidence/evidence.h"
#include "evidence/heats.h"
#include "race/heat_plan.h"
#include "stats/racing.h"
#include "stats/trimmed.h"

namespace bakeoff {
namespace {

std::optional<std::time_t> seconds_of(const std::string& utc) {
  std::tm parts{};
  if (strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr) return std::nullopt;
  return timegm(&parts);
}

// How many times as long a heat takes by the calendar as its starts and bursts together: the host is read, members
// end, bursts are audited. The median of the heats that another one followed; a resumed run has gaps.
double overhead(const std::vector<Trial>& trials) {
  constexpr double kUsual = 1.15, kMost = 3, kTelling = 3;  // kTelling: seconds; stamps have whole seconds
  struct Taken {
    std::time_t began = 0;
    double counted_s = 0;
  };
  std::map<int, Taken> heats;
  for (const Trial& trial : trials) {
    const auto began = seconds_of(trial.started);
    if (!began) continue;
    Taken& taken = heats.try_emplace(trial.heat, Taken{*began, 0}).first->second;
    taken.began = std::min(taken.began, *began);
    taken.counted_s += counted_seconds(trial);
  }
  std::vector<double> factors;
  for (const auto& [heat, taken] : heats) {
    const auto after = heats.find(heat + 1);
    if (after == heats.end() || taken.counted_s < kTelling) continue;
    factors.push_back(static_cast<double>(after->second.began - taken.began) / taken.counted_s);
  }
  return factors.empty() ? kUsual : std::clamp(stats::median(factors), 1.0, kMost);
}

// One group between two heats.
struct Look {
  const recipe::Recipe& recipe;
  const std::vector<Trial>& trials;
  const std::vector<std::string>& contenders;
  stats::PairTable table;
  stats::RacingOptions options;
  stats::Race race;
  std::vector<stats::ContenderState> states;

  std::vector<size_t> open() const {
    std::vector<size_t> rivals;
    for (const size_t i : race.still_undecided) {
      if (i != race.leader && !states[i].out) rivals.push_back(i);
    }
    return rivals;
  }

  // Rounds of the next heat, by the plan that the race makes.
  int64_t rounds() const {
    const stats::Heat next = next_heat(table, race, states, confirmed_heats(trials), options);
    size_t left = 0;
    for (size_t i = 0; i < states.size(); ++i) left += !states[i].out && !race.standings[i].eliminated_by;
    const double alpha = options.ranking.alpha / static_cast<double>(stats::comparisons(left));
    return with_stated(plan_heat(recipe, trials, contenders, race, next, alpha), recipe.race).rounds;
  }

  // Contenders that take part and were not compared yet.
  std::vector<std::string> waiting() const {
    std::vector<std::string> ids;
    for (size_t i = 0; i < states.size(); ++i) {
      if (!states[i].out && i != race.leader && !race.standings[i].effect) ids.push_back(contenders[i]);
    }
    return ids;
  }

  double heat_s(size_t i, int64_t rounds) const {
    const auto cost = heat_cost(trials, {contenders[i]});
    return cost ? cost->start_s + static_cast<double>(rounds) * cost->round_s : 0;
  }
};

Rival rival_of(const Look& look, size_t i, size_t previous) {
  const stats::Standing& standing = look.race.standings[i];
  const double epsilon = std::log1p(look.recipe.margin), gap = std::abs(standing.gap);
  const bool as_same = epsilon - gap > gap;
  return {.contender = look.contenders[i],
          .heats = standing.pairs,
          .ratio = with_known_ends({std::exp(standing.pairs > 0 ? standing.gap : standing.effect.value_or(0)),
                                    std::exp(standing.interval.low), std::exp(standing.interval.high)}),
          .slower = stats::slower_by_now(look.table, i, *look.race.leader),
          .slower_than_previous = stats::slower_by_now(look.table, i, previous),
          .deciding = std::expm1(as_same ? epsilon - gap : gap),
          .as_same = as_same};
}

void add_rest(const Look& look, Outlook& found) {
  constexpr double kShort = 1800;
  const int64_t rounds = look.rounds();
  const double more = overhead(look.trials);
  std::vector<stats::OpenPair> pairs;
  for (const size_t i : look.open()) {
    const auto past = past_heats(look.trials, look.contenders[i], look.contenders[*look.race.leader]);
    pairs.push_back(stats::open_pair(look.table, look.race, look.options.ranking, i, past, rounds,
                                     more * look.heat_s(i, rounds)));
  }
  const double leader_s = more * look.heat_s(*look.race.leader, rounds);
  found.rest = stats::rest_of_race(pairs, leader_s, look.options.live, look.recipe.margin);
  if (found.rest->seconds < kLongRest) return;
  for (const double factor : {1.5, 2.0, 3.0, 5.0, 10.0}) {
    const double margin = factor * std::max(look.recipe.margin, 0.01);
    const stats::Rest rest = stats::rest_of_race(pairs, leader_s, look.options.live, margin);
    if (rest.more || rest.seconds > kShort) continue;
    found.wider_margin = margin;
    found.rest_of_wider = rest;
    return;
  }
}

std::string heats_in_words(const stats::Rest& rest) {
  const std::string heats = table::count(rest.heats);
  return fmt::format("({} {})", heats, heats == "1" ? "heat" : "heats");
}

}  // namespace

std::optional<Outlook> outlook(const recipe::Recipe& recipe, const std::vector<Trial>& trials,
                               const std::vector<std::string>& contenders, double alpha) {
  auto table = tabulate(trials, contenders, recipe.margin);
  if (!table) return std::nullopt;
  Look look = {.recipe = recipe,
               .trials = trials,
               .contenders = contenders,
               .table = std::move(*table),
               .options = racing_options(recipe, trials, contenders),
               .race = {},
               .states = contender_states(trials, {}, contenders, recipe.margin)};
  look.options.ranking.alpha = alpha;
  look.options.ranking.about =
      stats::About::kTheseNodes;  // further heats decide about these; about others only further nodes do
  look.race = stats::race_state(look.table, look.options.ranking);
  const std::vector<size_t> open = look.open();
  if (!look.race.leader || open.empty()) return std::nullopt;
  Outlook found = {.leader = contenders[*look.race.leader]};
  size_t previous = *look.race.leader;
  for (const size_t i : open) {
    found.rivals.push_back(rival_of(look, i, previous));
    previous = i;
  }
  found.waiting = look.waiting();
  const auto twice = [](const Rival& rival) { return rival.heats >= 2; };
  const auto met = [](const Rival& rival) { return rival.heats >= 1; };
  if (std::all_of(found.rivals.begin(), found.rivals.end(), met) &&
      std::any_of(found.rivals.begin(), found.rivals.end(), twice))
    add_rest(look, found);
  return found;
}

Estimate with_known_ends(const Estimate& ratio) {
  return {ratio.value, table::bounded_below(ratio, kFarEnd) ? ratio.low : 0,
          table::bounded_above(ratio, kFarEnd) ? ratio.high : std::numeric_limits<double>::infinity()};
}

std::string in_words(const stats::Rest& rest) {
  const char* about = rest.more ? "more than" : "about";
  const auto words = [&](double amount, const std::string& unit) {
    const double whole = std::max(1.0, std::round(amount));
    return fmt::format("{} {:.0f} {}{}{} {}", about, whole, rest.more || unit == "hour" ? "" : "more ", unit,
                       whole == 1 ? "" : "s", heats_in_words(rest));
  };
  if (rest.seconds < 90) return words(std::ceil(rest.seconds / 10) * 10, "second");
  return rest.seconds < kLongRest ? words(rest.seconds / 60, "minute") : words(rest.seconds / 3600, "hour");
}

std::string rest_in_words(const Outlook& outlook) {
  if (!outlook.rest) return "How long it takes to decide is known after two heats.";
  const stats::Rest& rest = *outlook.rest;
  std::string text = in_words(rest);
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (rest.seconds < kLongRest) {
    const std::vector<std::string>& wait = outlook.waiting;
    const std::string once = wait.empty()       ? ""
                             : wait.size() == 1 ? ", once " + wait.front() + " has run"
                                                : ", once the others have run";
    return text + " decide it" + once + ".";
  }
  text += " would decide it: the gaps are too small for the noise. Accept a tie, or state a larger margin";
  if (!outlook.wider_margin) return text + ".";
  return text +
         fmt::format(": {:.2g}% takes {}.", 100 * *outlook.wider_margin, in_words(outlook.rest_of_wider));
}

std::string sure_in_words(const std::optional<double>& sure) {
  if (!sure) return "not yet";
  if (*sure > 0.999 || *sure < 0.001) return *sure > 0.5 ? ">99.9%" : "<0.1%";
  return *sure > 0.99 ? fmt::format("{:.1f}%", std::floor(1000 * *sure) / 10)
                      : fmt::format("{:.0f}%", std::floor(100 * *sure));
}

}  // namespace bakeoff
