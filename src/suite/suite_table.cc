// The interval of a geometric mean (mean_of): on the log scale the mean of the rows' lower ends and the
// mean of their upper ends. If all rows' intervals hold, the mean of the true ratios lies between these. By
// the union bound they all hold with probability at least 1 - (sum of the rows' alpha), whatever the
// dependence between the races; and the intervals are those that hold for all pairs of a race together, so
// every mean and every comparison of means is covered at once. An interval from the variance between rows
// would answer another question: it would take the recipes for a sample of all recipes, and be undefined
// for one row. Precisions of one recipe share a race, so its alpha counts once.
//
// Which rows count (compared_of): means of different rows cannot be compared, so all compared contenders
// need a time in all rows used. The best choice maximises contenders x (rows - 1). To find it is hard in
// general (a biclique with the most edges), so only prefixes of the contenders, sorted by their number of
// rows, are tried.

#include "suite/suite_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/texts.h"
#include "records/names.h"
#include "suite/suite_record.h"
#include "summary/pair_ratios.h"
#include "summary/standing.h"
#include "table/numbers.h"

namespace bakeoff::suite {
namespace {

using Ids = std::vector<std::string>;

// The contender's column; a new one, where it has none yet.
size_t column_of(Ids& ids, const std::string& id) {
  const auto found = std::find(ids.begin(), ids.end(), id);
  if (found != ids.end()) return static_cast<size_t>(found - ids.begin());
  ids.push_back(id);
  return ids.size() - 1;
}

// A row with what is needed to compare its contenders.
struct Raced {
  TableRow row;
  std::string leader = {};
  std::map<std::string, TableCell> cells = {};
  std::optional<PairRatios> ratios = {};
};

std::string why_not_ranked(const Row& row) {
  if (row.failure) return fmt::format("{}: {}", name(row.failure->stage), row.failure->reason);
  return row.parity == ParityState::kFailed ? "parity: not the same computation" : "was not run";
}

TableCell cell_of_ranked(const Summary& s, const Row& row) {
  TableCell cell{.standing = row.at_least ? Standing::kBound : Standing::kTimed, .ratio = row.ratio};
  if (row.at_least) return cell;
  cell.ms = row.ms_per_step.value;
  cell.samples_per_second = row.samples_per_second;
  cell.may_be_fastest = s.refusal.empty() && row.rank_best == 1 && finish_of(s, row) != Finish::kProbably;
  cell.surely_fastest = cell.may_be_fastest && row.rank_worst == 1;
  return cell;
}

void add_against(const Summary& s, const std::string& baseline, Raced& raced) {
  for (auto& [id, cell] : raced.cells) {
    if (cell.standing != Standing::kTimed && cell.standing != Standing::kBound) continue;
    if (id == baseline) {
      cell.verdict = PairVerdict::kBaseline;
      continue;
    }
    cell.against = raced.ratios->between(id, baseline);
    if (!cell.against) continue;
    cell.speed = inverse(cell.against->ratio);
    cell.verdict = s.refusal.empty() ? compared(cell.against->ratio, s.margin) : PairVerdict::kUndecided;
  }
}

TableRow row_of(const Input& input) {
  TableRow row{.name = input.name, .recipe = input.recipe, .folder = input.folder, .failure = input.failure};
  if (!input.summary) {
    if (row.failure.empty()) row.failure = "was not raced";
    return row;
  }
  const Summary& s = *input.summary;
  row.alpha = s.alpha;
  row.refusal = s.refusal;
  row.decided = s.decided;
  if (s.ranked.empty() && row.failure.empty()) row.failure = "no contender could be ranked";
  if (!s.ranked.empty() && !row.failure.empty()) {
    row.note = row.failure;  // what was measured before it failed still counts
    row.failure.clear();
  }
  if (s.interrupted) row.note = "interrupted: what was measured until then";
  if (!s.outlooks.empty()) row.rest = with_names(s.manifest.contenders, rest_in_words(s.outlooks.front()));
  return row;
}

// A row for each precision.
std::vector<Raced> rows_of(const Input& input, const std::string& baseline) {
  std::vector<Raced> all;
  Ids groups = input.summary ? groups_of(*input.summary) : Ids{};
  if (groups.empty()) groups = {""};
  for (const std::string& group : groups) {
    Raced raced{.row = row_of(input)};
    if (groups.size() > 1) raced.row.name += fmt::format(" ({})", group);
    if (!input.summary) return {raced};
    const Summary& s = *input.summary;
    for (const Row& row : s.ranked) {
      if (row.group != group) continue;
      raced.cells[row.contender.id] = cell_of_ranked(s, row);
      if (raced.leader.empty()) raced.leader = row.contender.id;
    }
    for (const Row& row : s.unranked) {
      const bool elsewhere = std::find(groups.begin(), groups.end(), row.group) != groups.end();
      if (row.group == group || (!elsewhere && group == groups.front()))
        raced.cells[row.contender.id] = {.standing = row.waits ? Standing::kWaits : Standing::kNotRanked,
                                         .reason = why_not_ranked(row)};
    }
    raced.ratios.emplace(s);
    if (!baseline.empty()) add_against(s, baseline, raced);
    for (const Row& row : s.ranked) {
      const auto cell = raced.cells.find(row.contender.id);
      if (row.group != group || !cell->second.may_be_fastest) continue;
      raced.row.best.push_back(row.contender.id);
      raced.row.sure |= cell->second.surely_fastest;
    }
    all.push_back(std::move(raced));
  }
  return all;
}

bool is_timed(const Raced& raced, const std::string& id) {
  const auto found = raced.cells.find(id);
  return found != raced.cells.end() && found->second.standing == Standing::kTimed;
}

bool counts(const Raced& raced) { return raced.row.failure.empty() && raced.row.refusal.empty(); }

std::vector<size_t> rows_with_all(const std::vector<Raced>& rows, const Ids& ids) {
  std::vector<size_t> found;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (counts(rows[r]) &&
        std::all_of(ids.begin(), ids.end(), [&](const std::string& id) { return is_timed(rows[r], id); }))
      found.push_back(r);
  }
  return found;
}

struct Compared {
  Ids ids;
  std::vector<size_t> rows;
};

// Those that make contenders times rows beyond the first the most; of one row all that have a time there.
Compared compared_of(const std::vector<Raced>& rows, const Ids& contenders) {
  const auto timed = [&](const std::string& id) {
    return std::count_if(rows.begin(), rows.end(),
                         [&](const Raced& r) { return counts(r) && is_timed(r, id); });
  };
  Ids order = contenders;
  std::stable_sort(order.begin(), order.end(),
                   [&](const std::string& a, const std::string& b) { return timed(a) > timed(b); });
  Compared best;
  size_t most = 0;
  for (size_t k = 2; k <= order.size(); ++k) {
    const Ids first(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k));
    const std::vector<size_t> common = rows_with_all(rows, first);
    if (common.empty()) break;
    const size_t score = 1 + k * (common.size() - 1) * (order.size() + 1) + k;
    if (score > most) best = {first, common}, most = score;
  }
  for (const std::string& id : order) {
    const bool in = std::find(best.ids.begin(), best.ids.end(), id) != best.ids.end();
    if (!in && !best.rows.empty() &&
        std::all_of(best.rows.begin(), best.rows.end(), [&](size_t r) { return is_timed(rows[r], id); }))
      best.ids.push_back(id);
  }
  return best;
}

double log_end(double end, double otherwise) {
  return end > 0 && std::isfinite(end) ? std::log(end) : otherwise;
}

// On the log scale the mean of values and of ends: one that is open leaves the mean's open.
template <typename Ratio>
Estimate mean_of(const std::vector<size_t>& rows, const Ratio& ratio_in) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  double value = 0, low = 0, high = 0;
  for (const size_t r : rows) {
    const Estimate e = ratio_in(r);
    value += std::log(e.value);
    low += log_end(e.low, -kInf);
    high += log_end(e.high, kInf);
  }
  const auto n = static_cast<double>(rows.size());
  return {std::exp(value / n), std::exp(low / n), std::exp(high / n)};
}

// Of `id` over `other`, in a row in which both have a time.
Estimate ratio_in(const Raced& raced, const std::string& id, const std::string& other) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (id == other) return {1, 1, 1};
  if (const auto pair = raced.ratios->between(id, other)) return pair->ratio;
  return {raced.cells.at(id).ratio.value / raced.cells.at(other).ratio.value, 0, kInf};
}

std::string why_no_mean(const std::vector<Raced>& rows, const std::vector<size_t>& mean_rows,
                        const std::string& id) {
  for (const size_t r : mean_rows) {
    const auto found = rows[r].cells.find(id);
    if (found == rows[r].cells.end()) return "not in " + rows[r].row.name;
    if (found->second.standing == Standing::kTimed) continue;
    const char* const what = found->second.standing == Standing::kBound   ? "only a bound"
                             : found->second.standing == Standing::kWaits ? "no heat"
                                                                          : "not ranked";
    return fmt::format("{} in {}", what, rows[r].row.name);
  }
  return "fewer than two contenders have a time in the same race";
}

// Of its ratios in all rows in which it has a time: for the order of contenders without a mean. Infinite without any.
double measured_mean(const std::vector<Raced>& rows, const std::string& id) {
  double sum = 0, n = 0;
  for (const Raced& raced : rows) {
    if (!is_timed(raced, id)) continue;
    sum += std::log(raced.cells.at(id).ratio.value);
    ++n;
  }
  return n > 0 ? std::exp(sum / n) : std::numeric_limits<double>::infinity();
}

void add_means(const std::vector<Raced>& rows, const Ids& contenders, Table& table) {
  const Compared compared = compared_of(rows, contenders);
  table.mean_rows = compared.rows;
  std::map<std::string, Mean> means;
  std::string best;
  for (const std::string& id : contenders) {
    Mean& mean = means[id];
    mean.rows = static_cast<size_t>(
        std::count_if(rows.begin(), rows.end(), [&](const Raced& r) { return is_timed(r, id); }));
    mean.compared = std::find(compared.ids.begin(), compared.ids.end(), id) != compared.ids.end();
    if (!mean.compared) {
      mean.why_not = why_no_mean(rows, compared.rows, id);
      continue;
    }
    mean.ratio = mean_of(compared.rows, [&](size_t r) { return ratio_in(rows[r], id, rows[r].leader); });
    if (best.empty() || mean.ratio.value < means.at(best).ratio.value) best = id;
  }
  bool alone = true;
  const auto base = means.find(table.baseline);
  for (auto& [id, mean] : means) {
    if (!mean.compared) continue;
    const auto over = [&, name = id](const std::string& other) {
      return mean_of(compared.rows, [&](size_t r) { return ratio_in(rows[r], name, other); });
    };
    mean.to_best = over(best);
    // Where its interval is open, this rests on the rows: in one of them it may be the fastest.
    const auto may_be = [&, name = id](size_t r) { return rows[r].cells.at(name).may_be_fastest; };
    mean.may_be_best = id == best || (!(mean.to_best.low > 1) &&
                                      (mean.to_best.low > 0 || std::ranges::any_of(compared.rows, may_be)));
    alone &= id == best || mean.to_best.low > 1;
    if (base == means.end() || !base->second.compared) continue;
    const Estimate time = over(table.baseline);
    mean.speed = inverse(time);
    mean.verdict = id == table.baseline ? PairVerdict::kBaseline : bakeoff::compared(time, table.margin);
  }
  if (!best.empty()) means[best].surely_best = alone;
  table.contenders = contenders;
  std::stable_sort(table.contenders.begin(), table.contenders.end(), [&](const auto& a, const auto& b) {
    const Mean &x = means.at(a), &y = means.at(b);
    if (x.compared != y.compared) return x.compared;
    if (x.compared) return x.ratio.value < y.ratio.value;
    return x.rows != y.rows ? x.rows > y.rows : measured_mean(rows, a) < measured_mean(rows, b);
  });
  for (const std::string& id : table.contenders) table.means.push_back(means.at(id));
}

}  // namespace

Table table_of(const std::string& title, const std::vector<Input>& inputs, const std::string& baseline) {
  Table table{.title = title, .baseline = baseline};
  std::vector<Raced> rows;
  std::vector<size_t> input_of;
  Ids contenders;
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (Raced& raced : rows_of(inputs[i], baseline)) {
      rows.push_back(std::move(raced));
      input_of.push_back(i);
    }
    if (!inputs[i].summary) continue;
    const Summary& s = *inputs[i].summary;
    table.margin = std::max(table.margin, s.margin);
    table.interrupted |= s.interrupted;
    for (const Contender& contender : s.manifest.contenders) {
      column_of(contenders, contender.id);
      names.emplace(contender.id, spoken(contender));
    }
    for (const auto* list : {&s.ranked, &s.unranked}) {
      for (const Row& row : *list) column_of(contenders, row.contender.id);
    }
  }
  add_means(rows, contenders, table);
  for (const std::string& id : table.contenders)
    table.names.push_back(names.contains(id) ? names.at(id) : id);
  std::optional<size_t> counted;
  for (const size_t r : table.mean_rows) {
    if (input_of[r] != counted) table.alpha += rows[r].row.alpha;
    counted = input_of[r];
  }
  for (Raced& raced : rows) {
    for (const std::string& id : table.contenders) {
      const auto found = raced.cells.find(id);
      raced.row.cells.push_back(found == raced.cells.end() ? TableCell{} : found->second);
    }
    table.rows.push_back(std::move(raced.row));
  }
  return table;
}

std::string Table::name_of(const std::string& contender) const {
  const auto at = static_cast<size_t>(std::ranges::find(contenders, contender) - contenders.begin());
  return at < names.size() ? names[at] : contender;
}

std::string called(const Table& table) {
  if (table.title != kNamedByRecipes) return "suite " + table.title;
  std::set<std::string> recipes;
  for (const TableRow& row : table.rows) recipes.insert(row.folder);
  return "suite of " + table::counted(static_cast<int64_t>(recipes.size()), "recipe");
}

std::string why_no_means(const Table& table) {
  size_t refused = 0, busy = 0, raced = 0;
  for (const TableRow& row : table.rows) {
    raced += row.failure.empty();
    refused += !row.refusal.empty();
    busy += row.refusal.find("busy") != std::string::npos;
  }
  const char* const why = busy == refused ? "busy host"
                          : busy > 0      ? "busy host, or its state is unknown"
                                          : "the host's state is unknown";
  if (refused > 0 && refused == raced)
    return fmt::format("No verdict in any race ({}), so there is no geometric mean.", why);
  if (refused > 0)
    return fmt::format(
        "No verdict in {} of {} ({}), and no two contenders have a time in the same other race, so there is no "
        "geometric mean.",
        refused, table::counted(static_cast<int64_t>(raced), "race"), why);
  return "No two contenders have a time in the same race, so there is no geometric mean.";
}

std::string headline(const Table& table) {
  Ids may_be;
  size_t compared = 0;
  for (size_t i = 0; i < table.means.size(); ++i) {
    compared += table.means[i].compared;
    if (table.means[i].compared && table.means[i].may_be_best)
      may_be.push_back(table.name_of(table.contenders[i]));
  }
  if (compared == 0) return why_no_means(table);
  const std::string over = table::counted(static_cast<int64_t>(table.mean_rows.size()), "race");
  if (may_be.size() > 1)
    return fmt::format("Over {} no contender is surely the fastest; {} may be.", over, join(may_be, ", "));
  const Mean& next = table.means[1];
  if (!table.means[0].surely_best)
    return fmt::format(
        "Not certain yet: {} leads over {}; by the geometric mean the next, {}, was measured to take {} times as long.",
        table.name_of(table.contenders[0]), over, table.name_of(table.contenders[1]),
        table::ratio(next.to_best.value));
  return fmt::format(
      "{} is the fastest over {}: by the geometric mean the next, {}, takes {} times as long {}.",
      table.name_of(table.contenders[0]), over, table.name_of(table.contenders[1]),
      table::ratio(next.to_best.value), table::interval(next.to_best, table::ratio));
}

}  // namespace bakeoff::suite
