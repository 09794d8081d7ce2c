#pragma once

// What the renderers say in words, so that terminal, Markdown and HTML agree.

#include <string>
#include <vector>

#include "summary/summary.h"
#include "table/quantity.h"

namespace bakeoff::report {

// Lower case: "leader", "slower", "undecided"; "behind jax by at least 12%".
// What the evidence says of the row, in a word; "not judged" where the run has no verdict.
std::string verdict_word(const Row& row);
std::string verdict_text(const Row& row);

std::string parity_mark(ParityState state);  // "✓", "≠", "✗", "–"
std::string parity_word(ParityState state);  // "proven", "differs", "fails", "not run"

// Why a row is not ranked, one line: "parity: gradient of conv1.weight ...: matches epsilon inside the root".
std::string unranked_reason(const Row& row, bool with_stage = true);

// "equalised track" | "as-is track": stands in the header of everything.
std::string track_label(const Summary& summary);

// One sentence on what the label promises.
std::string track_meaning(const Summary& summary);

// "563,018 parameters", "1,792 trained and 132,736 frozen parameters"
std::string parameters_text(const Summary& summary);

// "batch 256", those, "12.5 GFLOP per step", "9 heats, 4 min 12 s together": what is known of them.
std::vector<std::string> facts(const Summary& summary);
// The range of a cell that is shown behind its value; empty if absent: "–" there would say nothing.
std::string range_beside(const table::Cell& cell);
// "9 heats, 4 min 12 s together".
std::string heats_in_words(const Summary& summary);

// The verdict sentence; one of our own where the summary has none. Says so when the run was interrupted.
std::string headline(const Summary& summary);

// Where the variance is: "processes" "3.1%" "starting the worker again", ...; unknown parts are left out.
struct VariancePart {
  std::string what, sd, meaning;
};
std::vector<VariancePart> variance_parts(const Variance& variance);

// Whether two ranked rows share a letter, that is, whether the letters say anything.
bool has_ties(const Summary& summary);
inline constexpr const char* kTieLegend =
    "Contenders that share a letter cannot be distinguished by the evidence.";

// "Of peak: model FLOPs over the measured 190 GFLOP/s (f32, avx2) ...": what the two shares are of.
std::string roofline_statement(const Roofline& roofline);

// "Wait: share of its time in which the training loop had no batch.": a column's meaning below its table.
std::string titled(const table::Column& column);

// An argument of a shell's command line: quoted where it has to be.
std::string quoted(const std::string& text);

// What goes on with the run in the folder `run` until everything is decided.
std::string command_to_decide(const Summary& summary, const std::string& run);

// "error rate 1% over all verdicts and intervals of ratios together, margin 3%".
std::string error_statement(const Summary& summary);

}  // namespace bakeoff::report
