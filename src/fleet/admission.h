#pragma once

// Which nodes count. One race compares contenders on one kind of machine: a node with another processor, or one that
// is out of line with the others, is named, and what it measured is kept apart. A pure function of the nodes' records.

#include <map>
#include <string>
#include <vector>

#include "fleet/records.h"

namespace bakeoff::fleet {

struct NodeState {
  std::string name = {};
  std::string cpu = {};
  int cpus = 0;
  int blocks = 0;        // that it settled
  double clock_ghz = 0;  // medians over its blocks; 0: not measured
  double speed = 0;
  double noise = 0;
  bool shared = false;     // in some block
  std::string apart = {};  // why it is kept apart; empty: it counts
  bool operator==(const NodeState&) const = default;
};

// By name. `records`: of every block that is settled, in the order of the blocks. `out_of_line`: Settings::out_of_line.
std::map<std::string, NodeState> admit(const std::vector<Node>& records, double out_of_line);

// Nodes on which a contender computes something else than it was proven for, each with what: those on which one alone
// differs that is sound on another. One that differs on two nodes is at fault itself, and is out of the race.
std::map<std::string, std::string> at_fault(const std::vector<Check>& checks);

}  // namespace bakeoff::fleet
