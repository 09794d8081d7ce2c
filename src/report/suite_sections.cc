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
  if (cell.standing == Standing::kNotRanked) return Cell{"✗", "", Ink::kBad, one_line(cell.reason)};
  return std::nullopt;
}

Cell ratio_in_row(const TableCell& cell) {
  if (auto none = without_time(cell)) return *none;
  if (cell.standing == Standing::kBound)
    return {"≥ " + ratio(cell.ratio.low), "", Ink::kWarn, "it looked hopeless and was not timed"};
  const bool leads = cell.ratio == Estimate{1, 1, 1};
  return {marked(ratio(cell.ratio.value), cell.surely_fastest, cell.may_be_fastest),
          leads ? "" : interval(cell.ratio, ratio), cell.may_be_fastest ? Ink::kGood : Ink::kPlain,
          fmt::format("{} ms a step, {} samples/s", milliseconds(cell.ms), count(cell.samples_per_second))};
}

Cell speed_in_row(const TableCell& cell) {
  if (auto none = without_time(cell)) return *none;
  if (cell.verdict == "baseline") return {"1.000", "", Ink::kDim, "the baseline"};
  if (!cell.against) return {kNone, "", Ink::kDim, "the baseline has no time in this row"};
  Cell out = speed_cell(cell.against, cell.speed, cell.verdict);
  out.hint = cell.verdict;
  return out;
}

Cell mean_cell(const Mean& mean) {
  if (!mean.compared) return {kNone, "", Ink::kDim, one_line(mean.why_not)};
  return {
      marked(ratio(mean.ratio.value), mean.surely_best, mean.may_be_best), interval(mean.ratio, ratio),
      mean.may_be_best ? Ink::kGood : Ink::kBold,
      fmt::format("{} times the least mean {}", ratio(mean.to_best.value), interval(mean.to_best, ratio))};
}

Cell mean_speed_cell(const Mean& mean) {
  if (!mean.compared || !mean.speed)
    return {kNone, "", Ink::kDim, mean.compared ? "the baseline has no mean" : one_line(mean.why_not)};
  if (mean.verdict == "baseline") return {"1.000", "", Ink::kDim, "the baseline"};
  return speed_cell(PairRatio{}, *mean.speed, mean.verdict);
}

// Who is fastest in a row, in words.
std::string fastest_in(const TableRow& row) {
  std::vector<std::string> names;
  for (const std::string& name : row.best) names.push_back(one_line(name));
  return names.empty() ? kNone : join(names, " or ");
}

std::string least_ms(const TableRow& row) {
  double least = 0;
  for (const TableCell& cell : row.cells) {
    if (cell.standing == Standing::kTimed && cell.ms > 0 && (least == 0 || cell.ms < least)) least = cell.ms;
  }
  return least > 0 ? milliseconds(least) : kNone;
}

std::string note_on(const TableRow& row) {
  if (!row.failure.empty()) return one_line(row.failure);
  std::string note;
  if (!row.refusal.empty()) note = fmt::format("no verdict: {}", one_line(row.refusal));
  if (!row.note.empty()) note += (note.empty() ? "" : "; ") + one_line(row.note);
  return note;
}

std::string best_mean(const suite::Table& t) {
  std::vector<std::string> names;
  for (size_t i = 0; i < t.means.size(); ++i) {
    if (t.means[i].compared && t.means[i].may_be_best) names.push_back(one_line(t.contenders[i]));
  }
  return names.empty() ? kNone : join(names, " or ");
}

template <typename InRow, typename OfMean>
Section grid_of(const suite::Table& t, bool best, const InRow& in_row, const OfMean& of_mean) {
  Section section;
  FilledColumn names{{.title = "recipe", .left = true, .name = true}, {}};
  FilledColumn fastest{{.title = "fastest", .meaning = "Who may be the fastest of the row.", .left = true},
                       {}};
  FilledColumn least{
      {.title = "best ms/step", .meaning = "The least step time of the row, as measured.", .priority = 1},
      {}};
  for (const TableRow& row : t.rows) {
    least.cells.push_back({least_ms(row)});
    names.cells.push_back({one_line(row.name)});
    fastest.cells.push_back({fastest_in(row), "", row.sure ? Ink::kGood : Ink::kPlain});
    section.row_names.push_back(one_line(row.name));
    section.notes.push_back(note_on(row));
  }
  const bool means = !t.mean_rows.empty();
  if (means) {
    names.cells.push_back({kMeanRow, "", Ink::kBold});
    fastest.cells.push_back({best_mean(t), "", Ink::kBold});
    least.cells.push_back({});
    section.row_names.emplace_back(kMeanRow);
    section.notes.emplace_back();
  }
  section.columns.push_back(std::move(names));
  if (best) section.columns.push_back(std::move(fastest));
  if (best) section.columns.push_back(std::move(least));
  for (size_t i = 0; i < t.contenders.size(); ++i) {
    FilledColumn column{{.title = one_line(t.contenders[i])}, {}};
    for (const TableRow& row : t.rows) column.cells.push_back(in_row(row.cells[i]));
    if (means) column.cells.push_back(of_mean(t.means[i]));
    section.columns.push_back(std::move(column));
  }
  return section;
}

Section baseline_table(const suite::Table& t) {
  Section section = grid_of(t, false, speed_in_row, mean_speed_cell);
  section.key = "baseline";
  section.label = "Baseline";
  section.title = fmt::format("How many times as fast as {}", one_line(t.baseline));
  section.legend =
      "The baseline's step time over the contender's; the intervals of all pairs of a race hold together. "
      "The geometric mean is over the same rows as above.";
  std::fill(section.notes.begin(), section.notes.end(), "");
  Picture picture{.x_title = fmt::format("times as fast as {}, geometric mean", one_line(t.baseline))};
  for (size_t i = 0; i < t.means.size(); ++i) {
    const Mean& mean = t.means[i];
    if (!mean.speed || mean.verdict == "baseline") continue;
    const Cell cell = mean_speed_cell(mean);
    picture.bars.push_back(
        {.name = one_line(t.contenders[i]),
         .factor = *mean.speed,
         .label = cell.text + "  " + cell.range,
         .hint = fmt::format("{}: {} {}, {}", one_line(t.contenders[i]), cell.text, cell.range, mean.verdict),
         .sure = mean.verdict == "faster" || mean.verdict == "slower"});
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
      without.push_back(fmt::format("{} ({})", one_line(t.contenders[i]), one_line(t.means[i].why_not)));
  }
  for (size_t r = 0; r < t.rows.size(); ++r) {
    if (std::find(t.mean_rows.begin(), t.mean_rows.end(), r) == t.mean_rows.end())
      other_rows.push_back(one_line(t.rows[r].name));
  }
  std::string text = fmt::format(
      " Geometric mean: of the ratios of {} of {}, in which all {} compared contenders have a time. Its interval has "
      "the geometric means of the ends of those rows' intervals that hold for all pairs of a race together. So all means "
      "err with probability {} at most, the sum of those races' error rates.",
      t.mean_rows.size(), counted(static_cast<int64_t>(t.rows.size()), "row"), compared, percent(t.alpha));
  if (!other_rows.empty()) text += fmt::format(" Not in the mean: {}.", join(other_rows, ", "));
  if (!without.empty()) text += fmt::format(" Without a mean: {}.", join(without, ", "));
  return text;
}

}  // namespace

std::string suite_legend(const suite::Table& t) {
  return fmt::format(
             "Ratio: step time over the leader's of the row, with its interval. {} surely the fastest of its row, {} "
             "may be the fastest, ✗ not ranked, {} not in the recipe.",
             kSurely, kMayBe, kNone) +
         mean_in_words(t);
}

std::vector<Section> suite_sections(const suite::Table& t) {
  Section main = grid_of(t, true, ratio_in_row, mean_cell);
  main.key = "table";
  main.label = "Table";
  main.title = "Models by contenders";
  main.legend = suite_legend(t);
  std::vector<Section> all = {std::move(main)};
  if (!t.baseline.empty()) all.push_back(baseline_table(t));
  return all;
}

}  // namespace bakeoff::report
