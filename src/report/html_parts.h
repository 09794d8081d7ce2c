#pragma once

// The lower sections of the page. Each adds its lists to the page's view and a flag has_<section>.

#include "report/view.h"
#include "summary/summary.h"

namespace bakeoff::report {

// A matrix of contenders and checks: worst tensor, error, tolerance.
void add_parity(const Summary& summary, View& page);
// Topics by frameworks, those that differ first.
void add_fairness(const Summary& summary, View& page);
// What every contender shares, once; then what is a contender's own.
void add_settings(const Summary& summary, View& page);
void add_host(const Summary& summary, View& page);
// Emitted scripts, recipe and workload, to copy.
void add_texts(const Summary& summary, bool sources, View& page);

}  // namespace bakeoff::report
