#pragma once

// A run's measurements as JSON lines, one for every timed burst: flat, all keys in every line, each always of the same
// type or null, so that a reader of columns (Parquet, DuckDB, pandas) infers one schema (docs/export.md). A contender
// without a burst has one line in which the measurements are null. Keys are only ever added at the end.

#include <string>
#include <vector>

#include "exports/recorded.h"

namespace bakeoff::exports {

struct LineKey {
  const char* name;
  const char* type;  // "text", "whole", "number", "yes or no"
  const char* meaning;
};
// In their order.
const std::vector<LineKey>& line_keys();

std::string json_lines(const Recorded& run);

}  // namespace bakeoff::exports
