#pragma once

// Test only: a summary as a real race gives it (numbers of the MNIST CNN on two cores), with everything a
// renderer has to survive: ties, open intervals, a failed proof, a missing framework, a crash, hostile text.

#include <string>

#include "summary/summary.h"

namespace bakeoff::report {

// 8 ranked contenders, 4 that are not. Deterministic. `steps`: pooled step samples of each ranked contender.
Summary sample_summary(int steps = 400);

// Nothing ranked yet: no heat was completed.
Summary empty_summary();

// One ranked contender after a single heat: intervals open on both sides.
Summary single_summary();

// Writes a page as NAME.html to the folder that the environment variable BAKEOFF_KEEP_PAGES names, for a test in a
// browser (tests/browser); without it nothing.
void keep_page(const std::string& name, const std::string& html);

}  // namespace bakeoff::report
