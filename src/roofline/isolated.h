#pragma once

// Runs work with foreign libraries in a forked child, which may crash, hang or print anything.

#include <functional>
#include <string>

#include "base/result.h"
#include "roofline/stopwatch.h"

namespace bakeoff::roofline {

// Returns the text that `work` returns in the child. Error: the child crashes, ends without an answer, or
// is not done within `seconds`; it is then killed, as it is if `stop` returns true. Call it while this
// process has no other threads.
Result<std::string> in_child(const std::function<std::string()>& work, double seconds, const Stop& stop);

}  // namespace bakeoff::roofline
