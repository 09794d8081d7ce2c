#pragma once

// The workloads that ship, as builder functions.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"

namespace bakeoff::zoo {

struct Entry {
  std::string name;
  std::string doc;  // one sentence: architecture and where it comes from
  Result<ir::Workload> (*build)();
};

const std::vector<Entry>& entries();
std::vector<std::string> names();
// The error names the nearest workload.
Result<ir::Workload> build(std::string_view name);

}  // namespace bakeoff::zoo
