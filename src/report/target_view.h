#pragma once

// Trainings to a target as texts, the same for terminal, Markdown, CSV and HTML.

#include <string>
#include <utility>
#include <vector>

#include "report/table.h"
#include "report/view.h"
#include "summary/summary.h"

namespace bakeoff::report {

struct TargetCells {
  std::string name;
  std::string reached;                    // "5 of 5"
  std::string steps, steps_interval;      // "210", "[180, 245]"; "–" where some did not reach it
  std::string epochs;                     // "0.90"
  std::string seconds, seconds_interval;  // "12.4", "[10.9, 14.1]"
  std::string start_up;                   // "3.1 s"
  std::string convergence;                // "within chance: 1.04 × its steps, p = 0.31"
  std::string note;
};
std::vector<TargetCells> target_cells(const Summary& summary);

std::string target_legend(const Summary& summary);

std::vector<Column> target_columns(const Summary& summary);  // for the terminal

// Columns of a CSV for one contender: name and value, the same names for each. None where there is no target.
std::vector<std::pair<std::string, std::string>> target_fields(const Summary& summary,
                                                               const std::string& contender);

// List "target", texts target_text and target_legend, flag has_target.
void add_target(const Summary& summary, View& page);

}  // namespace bakeoff::report
