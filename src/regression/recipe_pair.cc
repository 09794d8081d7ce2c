// Two versions of a contender must be in one heat, or the difference of two times is that of two states of
// the machine. But versions are two recipes with data, weights and environments of their own, and a heat
// takes one plan. So each side is planned and proven in its own folder, and then lanes of both are put into
// one plan, base and head of each contender next to each other; a lane brings its data and weights along.
//
// Both are proven against their own recipe's referee: a version that is faster because it computes something
// else is no improvement. Contenders of one side alone are left out with a note, and so are those that the
// budget left no time to prove.
//
// Heats with several contenders save starts but keep twice as many workers alive, so heat() splits them by
// the time that is left.

#include "regression/recipe_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evidence/heats.h"
#include "parity/gate.h"
#include "proc/interrupt.h"
#include "race/race.h"
#include "records/names.h"

namespace bakeoff::regression {
namespace {

constexpr size_t kContendersOfHeat = 4;     // at most, so twice as many workers live at once
constexpr double kSecondsOfContender = 30;  // of a heat that has several

// A plan whose contenders are proven as far as time allowed; those that may race, by id.
struct Proven {
  Plan plan;
  std::map<std::string, size_t> lanes = {};
  std::map<std::string, std::string> failures = {};
  bool tried(const std::string& id) const { return lanes.contains(id) || failures.contains(id); }
};

Result<Proven> proven(const RecipeSide& side, const std::filesystem::path& folder,
                      const std::filesystem::path& proofs, const Progress& progress, const Watch& watch,
                      double seconds) {
  const TimeBudget time(seconds);
  progress(fmt::format("preparing {}", side.what));
  auto plan = make_plan(side.recipe, folder, side.interpreters, progress);
  if (!plan)
    return Error{.message = fmt::format("{}: {}", side.what, plan.error().message),
                 .where = plan.error().where,
                 .remedy = plan.error().remedy};
  TRY(Gate gate, Gate::open(*plan, {}, proofs));
  const Watch told = with_names(plan->manifest.contenders, watch);
  const auto left = [&] { return time.left_s(); };
  CHECK_OK(gate.prove(told, side.recipe.contenders.size(), left));  // the shortest first
  CHECK_OK(gate.prove(told, Gate::kAll, left));
  if (proc::interrupted()) return Error{.message = "interrupted"};
  const std::vector<Parity>& parities = gate.parities();
  Proven all{.plan = *plan};
  for (const size_t lane : eligible(all.plan, parities))
    all.lanes[all.plan.manifest.contenders[lane].id] = lane;
  for (size_t i = 0; i < all.plan.lanes.size(); ++i)
    if (const auto& failure = all.plan.lanes[i].failure)
      all.failures[all.plan.manifest.contenders[i].id] = failure->text();
  for (const Parity& parity : parities)
    if (!all.lanes.contains(parity.contender) && !all.failures.contains(parity.contender))
      all.failures[parity.contender] =
          parity.failure ? parity.failure->text() : "it does not compute what the recipe says";
  return all;
}

// Contenders of one version alone are neither proven nor raced. Returns what to say of them.
std::vector<std::string> keep_common(RecipeSide& base, RecipeSide& head) {
  const auto has = [](const recipe::Recipe& recipe, const std::string& id) {
    return std::ranges::find(recipe.contenders, id, &recipe::Contender::id) != recipe.contenders.end();
  };
  std::vector<std::string> notes;
  const recipe::Recipe before = base.recipe;
  const auto keep = [&](RecipeSide& side, const recipe::Recipe& other) {
    std::erase_if(side.recipe.contenders, [&](const recipe::Contender& contender) {
      const bool alone = !has(other, contender.id);
      if (alone)
        notes.push_back(fmt::format("{} is in {} alone: not compared", spoken(contender), side.what));
      return alone;
    });
  };
  keep(base, head.recipe);
  keep(head, before);
  return notes;
}

Status may_race(const RecipeSide& side, const Proven& of, const recipe::Contender& contender) {
  if (of.lanes.contains(contender.id)) return Done{};
  const auto why = of.failures.find(contender.id);
  return Error{
      .message = fmt::format("{}: {} cannot race: {}", side.what, spoken(contender),
                             why == of.failures.end() ? "it was not proven" : why->second),
      .remedy =
          "both versions must run and compute what their recipe says: `bakeoff parity RECIPE` shows it"};
}

// The lane of one version in the plan of both.
void take_lane(const Proven& from, const std::string& id, const std::string& what, Plan& into) {
  const size_t at = from.lanes.at(id);
  Lane lane = from.plan.lanes[at];
  lane.entry.contender.id = fmt::format("{} {}", what, id);
  lane.entry.data = from.plan.gate.data;
  lane.entry.weights = initial_weights(from.plan);
  into.lanes.push_back(std::move(lane));
  into.manifest.contenders.push_back(from.plan.manifest.contenders[at]);
  into.manifest.contenders.back().id = into.lanes.back().entry.contender.id;
}

Status same_kind(const recipe::Recipe& base, const recipe::Recipe& head) {
  if (base.training.scenario == head.training.scenario && base.training.track == head.training.track)
    return Done{};
  return Error{
      .message =
          "one recipe trains or is equalised, and the other is not: their steps are not the same thing",
      .remedy = "compare recipes of one scenario and one track"};
}

std::string describe(const Trial& trial) {
  if (trial.failure) return trial.failure->text();
  return trial.invalid ? *trial.invalid : "it gave no times";
}

}  // namespace

Result<std::unique_ptr<RecipePair>> RecipePair::make(const RecipeSide& base, const RecipeSide& head,
                                                     const std::filesystem::path& folder,
                                                     const std::filesystem::path& proofs,
                                                     const Progress& progress, const Watch& watch,
                                                     const TimeBudget& time) {
  CHECK_OK(same_kind(base.recipe, head.recipe));
  RecipeSide old = base, fresh = head;
  std::vector<std::string> notes = keep_common(old, fresh);
  if (fresh.recipe.contenders.empty())
    return Error{.message = "the two recipes have no contender in common",
                 .remedy = "contenders are compared by their ids: `bakeoff recipe FILE` lists them"};
  // A third of the time for the proofs of each, and the rest for heats.
  TRY(const Proven before, proven(old, folder / "base", proofs, progress, watch, time.left_s() / 3));
  TRY(const Proven now, proven(fresh, folder / "head", proofs, progress, watch, time.left_s() / 2));
  Plan both = now.plan;
  both.lanes.clear();
  both.manifest.contenders.clear();
  auto pair = std::unique_ptr<RecipePair>(new RecipePair(std::move(both)));
  for (const recipe::Contender& contender : fresh.recipe.contenders) {
    if (!before.tried(contender.id) || !now.tried(contender.id)) {
      notes.push_back(
          fmt::format("the budget left no time to prove {}: it is not compared", spoken(contender)));
      continue;
    }
    CHECK_OK(may_race(old, before, contender));
    CHECK_OK(may_race(fresh, now, contender));
    take_lane(before, contender.id, old.what, pair->plan_);
    take_lane(now, contender.id, fresh.what, pair->plan_);
    pair->contenders_.push_back({.contender = contender.id, .name = spoken(contender)});
  }
  if (pair->contenders_.empty())
    return Error{.message = "the budget left no time to prove a contender in both versions",
                 .where = "--budget",
                 .remedy = "name a longer one: proofs count, and later gates reuse those that were made"};
  pair->notes_ = std::move(notes);
  pair->watch_ = with_names(now.plan.manifest.contenders, watch);
  return pair;
}

std::vector<Row> RecipePair::rows() const {
  std::vector<Row> all = contenders_;
  for (Row& row : all) row.file = file;
  return all;
}

double RecipePair::round_s(const std::vector<size_t>& open) const {
  return round_s_ * static_cast<double>(open.size());
}

Result<std::vector<PairHeats>> RecipePair::heat(const std::vector<size_t>& open, int64_t rounds,
                                                double left_s) {
  const TimeBudget time(left_s);
  const auto together = static_cast<size_t>(
      std::clamp(left_s / kSecondsOfContender, 1.0, static_cast<double>(kContendersOfHeat)));
  std::vector<PairHeats> all;
  for (size_t begin = 0; begin < open.size(); begin += together) {
    // As long as those before.
    if (begin > 0 &&
        time.left_s() < time.spent_s() * static_cast<double>(together) / static_cast<double>(begin))
      return std::vector<PairHeats>{};
    const size_t end = std::min(begin + together, open.size());
    TRY(std::vector<PairHeats> some,
        part({open.begin() + static_cast<long>(begin), open.begin() + static_cast<long>(end)}, rounds,
             time.left_s()));
    if (some.size() != end - begin) return std::vector<PairHeats>{};
    std::ranges::move(some, std::back_inserter(all));
  }
  return all;
}

Result<std::vector<PairHeats>> RecipePair::part(const std::vector<size_t>& open, int64_t rounds,
                                                double left_s) {
  std::vector<size_t> members;
  for (const size_t row : open) members.insert(members.end(), {2 * row, 2 * row + 1});
  HeatOrder order{.number = ++number_, .members = members, .plan = HeatPlan{.rounds = rounds}};
  if (members.size() == 2) order.left_s = left_s;  // of more it would leave some out
  const std::vector<Trial> trials = run_heat(plan_, order, {}, watch_, {.stage = "race"}).trials;
  std::vector<PairHeats> all;
  if (proc::interrupted()) return all;
  double awake_s = 0, bursts = 0;
  for (size_t k = 0; k < open.size(); ++k) {
    const Trial &base = trials[2 * k], &head = trials[2 * k + 1];
    const auto first = measure_heat(base), second = measure_heat(head);
    for (const Trial* trial : {&base, &head}) {
      if (!(trial == &base ? first : second))
        return Error{.message = fmt::format("{}: {}", trial->contender, describe(*trial)),
                     .remedy = "both versions must run; nothing is said about their times"};
      for (const Burst& burst : trial->bursts)
        awake_s += 1e-9 * static_cast<double>(burst.awake_ns), ++bursts;
    }
    if (!first->variance || !second->variance)
      return Error{
          .message = fmt::format("{}: a heat gave too few bursts to compare", contenders_[open[k]].name),
          .remedy = "state a larger race.bursts in the recipe"};
    PairHeats pair;
    pair.heats.push_back({.log_ms = {first->log_ms, second->log_ms},
                          .log_mean_ms = {first->log_mean_ms, second->log_mean_ms},
                          .variance = {first->variance_high(), second->variance_high()}});
    pair.past.push_back({.d = second->log_ms - first->log_ms,
                         .within = *first->variance + *second->variance,
                         .rounds = static_cast<int64_t>(std::min(first->bursts, second->bursts))});
    all.push_back(std::move(pair));
  }
  if (bursts > 0) round_s_ = std::max(0.05, 2 * awake_s / bursts);
  return all;
}

}  // namespace bakeoff::regression
