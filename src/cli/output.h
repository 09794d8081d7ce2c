#pragma once

// What several commands need: showing a finished summary, and what is imported.

#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/import_options.h"
#include "environments/interpreters.h"
#include "import/origin.h"
#include "summary/summary.h"

namespace bakeoff::cli {

// What `bakeoff import` is asked for, with the interpreter of the model's framework.
Result<ImportRequest> import_request(const ImportOptions& options, const std::filesystem::path& config);

// Where a page that cannot be written is an error, and where a note says it.
enum class Page { kNeeded, kIfPossible };

// Writes the HTML report and prints the summary in `format`; with "text" the last line is the report's
// path. Returns the exit code: 0; 1 if no contender could be ranked; 2 if a page that is needed cannot be written;
// 3 if the verdict is refused (busy host); 130 if interrupted.
int present(const Summary& summary, const std::string& format, const std::filesystem::path& html,
            Page page = Page::kNeeded);

}  // namespace bakeoff::cli
