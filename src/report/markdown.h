#pragma once

// The result as GitHub-flavoured Markdown, for a pull request or a README: verdict, table, what was not
// ranked. Text of users and workers is escaped: nothing of it becomes markup.

#include <string>

#include "summary/summary.h"
#include "table/section.h"

namespace bakeoff::report {

struct MarkdownOptions {
  int log_lines = 12;  // of a failed worker's output, in a code block
};

std::string render_markdown(const Summary& summary, const MarkdownOptions& options = {});
// One section, with its title.
std::string render_markdown(const table::Section& section);

}  // namespace bakeoff::report
