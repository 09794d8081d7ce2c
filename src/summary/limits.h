#pragma once

// What limits a contender, from what was recorded while it raced. A statement on what stands out, not on what
// would help: only a race of the changed contender says that (`bakeoff tune`).

#include "summary/summary.h"

namespace bakeoff {

// Of a timed row, with its usage, wait and shares of the machine's limits. Nothing where nothing is known.
std::optional<Limit> limit_of(const Row& row);

}  // namespace bakeoff
