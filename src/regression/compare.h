#pragma once

// Two finished runs side by side: what differs in what was raced and where, and how their times compare. Of two machines
// each one's ranking, energy and prices stand beside the other's, and no ratio of times that were never paired. Runs of other
// days or machines prove nothing about a version; the comparison says which gate would.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "regression/rankings.h"
#include "summary/summary.h"
#include "table/numbers.h"

namespace bakeoff::regression {

struct Difference {
  std::string what = {};  // "machine: processor", "version of torch"
  std::string first = {}, second = {};
  std::string contender = {};  // its id; empty: it is of the whole run
  bool operator==(const Difference&) const = default;
};

struct ComparedRow {
  std::string contender = {};
  Place first = {}, second = {};
  // second / first, if both are of one machine. The interval (99%, from the heats of both) assumes that the machine
  // was in the same state in both runs; it is infinite if their work differs or heats are too few.
  std::optional<Estimate> ratio = {};
};

struct Comparison {
  std::string first = {}, second = {};  // run directories
  std::string first_started = {}, second_started = {};
  std::vector<Difference> differences = {};
  bool same_work = false;     // workload, batch, data and weights are the same
  bool fleet = false;         // heats of one of them are of a fleet's nodes
  bool same_machine = false;  // the recorded hosts are the same, and neither is a fleet's
  std::vector<ComparedRow> rows = {};
  Rankings rankings = {};                                        // of both
  std::vector<Contender> contenders = {};                        // of both runs, for their names
  std::vector<std::string> first_alone = {}, second_alone = {};  // contenders ranked in one run only
  std::string gate = {};                                         // the command that decides
};

Comparison compare(const Summary& first, const Summary& second);

std::string to_text(const Comparison& comparison, int width);
std::string to_json(const Comparison& comparison);

}  // namespace bakeoff::regression
