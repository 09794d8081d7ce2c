#pragma once

// Test only: a summary as a real race gives it (numbers of the MNIST CNN on two cores), with everything a
// renderer has to survive: ties, open intervals, a failed proof, a missing framework, a crash, hostile text.

#include "summary/summary.h"

namespace bakeoff::report {

// 8 ranked contenders, 4 that are not. Deterministic. `steps`: pooled step samples of each ranked contender.
Summary sample_summary(int steps = 400);

// Nothing ranked yet: no heat was completed.
Summary empty_summary();

// One ranked contender after a single heat: intervals open on both sides.
Summary single_summary();

}  // namespace bakeoff::report
