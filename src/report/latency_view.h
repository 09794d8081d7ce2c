#pragma once

// Latencies of requests as texts, the same for terminal, Markdown, CSV and HTML.

#include <string>
#include <utility>
#include <vector>

#include "report/table.h"
#include "report/view.h"
#include "summary/summary.h"

namespace bakeoff::report {

struct LatencyCell {
  std::string title;   // "p99.9"
  std::string value;   // ms, "4.31"
  std::string bounds;  // "[4.02, 4.75]", "[4.02, ∞)"
  std::string range;   // from the least to the greatest process, "4.1 to 4.5"; "–" of one process
};

struct LatencyCells {
  std::string mode;  // "single stream", "50 requests/s"
  std::string name;
  std::vector<LatencyCell> percentiles;  // one for each that was asked for; "–" where there is none
  std::string mean, service;             // ms
  std::string load;                      // "62%": of its capacity
  std::string requests;
  std::string state;  // "steady", "queue grows", "not steady", "failed"
  std::string note;
};
std::vector<LatencyCells> latency_cells(const Summary& summary);

// "p99", "p99.9".
std::string percentile_name(double share);

// What the numbers are, in a sentence or two.
std::string latency_legend(const Summary& summary);

// For the terminal; lower percentiles go before higher ones where there is no room.
std::vector<Column> latency_columns(const Summary& summary);

// Numbers of one contender in every mode as columns of a CSV: name and value, the same names for each.
std::vector<std::pair<std::string, std::string>> latency_fields(const Summary& summary,
                                                                const std::string& contender);

// Lists "latency_columns" and "latency", flag has_latency.
void add_latency(const Summary& summary, View& page);

}  // namespace bakeoff::report
