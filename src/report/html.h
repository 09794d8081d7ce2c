#pragma once

// The report as one self-contained HTML file: no network (a content security policy forbids it), style,
// script and pictures inline; light and dark, wide and narrow, and on paper. All text is escaped by the
// template engine or by Svg. The page lives in templates/ and is filled from a View (view.h).

#include <string>

#include "summary/summary.h"

namespace bakeoff::report {

struct HtmlOptions {
  bool sources = true;  // the emitted scripts
};

std::string render_html(const Summary& summary, const HtmlOptions& options = {});

}  // namespace bakeoff::report
