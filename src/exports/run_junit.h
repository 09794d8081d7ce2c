#pragma once

// A run as a test suite: every contender is a case. One that is ranked passed; one that computes something else, or
// broke a rule, failed; one that crashed or whose process could not be made is an error; one whose framework is not
// installed, or whose turn never came, is skipped.

#include "exports/recorded.h"
#include "table/junit.h"

namespace bakeoff::exports {

table::JunitSuite junit_suite(const Recorded& run);

}  // namespace bakeoff::exports
