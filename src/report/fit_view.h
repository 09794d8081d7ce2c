#pragma once

// Whole trainings as texts, the same for terminal, Markdown, CSV and HTML.

#include <string>
#include <utility>
#include <vector>

#include "report/table.h"
#include "report/view.h"
#include "summary/summary.h"

namespace bakeoff::report {

struct FitCells {
  std::string name;
  std::string seconds;     // "38.1"; of several seeds "38.1 (37.6 to 39.0)"
  std::string epoch;       // "0.91"
  std::string wait;        // "3.1%": of the seconds; "–" where the loop cannot tell
  std::string over_steps;  // "1.08 ×": over the race's step time
  std::string start_up;    // "3.1 s"
  std::string loss;        // "0.0123"
  std::string held_loss;   // "0.0311"; "–" where no rows are held out
  std::string accuracy;    // "99.1%"
  bool bad = false;        // its loss is far from its group's
  std::string note;
};
std::vector<FitCells> fit_cells(const Summary& summary);

std::string fit_title(const Summary& summary);  // "Whole training: 41 epochs of 60,000 rows"
std::string fit_legend(const Summary& summary);

std::vector<Column> fit_columns(const Summary& summary);  // for the terminal

// Columns of a CSV for one contender: name and value, the same names for each. None where nobody was trained.
std::vector<std::pair<std::string, std::string>> fit_fields(const Summary& summary,
                                                            const std::string& contender);

// List "fit", texts fit_title and fit_legend, flag has_fit.
void add_fit(const Summary& summary, View& page);

}  // namespace bakeoff::report
