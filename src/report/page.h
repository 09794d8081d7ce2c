#pragma once

// Fills a template of templates/.

#include <string>

#include "report/view.h"

namespace bakeoff::report {

// With the style sheet and the script, which templates name {{{style}}} and {{{script}}}.
std::string render_page(const std::string& name, View view);

}  // namespace bakeoff::report
