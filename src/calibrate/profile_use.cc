#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/profile.h"
#include "evidence/evidence.h"
#include "race/heat_plan.h"
#include "records/controls.h"
#include "stats/burst_plan.h"
#include "stats/distributions.h"
#include "stats/planning.h"
#include "stats/ranking.h"
#include "table/numbers.h"
#include "worker/grants.h"

namespace bakeoff {
namespace {

// Duration of all bursts of a contender in a heat with the pauses before them, in seconds. What the recipe
// leaves to planning is as it usually is.
double block_seconds(const recipe::Race& race) {
  const int64_t bursts = race.bursts > 0 ? race.bursts : stats::kUsualRounds;
  const double burst_s = race.burst_seconds > 0 ? race.burst_seconds : kUsualBurst;
  return static_cast<double>(bursts) * (burst_s + race.cooldown_seconds);
}

// A ceiling promised from A/A blocks: a multiple of the upper end of their spread, but never less.
constexpr double kCeilingFactor = 2, kLeastCeiling = 0.02;

// The most informative measurement for a race under `wanted`: the same controls, else the same allocator
// and threads, else the same threads; of equal ones that with most blocks.
const Measured* nearest_measurement(const Profile& profile, const Controls& wanted) {
  const Measured* best = nullptr;
  int best_score = 0;
  for (const Measured& m : profile.entries) {
    if (m.d.size() < 3 || m.controls.threads != wanted.threads) continue;
    const int score = m.controls == wanted ? 3 : m.controls.allocator == wanted.allocator ? 2 : 1;
    if (score > best_score || (score == best_score && m.d.size() > best->d.size())) {
      best = &m;
      best_score = score;
    }
  }
  return best;
}

std::string percent(double fraction) { return fmt::format("{:.2g}%", 100 * fraction); }

std::string in_words(const Prediction& p, const recipe::Recipe& recipe) {
  const size_t k = recipe.contenders.size();
  std::string text = fmt::format(
      "By this machine's profile ({}) identical contenders differ by {} (sd) in a heat: a gap of {:g}% takes "
      "about {}, {:.1f} minutes for {} contenders.",
      p.under, percent(p.sd), 100 * recipe.margin, table::counted(p.heats_needed, "heat"), p.minutes_needed,
      k);
  if (p.enough())
    return text + fmt::format(" The budget allows about {}.", table::counted(p.heats_held, "heat"));
  text += fmt::format(" The budget allows only about {}, which is not expected to decide that: ",
                      table::counted(p.heats_held, "heat"));
  if (p.minutes_needed > recipe.budget.minutes)
    text += fmt::format("allow {:.0f} minutes", std::ceil(p.minutes_needed));
  if (recipe.budget.heats < p.heats_needed) {
    text += fmt::format("{} budget.heats = {}", text.ends_with(": ") ? "set" : " and", p.heats_needed);
  }
  if (p.margin_held > 0) text += fmt::format(", or ask for a margin of {}", percent(p.margin_held));
  return text + ".";
}

}  // namespace

Texts take_over(const Profile& profile, recipe::Recipe& recipe) {
  recipe::Race& race = recipe.race;
  Texts taken;
  const auto take = [&](const char* key, const std::string& value, auto set) {
    if (race.stated.contains(key)) return;
    set();
    taken[key] = value;
  };
  const Controls& kept = profile.kept;
  const Controls none;
  if (recipe.training.track == ir::Track::kEqualised) {
    if (kept.allocator != none.allocator)
      take("allocator", kept.allocator, [&] { race.allocator = kept.allocator; });
    if (kept.huge_pages != none.huge_pages)
      take("huge_pages", kept.huge_pages, [&] { race.huge_pages = kept.huge_pages; });
    if (!kept.randomise_addresses)
      take("randomise_addresses", "false", [&] { race.randomise_addresses = false; });
    if (kept.cooldown_s > 0)
      take("cooldown_seconds", fmt::format("{:g}", kept.cooldown_s),
           [&] { race.cooldown_seconds = kept.cooldown_s; });
    if (kept.pin != none.pin) take("pin", kept.pin, [&] { race.pin = kept.pin; });
  }
  return taken;
}

std::optional<double> promised_ceiling(const Profile& profile, const recipe::Recipe& recipe, size_t allowed) {
  const Controls wanted = control_set(recipe, {}, allowed);
  const Measured* found = nearest_measurement(profile, wanted);
  if (found == nullptr || found->controls != wanted || profile.framework == "kernel") return std::nullopt;
  return std::max(kLeastCeiling, kCeilingFactor * found->spread().interval.high);
}

std::optional<Prediction> predict(const Profile& profile, const recipe::Recipe& recipe, size_t allowed) {
  const size_t k = recipe.contenders.size();
  const Measured* found = nearest_measurement(profile, control_set(recipe, {}, allowed));
  if (found == nullptr || k < 2) return std::nullopt;
  Prediction p{.sd = found->spread().sd, .under = found->name};
  const double alpha = recipe.alpha / static_cast<double>(stats::comparisons(k));
  p.heats_needed = stats::pairs_needed(p.sd, recipe.margin, alpha).value_or(0);
  p.least_heats = least_heats(recipe.alpha, k);
  // A round: every contender meets the leader once, in as many heats as the live ones allow.
  const double members = static_cast<double>(std::min(k, static_cast<size_t>(recipe.race.live)));
  const double heats_a_round = std::ceil((static_cast<double>(k) - 1) / (members - 1));
  const double heat_s = members * (profile.start_s + block_seconds(recipe.race));
  const double round_min = heats_a_round * heat_s / 60;
  p.minutes_needed = static_cast<double>(p.heats_needed) * round_min;
  const double in_time = round_min > 0 ? recipe.budget.minutes / round_min : recipe::Budget::kNoLimit;
  p.heats_held =
      static_cast<int64_t>(std::min(in_time, static_cast<double>(recipe.budget.heats) / heats_a_round));
  if (p.heats_held > 5) {
    const double z = stats::normal_quantile(1 - alpha / 2) + stats::normal_quantile(0.95);
    p.margin_held = z * p.sd / std::sqrt(static_cast<double>(p.heats_held - 5));
  }
  p.text = in_words(p, recipe);
  return p;
}

Status check_prediction(const Prediction& p, const recipe::Recipe& recipe) {
  if (p.heats_held >= p.least_heats) return Done{};
  const double minutes = p.minutes_needed / static_cast<double>(std::max<int64_t>(p.heats_needed, 1)) *
                         static_cast<double>(p.least_heats);
  return Error{
      .message = fmt::format("a budget of {} cannot decide: by this machine's profile it allows about {} "
                             "of {} contenders, and fewer than {} decide nothing",
                             table::duration(60e3 * recipe.budget.minutes),
                             table::counted(p.heats_held, "heat"), recipe.contenders.size(), p.least_heats),
      .where = recipe::where(recipe, "budget", "minutes"),
      .remedy = fmt::format("allow more than {:.1f} minutes ({:.1f} for a gap of {:g}%), race fewer "
                            "contenders, or try it anyway: --profile none",
                            minutes, p.minutes_needed, 100 * recipe.margin)};
}

}  // namespace bakeoff
