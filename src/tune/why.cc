#include "tune/why.h"

#include <algorithm>

#include "summary/limits.h"

namespace bakeoff::tune {
namespace {

constexpr double kMostMinutes = 15;

// The contender of the recipe with this id.
const recipe::Contender* contender_with(const recipe::Recipe& recipe, const std::string& id) {
  const auto found = std::ranges::find(recipe.contenders, id, &recipe::Contender::id);
  return found == recipe.contenders.end() ? nullptr : &*found;
}

}  // namespace

Result<std::optional<Why>> why(const recipe::Recipe& recipe, const Summary& raced, const Machine& machine,
                               run::Races& races, const std::filesystem::path& folder) {
  // Among frameworks: what is as fast as the machine allows has no settings that another one could take over.
  const auto of_framework = [](const Row& row) { return !is_native(row.contender.framework); };
  const auto first_row = std::ranges::find_if(raced.ranked, of_framework);
  if (first_row == raced.ranked.end()) return std::optional<Why>();
  const Row& leader = *first_row;
  const bool leads = first_row == raced.ranked.begin();
  const auto next = std::find_if(first_row + 1, raced.ranked.end(), [&](const Row& row) {
    if (row.group != leader.group || row.at_least || !of_framework(row)) return false;
    return leads ? surely_slower(row.verdict) : leader.ratio.high < row.ratio.low;
  });
  if (next == raced.ranked.end()) return std::optional<Why>();
  const recipe::Contender* base = contender_with(recipe, next->contender.id);
  const recipe::Contender* fastest = contender_with(recipe, leader.contender.id);
  if (base == nullptr || fastest == nullptr || !base->script.empty()) return std::optional<Why>();
  const ir::Scenario scenario = recipe.training.scenario;
  recipe::Recipe one = recipe;
  one.contenders = {*fastest, *base};
  one.budget = {.minutes = std::min(recipe.budget.minutes, kMostMinutes)};
  const auto tried = changes(*base, scenario, machine);
  for (const Change& change : tried) one.contenders.push_back(with(*base, scenario, {change}));
  TRY(const Summary summary, races.race(one, folder));
  const Row *as_is = row_of(summary, base->id), *first = row_of(summary, fastest->id);
  if (!timed(as_is) || !timed(first)) return std::optional<Why>();
  Why found{.contender = base->id, .leader = fastest->id, .gap = as_is->ratio.value / first->ratio.value};
  for (size_t i = 0; i < tried.size(); ++i) {
    const Alone alone = alone_of(summary, *base, one.contenders[i + 2], tried[i]);
    found.parts.push_back({words(tried[i]), alone.gain.value_or(0), alone.verdict});
  }
  std::ranges::stable_sort(found.parts, std::greater<>{}, &Why::Part::gain);
  return std::optional(std::move(found));
}

}  // namespace bakeoff::tune
