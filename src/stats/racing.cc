#include "stats/racing.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bakeoff::stats {
namespace {

double cost(const ContenderState& state) {
  return state.heat_s.value_or(std::numeric_limits<double>::infinity());
}

// `heats`: of each contender, those of a wave that are planned already included.
void sort_by_turn(std::vector<size_t>& waiting, const std::vector<size_t>& heats,
                  const std::vector<ContenderState>& states) {
  std::stable_sort(waiting.begin(), waiting.end(), [&](size_t a, size_t b) {
    if (heats[a] != heats[b]) return heats[a] < heats[b];
    return cost(states[a]) < cost(states[b]);
  });
}

// The contenders that may still equal the leader, nearest first; if there are none, the nearest of all: its
// gap is then measured again too, and a single process could not separate its own drift from the machine's.
std::vector<size_t> at_the_top(const Race& race, const std::vector<ContenderState>& states) {
  std::vector<size_t> rivals;
  for (size_t i = 0; i < race.standings.size(); ++i) {
    if (i != race.leader && race.standings[i].effect && !states[i].out) rivals.push_back(i);
  }
  std::stable_sort(rivals.begin(), rivals.end(),
                   [&](size_t a, size_t b) { return *race.standings[a].effect < *race.standings[b].effect; });
  const auto eliminated = std::stable_partition(rivals.begin(), rivals.end(),
                                                [&](size_t i) { return !race.standings[i].eliminated_by; });
  rivals.erase(std::max(eliminated, std::min(rivals.begin() + 1, rivals.end())), rivals.end());
  return rivals;
}

void fill(const std::vector<size_t>& from, size_t live, std::vector<size_t>& members) {
  for (const size_t i : from) {
    if (members.size() < live) members.push_back(i);
  }
}

Heat confirmation(const Race& race, const std::vector<ContenderState>& states, size_t confirmed,
                  const RacingOptions& options, Heat heat) {
  if (!race.leader || states[*race.leader].out || confirmed >= options.confirm_heats) return heat;
  heat.members = {*race.leader};
  fill(at_the_top(race, states), options.live, heat.members);
  heat.phase = Phase::kConfirm;
  return heat;
}

}  // namespace

Heat next_heat(const PairTable& table, const Race& race, const std::vector<ContenderState>& states,
               size_t confirmed, const RacingOptions& options) {
  const std::vector<Heat> heats = next_wave(table, race, states, confirmed, options, 1);
  return heats.empty() ? Heat{} : heats.front();
}

std::vector<Heat> next_wave(const PairTable& table, const Race& race,
                            const std::vector<ContenderState>& states, size_t confirmed,
                            const RacingOptions& options, size_t most) {
  std::vector<size_t> unlinked, undecided, heats;
  for (size_t i = 0; i < table.contenders(); ++i) {
    heats.push_back(table.heats(i));
    if (!states[i].out && !race.standings[i].effect) unlinked.push_back(i);
  }
  for (const size_t i : race.still_undecided) {
    if (!states[i].out && i != race.leader) undecided.push_back(i);
  }
  std::optional<size_t> link;
  if (race.leader && !states[*race.leader].out) link = race.leader;
  std::vector<Heat> wave;
  while (wave.size() < most) {
    Heat heat{.phase = Phase::kRace, .members = {}};
    sort_by_turn(unlinked, heats, states);
    sort_by_turn(undecided, heats, states);
    if (link) heat.members.push_back(*link);
    fill(unlinked, options.live, heat.members);
    fill(undecided, options.live, heat.members);
    if (heat.members.size() < 2) break;
    if (!link) {
      link = heat.members.front();
      std::erase(unlinked, *link);
      std::erase(undecided, *link);
    }
    for (const size_t member : heat.members) ++heats[member];
    wave.push_back(std::move(heat));
  }
  const Heat confirms = confirmation(race, states, confirmed, options, {});
  if (wave.empty() && !confirms.members.empty())
    wave.assign(std::min(most, options.confirm_heats - confirmed), confirms);
  return wave;
}

size_t earliest_of(std::span<const int> node_of_heat) {
  const auto known = node_of_heat.first(node_of_heat.size() / 2);
  const bool joined = std::ranges::any_of(
      node_of_heat, [&](int node) { return std::ranges::find(known, node) == known.end(); });
  return joined ? 0 : node_of_heat.size() / 4;
}

void leave_to_these_nodes(Race& race, const Race& early) {
  std::erase_if(race.still_undecided, [&](size_t i) {
    const Standing& then = early.standings[i];
    return then.eliminated_by || (early.leader == race.leader && then.effect && i != race.leader &&
                                  then.verdict != Verdict::kUndecided);
  });
}

double gap_to_decide(const Race& race, const Heat& heat, double margin) {
  double widest = std::log1p(margin);
  for (const size_t member : heat.members) {
    const std::optional<double>& effect = race.standings[member].effect;
    if (effect) widest = std::max(widest, *effect);
    if (!effect && heat.members.size() > 2) widest = std::max(widest, kWideGap);
  }
  return widest;
}

bool looks_hopeless(double fastest_step_s, double leader_step_s) {
  constexpr double kCostly = 1;  // seconds: shorter steps cost little to time properly
  return leader_step_s > 0 && fastest_step_s >= kCostly &&
         fastest_step_s >= 2 * kBoundOfHopeless * leader_step_s;
}

}  // namespace bakeoff::stats
