#pragma once

// The one table of a suite: models by contenders, and the geometric mean. A pure function of the summaries.
//
//   const Table table = table_of("quick", inputs, "torch");

#include <optional>
#include <string>
#include <vector>

#include "summary/summary.h"

namespace bakeoff::suite {

// One recipe of the suite, and what became of it.
struct Input {
  std::string name = {};
  std::string recipe = {};              // its file
  std::string folder = {};              // of its run
  std::string failure = {};             // why it was not raced, or not to its end; empty: it was
  std::optional<Summary> summary = {};  // absent: there is no record of a run
};

enum class Standing {
  kAbsent,     // the recipe does not name it
  kNotRanked,  // it failed, for `reason`
  kWaits,      // nothing is against it, but the race ended before its first heat
  kBound,      // it looked hopeless: its ratio is a lower bound
  kTimed,
};

struct TableCell {
  Standing standing = Standing::kAbsent;
  Estimate ratio = {};  // step time over that of the row's leader
  double ms = 0, samples_per_second = 0;
  bool may_be_fastest = false;  // the evidence allows the first place, and does not make it improbable
  bool surely_fastest = false;  // and no other
  std::string reason = {};
  std::optional<PairRatio> against = {};     // step time over the baseline's
  Estimate speed = {};                       // times as fast as the baseline, where `against` is there
  PairVerdict verdict = PairVerdict::kNone;  // against the baseline
  bool operator==(const TableCell&) const = default;
};

// A recipe, or one precision of it.
struct TableRow {
  std::string name = {};
  std::string recipe = {}, folder = {};
  std::string failure = {};  // why there are no cells
  std::string refusal = {};  // why there is no verdict: the host was busy
  std::string note = {};     // "the race was interrupted"
  std::string rest =
      {};  // what is left to decide, in a sentence: "About 6 more minutes (5 heats) decide it."
  bool decided = false;
  double alpha = 0;
  std::vector<TableCell> cells = {};   // parallel to Table::contenders
  std::vector<std::string> best = {};  // who may be fastest
  bool sure = false;                   // one of them surely is
  bool operator==(const TableRow&) const = default;
};

// Geometric mean over rows.
struct Mean {
  bool compared = false;
  Estimate ratio = {};    // of the ratios to the rows' leaders
  Estimate to_best = {};  // over that of the contender with the least mean
  bool may_be_best = false, surely_best = false;
  std::optional<Estimate> speed = {};        // times as fast as the baseline
  PairVerdict verdict = PairVerdict::kNone;  // of `speed`
  size_t rows = 0;                           // in which it has a time
  std::string why_not = {};                  // it has no mean
  bool operator==(const Mean&) const = default;
};

struct Table {
  std::string title = {};
  std::vector<std::string> contenders = {};  // ids, by the mean, then by the number of rows
  std::vector<std::string> names = {};  // what people call them (records/names.h); parallel to contenders
  std::vector<TableRow> rows = {};
  std::vector<size_t> mean_rows = {};  // rows that the means are over: all compared contenders have them
  std::vector<Mean> means = {};        // parallel to contenders
  double alpha = 0;   // chance that an interval of a mean errs: the sum of those rows' error rates
  double margin = 0;  // the largest of the rows'
  std::string baseline = {};
  bool interrupted = false;
  std::string name_of(const std::string& contender) const;  // the id itself where it is none of these
  bool operator==(const Table&) const = default;
};

// Which contenders have a mean, and over which rows: those that make contenders times rows the most, where all of
// them have a time in all of the rows. Rows whose verdict is refused are no such rows.
//
// The interval of a mean: on the log scale the means of the lower and of the upper ends of its rows' intervals, those
// that hold for all pairs of a race together (Summary::pairs). It errs only if one of them does: all means and all
// comparisons of means together with the sum of the races' error rates at most (Bonferroni).
Table table_of(const std::string& title, const std::vector<Input>& inputs, const std::string& baseline);

// "suite quick"; of recipes that the command line named: "suite of 3 recipes".
std::string called(const Table& table);

// Why there is no geometric mean, as a sentence: "No verdict in any row (busy host), so there is no geometric mean."
std::string why_no_means(const Table& table);

// The outcome in a sentence or two.
std::string headline(const Table& table);

}  // namespace bakeoff::suite
