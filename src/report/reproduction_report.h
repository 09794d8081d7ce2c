#pragma once

// A replayed study for a terminal, as a page and as JSON; and the list of studies.
//
// JSON, "schema" 1: {"study", "headline", "replication", "rows": [{"row", "recipe", "track", "why_not_raced", "refusal",
// "contenders": [{"contender", "reference", "published", "here", "order", "note", "shares": [{"confound", "setting",
// "of", "from", "to", "share": {"value", "low", "high"}}]}]}], "confounds": [{"name", "what", "why_no_share"}]}.

#include <string>
#include <vector>

#include "report/terminal.h"
#include "suite/reproduction.h"

namespace bakeoff::report {

std::string render_terminal(const suite::Reproduction& reproduction, const TerminalOptions& options);
std::string render_json(const suite::Reproduction& reproduction);
std::string render_reproduction_page(const suite::Reproduction& reproduction);

// Each study with what it compared, who published it, and how many of its rows can be raced here.
std::string list_of_studies(const std::vector<recipe::PublishedStudy>& studies,
                            const TerminalOptions& options);
// What a replay would race, row by row, and why the other rows are not.
std::string plan_of(const recipe::PublishedStudy& study, const suite::Record& record,
                    const TerminalOptions& options);

}  // namespace bakeoff::report
