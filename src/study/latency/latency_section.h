#pragma once

// Latencies as a study: what to run, and the table of what they came to.

#include <string>
#include <vector>

#include "study/latency/latency_summary.h"
#include "study/study.h"

namespace bakeoff {

Study latency_study();

// `level`: of each bound, 0.99; `batch`: rows of a request.
table::Section latency_section(const std::vector<LatencyRow>& rows, double level, int64_t batch);

// "p99", "p99.9".
std::string percentile_name(double share);

}  // namespace bakeoff
