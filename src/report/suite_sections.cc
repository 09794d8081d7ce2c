#include "report/suite_sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/texts.h"
#include "report/baseline_section.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

using suite::Mean;
using suite::Standing;
using suite::TableCell;
using suite::TableRow;

std::string marked(const std::string& number, bool sure, bool may_be) {
  return number + (sure ? std::string(" ") + kSurely : may_be ? std::string(" ") + kMayBe : "");
}

// What a cell says of a contender that has no time there.
std::optional<Cell> without_time(const TableCell& cell) {
  if (cell.standing == Standing::kAbsent) return Cell{kNone, "", Ink::kDim, "the recipe does not name it"};
  if (cell.standing == Standing::kWaits) return Cell{kNoHeat, "", Ink::kDim, one_line(cell.reason)};
  if (cell.standing == Standing::kNotRanked) return Cell{"✗", "", Ink::kBad, one_line(cell.reason)};
  return std::nullopt;
}

// Empty where neither end is known yet, and of the fastest, which is 1 by definition.
std::string known_interval(const Estimate& e) {
  if (e == Estimate{1, 1, 1}) return "";
  return bounded_below(e) || bounded_above(e) ? interval(e, ratio) : "";
}

Cell without_dash(Cell cell) {
  if (cell.range == kNone) cell.range.clear();
  return cell;
}

Cell ratio_in_row(const TableCell& cell) {
  if (auto none = without_time(cell)) return *none;
  if (cell.standing == Standing::kBound)
    return {"≥ " + ratio(cell.ratio.low), "", Ink::kWarn, "it looked hopeless and was not timed"};
  return {marked(ratio(cell.ratio.value), cell.surely_fastest, cell.may_be_fastest),
          known_interval(cell.ratio), cell.may_be_fastest ? Ink::kGood : Ink::kPlain,
          fmt::format("{} ms a step, {} samples/s", milliseconds(cell.ms), count(cell.samples_per_second))};
}

Cell speed_in_row(const TableCell& cell) {
  if (auto none = without_time(cell)) return *none;
  if (cell.verdict == PairVerdict::kBaseline) return {"1.000", "", Ink::kDim, "the baseline"};
  if (!cell.against) return {kNone, "", Ink::kDim, "the baseline has no time in this race"};
  Cell out = without_dash(speed_cell(cell.against, cell.speed, cell.verdict));
  out.hint = word(cell.verdict);
  return out;
}

Cell mean_cell(const Mean& mean) {
  if (!mean.compared) return {kNone, "", Ink::kDim, one_line(mean.why_not)};
  return {
      marked(ratio(mean.ratio.value), mean.surely_best, mean.may_be_best), known_interval(mean.ratio),
      mean.may_be_best ? Ink::kGood : Ink::kBold,
      fmt::format("{} times the least mean {}", ratio(mean.to_best.value), interval(mean.to_best, ratio))};
}

Cell mean_speed_cell(const Mean& mean) {
  if (!mean.compared || !mean.speed)
    return {kNone, "", Ink::kDim, mean.compared ? "the baseline has no mean" : one_line(mean.why_not)};
  if (mean.verdict == PairVerdict::kBaseline) return {"1.000", "", Ink::kDim, "the baseline"};
  return without_dash(speed_cell(PairRatio{}, *mean.speed, mean.verdict));
}

std::string least_ms(const TableRow& row) {
  double least = 0;
  for (const TableCell& cell : row.cells) {
    if (cell.standing == Standing::kTimed && cell.ms > 0 && (least == 0 || cell.ms < least)) least = cell.ms;
  }
  return least > 0 ? milliseconds(least) : kNone;
}

// What is to be said of one recipe's race, behind its name; empty: nothing.
std::string note_on(const TableRow& row) {
  if (!row.failure.empty()) return one_line(row.failure);
  std::string note;
  if (!row.refusal.empty()) note = fmt::format("no verdict: {}", one_line(row.refusal));
  for (const std::string& more : {row.note, row.rest}) {
    if (!more.empty()) note += (note.empty() ? "" : ". ") + one_line(more);
  }
  return note;
}

// A row for each contender, a column for each recipe, the mean last.
template <typename InRow, typename OfMean>
Section grid_of(const suite::Table& t, const InRow& in_row, const OfMean& of_mean) {
  Section section;
  FilledColumn names{{.title = "contender", .left = true, .name = true}, {}};
  for (size_t i = 0; i < t.contenders.size(); ++i) {
    names.cells.push_back({t.name_of(t.contenders[i]), "", Ink::kPlain, one_line(t.contenders[i])});
    section.row_names.push_back(t.name_of(t.contenders[i]));
  }
  section.columns.push_back(std::move(names));
  for (const TableRow& row : t.rows) {
    FilledColumn column{{.title = one_line(row.name)}, {}};
    for (const TableCell& cell : row.cells) column.cells.push_back(in_row(cell));
    section.columns.push_back(std::move(column));
  }
  if (!t.mean_rows.empty()) {
    FilledColumn column{{.title = kMeanColumn}, {}};
    for (const Mean& mean : t.means) column.cells.push_back(of_mean(mean));
    section.columns.push_back(std::move(column));
  }
  section.notes.resize(section.row_names.size());
  return section;
}

// The least step time of each recipe as a last row, which says what a ratio of 1 is.
void add_least(const suite::Table& t, Section& section) {
  section.row_names.emplace_back(kLeastRow);
  section.notes.emplace_back();
  for (size_t c = 0; c < section.columns.size(); ++c) {
    const bool recipe = c > 0 && c <= t.rows.size();
    section.columns[c].cells.push_back({c == 0   ? kLeastRow
                                        : recipe ? least_ms(t.rows[c - 1])
                                                 : "",
                                        "", Ink::kDim});
  }
}

Section baseline_table(const suite::Table& t) {
  Section section = grid_of(t, speed_in_row, mean_speed_cell);
  section.key = "baseline";
  section.label = "Baseline";
  section.title = fmt::format("How many times as fast as {}", t.name_of(t.baseline));
  section.legend =
      "The baseline's step time over the contender's; the intervals of all pairs of a race hold together. "
      "The geometric mean is over the same recipes as above.";
  Picture picture{.x_title = fmt::format("times as fast as {}, geometric mean", t.name_of(t.baseline))};
  for (size_t i = 0; i < t.means.size(); ++i) {
    const Mean& mean = t.means[i];
    if (!mean.speed || mean.verdict == PairVerdict::kBaseline) continue;
    const Cell cell = mean_speed_cell(mean);
    picture.bars.push_back({.name = t.name_of(t.contenders[i]),
                            .factor = *mean.speed,
                            .label = cell.text + (cell.range.empty() ? "" : "  " + cell.range),
                            .hint = fmt::format("{}: {} {}, {}", t.name_of(t.contenders[i]), cell.text,
                                                cell.range, word(mean.verdict)),
                            .sure = ordered(mean.verdict)});
  }
  section.pictures = {std::move(picture)};
  return section;
}

std::string mean_in_words(const suite::Table& t) {
  if (t.mean_rows.empty()) return " " + suite::why_no_means(t);
  size_t compared = 0;
  std::vector<std::string> without, other_rows;
  for (size_t i = 0; i < t.means.size(); ++i) {
    compared += t.means[i].compared;
    if (!t.means[i].compared)
      without.push_back(fmt::format("{} ({})", t.name_of(t.contenders[i]), one_line(t.means[i].why_not)));
  }
  for (size_t r = 0; r < t.rows.size(); ++r) {
    if (std::find(t.mean_rows.begin(), t.mean_rows.end(), r) == t.mean_rows.end())
      other_rows.push_back(one_line(t.rows[r].name));
  }
  std::string text = fmt::format(
      " Geometric mean: of the ratios of {} of {}, in which all {} compared contenders have a time. Its interval has "
      "the geometric means of the ends of those races' intervals that hold for all pairs of a race together. So all "
      "means err with probability {} at most, the sum of those races' error rates.",
      t.mean_rows.size(), counted(static_cast<int64_t>(t.rows.size()), "race"), compared, percent(t.alpha));
  if (!other_rows.empty()) text += fmt::format(" Not in the mean: {}.", join(other_rows, ", "));
  if (!without.empty()) text += fmt::format(" Without a mean: {}.", join(without, ", "));
  return text;
}

}  // namespace

std::string suite_legend(const suite::Table& t) {
  const auto any = [&](Standing standing) {
    return std::ranges::any_of(t.rows, [&](const TableRow& row) {
      return std::ranges::any_of(row.cells, [&](const TableCell& cell) { return cell.standing == standing; });
    });
  };
  std::string text = fmt::format(
      "Ratio: step time over that of the fastest of the column, with its interval. {} surely the fastest of its "
      "column, {} may be the fastest",
      kSurely, kMayBe);
  if (any(Standing::kNotRanked)) text += ", ✗ not ranked";
  if (any(Standing::kWaits)) text += fmt::format(", \"{}\": the race ended before its turn", kNoHeat);
  if (any(Standing::kAbsent)) text += fmt::format(", {} not in the recipe, or no race", kNone);
  return text + '.' + mean_in_words(t);
}

std::vector<Section> suite_sections(const suite::Table& t) {
  Section main = grid_of(t, ratio_in_row, mean_cell);
  add_least(t, main);
  main.key = "table";
  main.label = "Table";
  main.title = "Step times, over the fastest";
  main.legend = suite_legend(t);
  for (const TableRow& row : t.rows) {
    if (const std::string note = note_on(row); !note.empty())
      main.sentences.push_back(fmt::format("{}: {}", one_line(row.name), note));
  }
  std::vector<Section> all = {std::move(main)};
  if (!t.baseline.empty()) all.push_back(baseline_table(t));
  return all;
}

}  // namespace bakeoff::report
