#pragma once

// Histories (history/history.h) and the store's lists as text: for a terminal, JSON, CSV.

#include <string>
#include <vector>

#include "history/history.h"
#include "report/terminal.h"

namespace bakeoff::report {

// One line for each history. `where`: the index that they are of.
std::string render_history_list(const std::vector<History>& histories, const std::string& where,
                                const TerminalOptions& options);
// One history: chart, table of its latest points, shifts and what may be done about them.
std::string render_history(const History& history, const TerminalOptions& options);
std::string render_history_json(const std::vector<History>& histories);
// A line for each point of every history.
std::string render_history_csv(const std::vector<History>& histories);

// "a shift of level": +7.3% at ..., in a sentence without its end.
std::string shift_text(const History& history, const Shift& shift);
// What decides about a nominated shift, for people.
std::string how_to_decide(const History& history, const Shift& shift);

std::string render_store_list(const std::vector<store::ListedRun>& runs, const store::Tally& tally,
                              const std::string& where, const TerminalOptions& options);
std::string render_skipped(const std::vector<store::Skipped>& skipped, int width);
std::string render_store_json(const std::vector<store::ListedRun>& runs,
                              const std::vector<store::Skipped>& skipped, const store::Tally& tally,
                              const std::string& where);

}  // namespace bakeoff::report
