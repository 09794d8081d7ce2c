#pragma once

// What limits a contender, from what was recorded while it raced. A statement on what stands out, not on what
// would help: only a race of the changed contender says that (`bakeoff tune`).

#include "summary/summary.h"

namespace bakeoff {

// Of a timed row, with its usage, wait and shares of the machine's limits. Nothing where nothing is known.
std::optional<Limit> limit_of(const Row& row);

// Whether it is the workload as one program without a framework (emit::Framework::limit).
bool is_native(const std::string& framework);
// The row of that program; null where none was timed.
const Row* native_row(const Summary& summary);
// Fills Row::over_native. It computes on processors, so of a row on a GPU it is no limit.
void hold_against_native(Summary& summary);
// "2.10 [1.95, 2.27]", "at least 3.1": times as long as that program takes; the row has over_native.
std::string over_native_text(const Row& row);
// Of `row`, over_native in words: "plain C++ needs 0.65 times as long on this machine [0.61, 0.70]"; empty: not known, or it
// is that program itself.
std::string native_limit_of(const Row& row);

}  // namespace bakeoff
