#include "report/fit_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/cells.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

// Losses may be small: three digits whatever their size.
std::string three(double value) { return value < 1 ? fmt::format("{:.3g}", value) : significant(value, 3); }

// Accuracies lie close together: two decimals.
std::string share(double value) { return fmt::format("{:.2f}%", 100 * value); }

std::string over_seeds(const std::optional<SeedRange>& range, std::string (*show)(double)) {
  if (!range) return kNone;
  if (range->least == range->most) return show(range->median);
  return fmt::format("{} ({} to {})", show(range->median), show(range->least), show(range->most));
}

const FitRow* row_of(const Summary& s, const std::string& contender) {
  const auto row =
      std::find_if(s.fit.begin(), s.fit.end(), [&](const FitRow& r) { return r.contender == contender; });
  return row != s.fit.end() && row->seeds > 0 ? &*row : nullptr;
}

}  // namespace

std::vector<FitCells> fit_cells(const Summary& s) {
  std::vector<FitCells> out;
  for (const FitRow& row : s.fit) {
    FitCells c;
    c.name = one_line(row.contender);
    c.bad = row.far;
    c.note = one_line(row.note);
    for (std::string* text : {&c.seconds, &c.epoch, &c.wait, &c.over_steps, &c.start_up}) *text = kNone;
    if (row.seeds > 0) {
      c.seconds = over_seeds(row.seconds, three);
      c.epoch = three(row.epoch_s);
      c.start_up = duration(1e3 * row.start_up_s);
      if (row.wait_s && row.seconds.median > 0)
        c.wait = fmt::format("{:.1f}%", 100 * *row.wait_s / row.seconds.median);
      if (row.over_steps) c.over_steps = fmt::format("{:.2f} ×", *row.over_steps);
    }
    c.loss = over_seeds(row.loss, three);
    c.held_loss = over_seeds(row.held_loss, three);
    c.accuracy = over_seeds(row.accuracy, share);
    out.push_back(std::move(c));
  }
  return out;
}

std::string fit_title(const Summary& s) { return "Whole training: " + s.fit_facts.text; }

std::string fit_legend(const Summary& s) {
  const FitFacts& f = s.fit_facts;
  const std::string seeds = f.seeds > 1
                                ? fmt::format("Medians over {} seeds, with least and greatest", f.seeds)
                                : "One training each";
  const std::string held = f.held > 0
                               ? fmt::format(", held-out loss and accuracy of {} rows that nobody trained on",
                                             count(static_cast<double>(f.held)))
                               : ", accuracy of the same rows";
  return fmt::format(
      "{}, in a process of its own; no error rate is claimed. Seconds are of training, the first step with "
      "its "
      "compilation included; start-up comes on top. Wait: share of them in which the loop had no batch. Over "
      "steps: "
      "seconds over what the race's step time makes of them. Afterwards the referee predicts in float64: "
      "loss is that "
      "of {} rows that were trained on{}. Within a precision losses {} apart may be chance; more is noted.",
      seeds, count(static_cast<double>(f.trained)), held, percent(f.tolerance));
}

std::vector<Column> fit_columns(const Summary& s) {
  const std::vector<FitCells> rows = fit_cells(s);
  std::vector<Column> columns;
  const auto add = [&](const char* title, int priority, bool left, std::string FitCells::*text,
                       Ink ink = Ink::kPlain) {
    Column column{title, priority, left, {}};
    for (const FitCells& row : rows) column.cells.push_back({row.*text, ink});
    columns.push_back(std::move(column));
  };
  add("contender", 0, true, &FitCells::name);
  columns.back().wraps = true;
  add("seconds", 0, false, &FitCells::seconds);
  add("an epoch", 4, false, &FitCells::epoch);
  add("wait", 3, false, &FitCells::wait, Ink::kDim);
  add("over steps", 5, false, &FitCells::over_steps, Ink::kDim);
  add("start-up", 6, false, &FitCells::start_up);
  add("loss", 1, false, &FitCells::loss);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].bad) columns.back().cells[i].ink = Ink::kBad;
  }
  add("held-out loss", 7, false, &FitCells::held_loss);
  add("accuracy", 0, false, &FitCells::accuracy);
  return columns;
}

std::vector<std::pair<std::string, std::string>> fit_fields(const Summary& s, const std::string& contender) {
  if (s.fit.empty()) return {};
  const FitRow* row = row_of(s, contender);
  const auto median = [](const std::optional<SeedRange>& range) { return range ? plain(range->median) : ""; };
  return {{"fit_epochs", row ? fmt::format("{}", s.fit_facts.epochs) : ""},
          {"fit_seeds", row ? fmt::format("{}", row->seeds) : ""},
          {"fit_seconds", row ? plain(row->seconds.median) : ""},
          {"fit_seconds_per_epoch", row ? plain(row->epoch_s) : ""},
          {"fit_wait_seconds", row ? plain(row->wait_s) : ""},
          {"fit_start_up_seconds", row ? plain(row->start_up_s) : ""},
          {"fit_loss", row ? median(row->loss) : ""},
          {"fit_held_out_loss", row ? median(row->held_loss) : ""},
          {"fit_accuracy", row ? median(row->accuracy) : ""}};
}

void add_fit(const Summary& s, View& page) {
  page.flags["has_fit"] = !s.fit.empty();
  if (s.fit.empty()) return;
  page.texts["fit_title"] = one_line(fit_title(s));
  page.texts["fit_legend"] = fit_legend(s);
  for (const FitCells& c : fit_cells(s)) {
    View v;
    v.texts = {{"fit_name", c.name},
               {"fit_seconds", c.seconds},
               {"fit_epoch", c.epoch},
               {"fit_wait", c.wait},
               {"fit_over_steps", c.over_steps},
               {"fit_start_up", c.start_up},
               {"fit_loss", c.loss},
               {"fit_held_loss", c.held_loss},
               {"fit_accuracy", c.accuracy},
               {"fit_class", c.bad ? "parity bad" : ""},
               {"fit_note", c.note}};
    v.flags["has_fit_note"] = !c.note.empty();
    page.lists["fit"].push_back(std::move(v));
  }
}

}  // namespace bakeoff::report
