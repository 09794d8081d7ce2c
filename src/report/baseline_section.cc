#include "report/baseline_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/texts.h"
#include "records/names.h"
#include "report/phrases.h"
#include "summary/baseline.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

using Against = AgainstBaseline;

std::vector<Quantity<Against>> baseline_quantities() {
  return {
      {{.key = "contender", .in_csv = false, .title = "contender", .left = true, .name = true},
       [](const Against& a) { return Json(a.contender); },
       [](const Against& a) { return Cell{one_line(a.contender)}; }},
      {{.key = "times_as_fast",
        .csv = {{"times_as_fast_as_baseline", "/value"},
                {"times_as_fast_low", "/low"},
                {"times_as_fast_high", "/high"}},
        .title = "as fast",
        .meaning = "How many times as fast as the baseline.",
        .range_title = "interval",
        .range_priority = 0},
       [](const Against& a) {
         return a.ratio || a.verdict == PairVerdict::kBaseline ? estimate(a.speed) : Json(nullptr);
       },
       [](const Against& a) {
         if (a.verdict == PairVerdict::kBaseline) return Cell{"1.000"};
         return speed_cell(a.ratio, a.speed, a.verdict);
       }},
      {{.key = "verdict",
        .csv = {{"against_baseline", ""}},
        .title = "verdict",
        .meaning = "What the interval says.",
        .left = true},
       [](const Against& a) { return Json(word(a.verdict)); },
       [](const Against& a) { return Cell{word(a.verdict)}; }},
      {{.key = "note", .in_csv = false}, [](const Against& a) { return text_or_null(a.note); }},
  };
}

// Of contenders without a ratio, as they are not ranked.
std::string left_out(const Summary& s) {
  std::vector<std::string> names;
  for (const Row& row : s.unranked) names.push_back(spoken(row.contender));
  if (names.empty()) return "";
  return fmt::format(" Not ranked, and so without a ratio: {}.", join(names, ", "));
}

std::string why_no_baseline(const Summary& s) {
  for (const Row& row : s.unranked) {
    if (row.contender.id == s.baseline)
      return fmt::format("The baseline {} is not ranked ({}), so there are no ratios to it.",
                         spoken(s.manifest.contenders, s.baseline), one_line(unranked_reason(row)));
  }
  return fmt::format("The baseline {} is not ranked, so there are no ratios to it.",
                     spoken(s.manifest.contenders, s.baseline));
}

// "JAX is 1.32x as fast as PyTorch [1.25, 1.40]."
std::string sentence_of(const Summary& s, const std::vector<Against>& all) {
  const auto best = std::max_element(all.begin(), all.end(), [](const Against& a, const Against& b) {
    return (a.verdict == PairVerdict::kFaster ? a.speed.value : 0) <
           (b.verdict == PairVerdict::kFaster ? b.speed.value : 0);
  });
  if (best == all.end() || best->verdict != PairVerdict::kFaster)
    return fmt::format("No contender is surely faster than {}.", spoken(s.manifest.contenders, s.baseline));
  const Cell cell = speed_cell(best->ratio, best->speed, best->verdict);
  return fmt::format("{} is {}x as fast as {} {}.", spoken(s.manifest.contenders, best->contender), cell.text,
                     spoken(s.manifest.contenders, s.baseline), cell.range);
}

void add_baseline_bars(const Summary& s, const std::vector<Against>& all, Section& section) {
  Picture picture{.x_title = fmt::format("times as fast as {}", spoken(s.manifest.contenders, s.baseline))};
  for (const Against& a : all) {
    if (!a.ratio || a.ratio->bound) continue;
    const Cell cell = speed_cell(a.ratio, a.speed, a.verdict);
    picture.bars.push_back(
        {.name = spoken(s.manifest.contenders, a.contender),
         .factor = a.speed,
         .label = cell.text + "  " + cell.range,
         .hint =
             fmt::format("{} {}x as fast as {} {}, {}", spoken(s.manifest.contenders, a.contender), cell.text,
                         spoken(s.manifest.contenders, s.baseline), cell.range, word(a.verdict)),
         .sure = ordered(a.verdict)});
  }
  section.pictures = {std::move(picture)};
}

}  // namespace

std::string together_statement(const Summary& s) {
  return fmt::format(
      "The intervals of all pairs hold together (error rate {}, margin {}); those of the ranking, which shares that rate "
      "among the contenders that are still in, can be narrower.",
      percent(s.alpha), percent(s.margin));
}

Cell speed_cell(const std::optional<PairRatio>& pair, const Estimate& speed, PairVerdict verdict) {
  if (!pair) return Cell{};
  const Ink ink = verdict == PairVerdict::kFaster   ? Ink::kGood
                  : verdict == PairVerdict::kSlower ? Ink::kWarn
                                                    : Ink::kPlain;
  if (pair->bound) {
    const bool least = speed.value > 1;
    return {(least ? "≥ " : "≤ ") + table::ratio(least ? speed.low : speed.high), "", ink};
  }
  return {table::ratio(speed.value), table::interval(speed, table::ratio), ink};
}

std::optional<Section> baseline_section(const Summary& s) {
  if (s.baseline.empty()) return std::nullopt;
  std::vector<Against> all = against_baseline(s);
  const bool ranked = !all.empty();
  if (!ranked) all = {{.contender = s.baseline, .verdict = PairVerdict::kNotRanked}};
  Section section{.key = "baseline",
                  .label = "Baseline",
                  .title = fmt::format("Against the baseline {}", spoken(s.manifest.contenders, s.baseline))};
  section.legend = fmt::format("As fast: the baseline's step time over the contender's. {}{}",
                               together_statement(s), left_out(s));
  section.sentences = {!ranked             ? why_no_baseline(s)
                       : s.refusal.empty() ? sentence_of(s, all)
                                           : fmt::format("No verdict: {}.", one_line(s.refusal))};
  section.columns = columns_of(baseline_quantities(), all);
  Json rows = Json::array();
  for (const Against& a : all) {
    section.row_names.push_back(one_line(a.contender));
    section.notes.push_back(one_line(a.note));
    rows.push_back(json_of(baseline_quantities(), a));
    add_fields(section, a.contender, fields_of(baseline_quantities(), &a));
  }
  section.json = {{"contender", s.baseline}, {"sentence", section.sentences.front()}, {"rows", rows}};
  add_baseline_bars(s, all, section);
  return section;
}

}  // namespace bakeoff::report
