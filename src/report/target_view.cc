#include "report/target_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/cells.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

std::string three(double value) { return significant(value, 3); }

std::string shown(const std::optional<OverSeeds>& e) { return e ? three(e->value) : kNone; }

std::string bounds(const std::optional<OverSeeds>& e) {
  return e ? interval({e->value, e->interval.low, e->interval.high}, three) : "";
}

std::string convergence(const TargetRow& row) {
  if (row.is_referee()) return "float64, what the others are held against";
  if (row.convergence == Convergence::kNotCompared) return kNone;
  return fmt::format("{}: {} × its steps, p = {:.2g}",
                     row.convergence == Convergence::kWorse ? "worse" : "within chance", ratio(row.ratio),
                     row.p);
}

std::string mean_of(const std::optional<OverSeeds>& e) { return e ? plain(e->value) : ""; }

}  // namespace

std::vector<TargetCells> target_cells(const Summary& s) {
  std::vector<TargetCells> out;
  for (const TargetRow& row : s.target) {
    out.push_back({.name = one_line(row.contender),
                   .reached = row.seeds > 0 ? fmt::format("{} of {}", row.reached, row.seeds) : kNone,
                   .steps = shown(row.steps),
                   .steps_interval = bounds(row.steps),
                   .epochs = shown(row.epochs),
                   .seconds = shown(row.seconds),
                   .seconds_interval = bounds(row.seconds),
                   .start_up = row.start_up_s > 0 ? duration(1e3 * row.start_up_s) : kNone,
                   .convergence = convergence(row),
                   .note = one_line(row.note)});
  }
  return out;
}

std::string target_legend(const Summary& s) {
  return fmt::format(
      "Geometric means over seeds: other initial weights and another order of the rows for each, the same "
      "for "
      "everybody; intervals hold with {} each. Seconds are of training, compilation included, looks at the "
      "held-out "
      "rows left out; start-up comes on top. The referee judges all of them in float64. Against the referee: "
      "steps "
      "seed by seed over those of its own training; worse is said where chance explains it with {} at most, "
      "over all "
      "contenders together.",
      percent(1 - s.alpha), percent(s.alpha));
}

std::vector<Column> target_columns(const Summary& s) {
  const std::vector<TargetCells> rows = target_cells(s);
  std::vector<Column> columns;
  const auto add = [&](const char* title, int priority, bool left, std::string TargetCells::*text,
                       Ink ink = Ink::kPlain) {
    Column column{title, priority, left, {}};
    for (const TargetCells& row : rows) column.cells.push_back({row.*text, ink});
    columns.push_back(std::move(column));
  };
  add("contender", 0, true, &TargetCells::name);
  columns.back().wraps = true;
  add("reached", 1, true, &TargetCells::reached);
  add("steps", 0, false, &TargetCells::steps);
  add("interval", 5, true, &TargetCells::steps_interval, Ink::kDim);
  add("epochs", 4, false, &TargetCells::epochs);
  add("seconds", 0, false, &TargetCells::seconds);
  add("interval", 3, true, &TargetCells::seconds_interval, Ink::kDim);
  add("start-up", 6, false, &TargetCells::start_up);
  add("against the referee", 2, true, &TargetCells::convergence);
  return columns;
}

std::vector<std::pair<std::string, std::string>> target_fields(const Summary& s,
                                                               const std::string& contender) {
  if (s.target.empty()) return {};
  const auto row = std::find_if(s.target.begin(), s.target.end(),
                                [&](const TargetRow& r) { return r.contender == contender; });
  const bool known = row != s.target.end();
  const bool compared = known && row->convergence != Convergence::kNotCompared;
  return {{"target_seeds", known ? fmt::format("{}", row->seeds) : ""},
          {"target_reached", known ? fmt::format("{}", row->reached) : ""},
          {"target_steps", known ? mean_of(row->steps) : ""},
          {"target_epochs", known ? mean_of(row->epochs) : ""},
          {"target_seconds", known ? mean_of(row->seconds) : ""},
          {"target_p_of_worse", compared ? plain(row->p) : ""}};
}

void add_target(const Summary& s, View& page) {
  page.flags["has_target"] = !s.target.empty();
  if (s.target.empty()) return;
  page.texts["target_text"] = one_line(s.target_text);
  page.texts["target_legend"] = target_legend(s);
  const std::vector<TargetCells> cells = target_cells(s);
  for (size_t i = 0; i < cells.size(); ++i) {
    const TargetCells& c = cells[i];
    const bool worse = s.target[i].convergence == Convergence::kWorse;
    View v;
    v.texts = {{"target_name", c.name},
               {"target_reached", c.reached},
               {"target_steps", c.steps},
               {"target_steps_interval", c.steps_interval},
               {"target_epochs", c.epochs},
               {"target_seconds", c.seconds},
               {"target_seconds_interval", c.seconds_interval},
               {"target_start_up", c.start_up},
               {"target_convergence", c.convergence},
               {"target_class", worse ? "bad" : "good"},
               {"target_note", c.note}};
    v.flags["has_target_note"] = !c.note.empty();
    page.lists["target"].push_back(std::move(v));
  }
}

}  // namespace bakeoff::report
