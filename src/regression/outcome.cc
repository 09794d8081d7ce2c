#include "regression/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace bakeoff::regression {
namespace {

using Json = nlohmann::ordered_json;

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json side_json(const SideInfo& side) { return {{"name", side.name}, {"detail", side.detail}}; }

std::string_view word(stats::NextStep::What end) {
  switch (end) {
    case stats::NextStep::What::kDecided:
      return "decided";
    case stats::NextStep::What::kTooNoisy:
      return "too noisy";
    case stats::NextStep::What::kNoTime:
      return "no time left";
    default:
      return "stopped";
  }
}

Json row_json(const Row& row, const Outcome& outcome) {
  Json json = {{"contender", row.contender},
               {"change", stats::name(row.change)},
               {"end", word(row.end)},
               {"ratio",
                {{"value", finite(row.ratio.value)},
                 {"low", finite(row.ratio.low)},
                 {"high", finite(row.ratio.high)}}},
               {outcome.metric ? "base" : "base_ms", row.base_ms},
               {outcome.metric ? "head" : "head_ms", row.head_ms},
               {"heats", row.heats},
               {"noise", row.noise},
               {"alpha", row.alpha},
               {"reachable_margin", finite(row.outlook.reachable_margin)},
               {"sentence", sentence(row, outcome)}};
  if (row.change == stats::Change::kUndecided) {
    json["what_decides"] = what_decides(row, outcome);
    json["budget_that_decides_s"] = row.outlook.decides_s ? Json(*row.outlook.decides_s) : Json();
  }
  return json;
}

// What a row's ratio says, and what lies beyond the margin: "more than 2% slower".
std::pair<std::string, std::string> words_of(const Row& row, const Outcome& outcome) {
  const std::string ratio = table::ratio(row.ratio.value);
  if (!outcome.metric) return {fmt::format("{} takes {} times as long as before", row.name, ratio), "slower"};
  return {fmt::format("{}: '{}' is {} times what it was", row.name, outcome.metric->pattern, ratio), "worse"};
}

// "10 min", "90 s".
std::string budget_words(double seconds) { return table::duration(1e3 * std::ceil(seconds)); }

}  // namespace

Verdict verdict(const Outcome& outcome) {
  const auto any = [&](stats::Change change) {
    return std::ranges::any_of(outcome.rows, [&](const Row& row) { return row.change == change; });
  };
  if (any(stats::Change::kRegression)) return Verdict::kRegression;
  return outcome.rows.empty() || any(stats::Change::kUndecided) ? Verdict::kUndecided : Verdict::kNone;
}

int exit_code(const Outcome& outcome) {
  if (outcome.interrupted) return 130;
  const Verdict found = verdict(outcome);
  return found == Verdict::kNone ? 0 : found == Verdict::kRegression ? 1 : 3;
}

std::string sentence(const Row& row, const Outcome& outcome) {
  const std::string margin = table::percent(outcome.settings.margin);
  const bool bounded = table::bounded_below(row.ratio) || table::bounded_above(row.ratio);
  const std::string interval = bounded ? table::interval(row.ratio, table::ratio)
                                       : fmt::format("in {}, too few for an interval",
                                                     table::counted(static_cast<int64_t>(row.heats), "heat"));
  if (row.heats == 0) return fmt::format("UNDECIDED: {} was not compared.", row.name);
  const auto [what, worse] = words_of(row, outcome);
  const std::string seen = fmt::format("{}, {}", what, interval);
  switch (row.change) {
    case stats::Change::kRegression:
      return fmt::format("REGRESSION: {}: more than {} {}.", seen, margin, worse);
    case stats::Change::kNone:
      return fmt::format("NO REGRESSION: {}: less than {} {}.", seen, margin, worse);
    default:
      return fmt::format("UNDECIDED: {}: whether it is more than {} {} is not decided.", seen, margin, worse);
  }
}

std::string shown(double ms, const Outcome& outcome) {
  return outcome.metric ? table::significant(ms, 4) : table::milliseconds(ms) + " ms";
}

std::string what_decides(const Row& row, const Outcome& outcome) {
  if (row.change != stats::Change::kUndecided) return "";
  const stats::GateOutlook& seen = row.outlook;
  const std::string reachable =
      seen.reachable_margin <= 1
          ? fmt::format("--margin {:.0f}%", std::max(1.0, std::ceil(100 * seen.reachable_margin)))
          : "";
  if (row.end == stats::NextStep::What::kTooNoisy || !std::isfinite(seen.reachable_margin)) {
    std::string text = fmt::format(
        "Identical versions differ by too much from heat to heat ({:.1f}%) for a margin of {} within {}.",
        100 * row.noise, table::percent(outcome.settings.margin), budget_words(outcome.settings.budget_s));
    if (!reachable.empty()) text += fmt::format(" Within this budget {} is reachable.", reachable);
    if (seen.decides_s)
      text += fmt::format(" A budget of about {} decides the ratio seen.", budget_words(*seen.decides_s));
    return text + " A quieter machine decides sooner: `bakeoff doctor` names what disturbs it.";
  }
  if (seen.decides_s)
    return fmt::format(
        "If the ratio is as seen, a budget of about {} decides it (--budget {:.0f}m); or another margin.",
        budget_words(*seen.decides_s), std::ceil(*seen.decides_s / 60));
  return fmt::format(
      "The ratio seen is so near to the margin of {} that no budget decides it soon: state a smaller or a larger margin.",
      table::percent(outcome.settings.margin));
}

std::string to_json(const Outcome& outcome) {
  static constexpr const char* kVerdicts[] = {"no regression", "regression", "undecided"};
  Json json = {
      {"format", "bakeoff gate 1"},      {"verdict", kVerdicts[static_cast<size_t>(verdict(outcome))]},
      {"exit_code", exit_code(outcome)}, {"target", outcome.target},
      {"base", side_json(outcome.base)}, {"head", side_json(outcome.head)},
      {"time_of", outcome.per},          {"margin", outcome.settings.margin},
      {"alpha", outcome.settings.alpha}, {"budget_s", outcome.settings.budget_s},
      {"seconds", outcome.seconds},      {"interrupted", outcome.interrupted},
      {"contenders", Json::array()},     {"notes", outcome.notes}};
  if (outcome.metric)
    json["metric"] = {{"pattern", outcome.metric->pattern},
                      {"better", outcome.metric->higher_is_better ? "higher" : "lower"}};
  for (const Row& row : outcome.rows) json["contenders"].push_back(row_json(row, outcome));
  return dump(json, 2) + "\n";
}

}  // namespace bakeoff::regression
