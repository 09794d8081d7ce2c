#include "fleet/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "stats/trimmed.h"

// Whom a node is compared with. The kind of machine is the one with most blocks. Among its nodes the middle one counts,
// and of two middle ones the faster: most nodes of a cluster are well, and of two nodes of which one is slow the slow
// one is out of line. Blocks are not judged one by one: that a block was disturbed is in its own rounds
// (evidence/host_rounds.h), and leaving out blocks for what they show would bias the race.

namespace bakeoff::fleet {
namespace {

constexpr double kNoisy =
    0.2;  // sd of equal work in turns, as a share of `out_of_line`, that no node may exceed ...
constexpr double kNoisier = 4.0;  // ... and exceed that of the middle node by this factor

struct Seen {
  NodeState state;
  std::vector<double> clocks, speeds, noises;
};

double median_or_0(const std::vector<double>& values) { return values.empty() ? 0 : stats::median(values); }

// The upper middle of what the nodes of this kind have; 0: none was measured.
double middle(const std::vector<NodeState*>& nodes, double NodeState::*value) {
  std::vector<double> all;
  for (const NodeState* node : nodes)
    if (node->*value > 0) all.push_back(node->*value);
  if (all.empty()) return 0;
  std::ranges::sort(all);
  return all[all.size() / 2];
}

std::string out_of_line(const char* what, double value, double usual, double most, const char* format_unit) {
  if (value <= 0 || usual <= 0) return "";
  const double share = value / usual - 1;
  if (std::abs(share) <= most) return "";
  return fmt::format("{} {:.2f}{}, the fleet's {:.2f}{}: {:.0f}% {}", what, value, format_unit, usual,
                     format_unit, 100 * std::abs(share), share < 0 ? "less" : "more");
}

}  // namespace

std::map<std::string, NodeState> admit(const std::vector<Node>& records, double most) {
  std::map<std::string, Seen> seen;
  std::map<std::string, int> kinds;  // by processor and number of CPUs
  std::vector<std::string> in_order;
  const auto kind_of = [](const std::string& cpu, int cpus) {
    return fmt::format("{} ({} CPUs)", cpu, cpus);
  };
  for (const Node& node : records) {
    Seen& one = seen[node.name];
    one.state.name = node.name;
    one.state.cpu = node.host.cpu;
    one.state.cpus = node.host.cpus;
    one.state.shared = one.state.shared || node.shared;
    ++one.state.blocks;
    if (node.clock_ghz > 0) one.clocks.push_back(node.clock_ghz);
    if (node.speed > 0) one.speeds.push_back(node.speed);
    if (node.noise > 0) one.noises.push_back(node.noise);
    const std::string kind = kind_of(node.host.cpu, node.host.cpus);
    if (kinds[kind]++ == 0) in_order.push_back(kind);
  }
  std::string usual;
  for (const std::string& kind : in_order)
    if (usual.empty() || kinds[kind] > kinds[usual]) usual = kind;
  std::vector<NodeState*> same;
  for (auto& [name, one] : seen) {
    one.state.clock_ghz = median_or_0(one.clocks);
    one.state.speed = median_or_0(one.speeds);
    one.state.noise = median_or_0(one.noises);
    if (kind_of(one.state.cpu, one.state.cpus) == usual)
      same.push_back(&one.state);
    else
      one.state.apart = fmt::format("another machine: {}, most blocks ran on {}",
                                    kind_of(one.state.cpu, one.state.cpus), usual);
  }
  const double clock = middle(same, &NodeState::clock_ghz), speed = middle(same, &NodeState::speed),
               noise = middle(same, &NodeState::noise);
  for (NodeState* node : same) {
    node->apart = out_of_line("clock", node->clock_ghz, clock, most, " GHz");
    if (node->apart.empty()) node->apart = out_of_line("speed", node->speed, speed, most, " iterations/ns");
    if (node->apart.empty() && node->noise > kNoisy * most && node->noise > kNoisier * noise)
      node->apart =
          fmt::format("equal work in turns differs by {:.1f}% (sd), on the fleet's nodes by {:.1f}%",
                      100 * node->noise, 100 * noise);
  }
  std::map<std::string, NodeState> all;
  for (auto& [name, one] : seen) all[name] = std::move(one.state);
  return all;
}

std::map<std::string, std::string> at_fault(const std::vector<Check>& checks) {
  struct Contender {
    std::map<std::string, std::string> differs;  // by node
    std::set<std::string> sound;
  };
  std::map<std::string, Contender> contenders;
  for (const Check& check : checks) {
    Contender& one = contenders[check.contender];
    if (check.differs.empty())
      one.sound.insert(check.node);
    else
      one.differs[check.node] = check.differs;
  }
  std::map<std::string, std::string> all;
  for (const auto& [name, one] : contenders) {
    if (one.differs.size() != 1) continue;
    const auto& [node, differs] = *one.differs.begin();
    if (std::ranges::none_of(one.sound, [&](const std::string& other) { return other != node; })) continue;
    all.emplace(node, fmt::format("{} computes something else there: {}", name, differs));
  }
  return all;
}

}  // namespace bakeoff::fleet
