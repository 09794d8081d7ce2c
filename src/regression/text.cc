#include "table/text.h"

#include <fmt/format.h>

#include "regression/outputs.h"

namespace bakeoff::regression {
namespace {

using table::paragraph;

std::string side_line(const char* what, const SideInfo& side, int width) {
  return paragraph(table::one_line(side.detail.empty() ? side.name
                                                       : fmt::format("{} ({})", side.name, side.detail)),
                   width, fmt::format("{:<6}", what), "      ") +
         "\n";
}

std::string row_text(const Row& row, const Outcome& outcome, int width) {
  std::string out = paragraph(table::one_line(sentence(row, outcome)), width) + "\n";
  if (row.heats > 0)
    out += paragraph(fmt::format("{} a {} before, {} now; {}, noise {:.1f}% from one to the next",
                                 shown(row.base_ms, outcome), outcome.per, shown(row.head_ms, outcome),
                                 table::counted(static_cast<int64_t>(row.heats),
                                                outcome.per == "run" ? "pair" : "heat"),
                                 100 * row.noise),
                     width, "  ", "  ") +
           "\n";
  if (const std::string more = what_decides(row, outcome); !more.empty())
    out += paragraph(table::one_line(more), width, "  ", "  ") + "\n";
  return out;
}

}  // namespace

std::string to_text(const Outcome& outcome, int width) {
  std::string out = side_line("base", outcome.base, width) + side_line("head", outcome.head, width);
  out +=
      paragraph(fmt::format("raced as one in {}; margin {}, false claims at most {}",
                            table::duration(1e3 * outcome.seconds), table::percent(outcome.settings.margin),
                            table::percent(outcome.settings.alpha)),
                width) +
      "\n\n";
  for (const Row& row : outcome.rows) out += row_text(row, outcome, width);
  if (!outcome.notes.empty()) out += "\n";
  for (const std::string& note : outcome.notes)
    out += paragraph(table::one_line(note), width, "- ", "  ") + "\n";
  if (outcome.interrupted) out += "\ninterrupted: what is said above holds, more was not measured\n";
  return out;
}

}  // namespace bakeoff::regression
