#pragma once

// The parts of the JSON report that stand beside the ranking: "target", "fit", "latency", "batch_search",
// "largest_batch", each where the run has it. And what all parts write numbers with.

#include <nlohmann/json.hpp>
#include <optional>

#include "summary/summary.h"

namespace bakeoff::report {

using Json = nlohmann::ordered_json;

// null where it is not finite, or not there.
Json number(double value);
Json number(const std::optional<double>& value);

// {"value", "low", "high"}; an end that is not bounded is null.
Json estimate(const Estimate& e);

void add_beside(const Summary& summary, Json& out);

}  // namespace bakeoff::report
