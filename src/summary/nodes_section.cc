#include "summary/nodes_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "evidence/heats.h"
#include "records/names.h"
#include "study/section_rows.h"
#include "summary/summary_notes.h"
#include "table/numbers.h"

namespace bakeoff {

using namespace table;
namespace {

struct NodeRow {
  std::string contender = {};  // the node: so rows of sections are named
  std::string note = {};
  std::set<int> heats = {};
  std::vector<double> d = {};  // log of the second's over the leader's step time, in heats that they share
};

const std::vector<Quantity<NodeRow>> kOfNodes = {
    {{.key = "node", .title = "node", .meaning = "The machine's name.", .name = true},
     [](const NodeRow& r) { return Json(r.contender); }},
    {{.key = "heats", .title = "heats", .meaning = "Number of heats that the node ran."},
     [](const NodeRow& r) { return Json(r.heats.size()); },
     count},
    {{.key = "ratio",
      .title = "ratio",
      .meaning =
          "Step time of the second contender over the leader's: geometric mean of the node's heats in which both "
          "ran."},
     [](const NodeRow& r) {
       double sum = 0;
       for (const double d : r.d) sum += d;
       return r.d.empty() ? Json(nullptr) : number(std::exp(sum / static_cast<double>(r.d.size())));
     },
     ratio},
};

std::string whom_verdicts_mean(const SpokenOf& of) {
  std::string text = fmt::format("Verdicts are {}", spoken_of_text(of));
  if (of.about == stats::About::kTheirKind)
    return text + ": each node counts once, however many heats it ran.";
  if (static_cast<size_t>(of.nodes) < stats::kFewestOfAKind)
    return text + fmt::format("; fewer than {} nodes say nothing of other machines of their kind.",
                              stats::kFewestOfAKind);
  return text + fmt::format("; of machines of this kind {} of {} comparisons with the leader are decided.",
                            of.decided_of_kind, of.rivals);
}

}  // namespace

int count_nodes(const std::vector<Trial>& trials) {
  std::set<std::string> nodes;
  for (const Trial& trial : trials)
    if (!trial.node.empty()) nodes.insert(trial.node);
  return static_cast<int>(nodes.size());
}

std::optional<Section> nodes_section(const Summary& s, const std::vector<Trial>& trials) {
  const std::string leader = s.ranked.empty() ? "" : s.ranked[0].contender.id;
  const std::string second = s.ranked.size() < 2 ? "" : s.ranked[1].contender.id;
  std::map<std::string, NodeRow> nodes;
  std::map<int, double> of_leader, of_second;
  for (const Trial& trial : trials) {
    if (trial.node.empty()) continue;
    NodeRow& row = nodes[trial.node];
    row.contender = trial.node;
    row.heats.insert(trial.heat);
    const auto value = heat_value(trial);
    if (value && trial.contender == leader) of_leader[trial.heat] = *value;
    if (value && trial.contender == second) of_second[trial.heat] = *value;
  }
  if (nodes.empty()) return std::nullopt;
  std::vector<NodeRow> rows;
  for (auto& [name, row] : nodes) {
    for (const int heat : row.heats)
      if (of_leader.contains(heat) && of_second.contains(heat))
        row.d.push_back(of_second[heat] - of_leader[heat]);
    rows.push_back(std::move(row));
  }
  Section section = section_of(kOfNodes, rows);
  section.key = "nodes";
  section.label = "Nodes";
  section.title = fmt::format("Raced on {} node{}", rows.size(), rows.size() == 1 ? "" : "s");
  if (!second.empty())
    section.legend = fmt::format(
        "Each heat ran on one node, in fresh processes; contenders are compared within heats alone. {} Ratio: {} over "
        "{}.",
        whom_verdicts_mean(s.spoken_of), spoken(s.manifest.contenders, second),
        spoken(s.manifest.contenders, leader));
  section.json = json_rows(kOfNodes, rows);
  return section;
}

}  // namespace bakeoff
