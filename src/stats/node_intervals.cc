#include "stats/node_intervals.h"

#include <cmath>
#include <map>

#include "stats/boundary.h"
#include "stats/e_process.h"

namespace bakeoff::stats {
namespace {

std::map<int, EProcess> by_node(std::span<const double> d, std::span<const int> node) {
  std::map<int, EProcess> nodes;
  for (size_t i = 0; i < d.size(); ++i) nodes[node[i]].add(d[i]);
  return nodes;
}

EProcess means_of(const std::map<int, EProcess>& nodes) {
  EProcess means;
  for (const auto& [name, own] : nodes) means.add(own.mean());
  return means;
}

}  // namespace

Interval of_their_kind(std::span<const double> d, std::span<const int> node, double alpha) {
  const EProcess means = means_of(by_node(d, node));
  return means.interval_at(boundary_ratio(means.count(), alpha));
}

// The variance of a heat is pooled over the nodes: n - k degrees of freedom, as n - k + 1 values of one mean have.
Interval of_these_nodes(std::span<const double> d, std::span<const int> node, double alpha) {
  const auto nodes = by_node(d, node);
  const size_t degrees = d.size() - nodes.size();
  if (degrees == 0) return {};
  const auto k = static_cast<double>(nodes.size());
  double within = 0, of_mean = 0;
  for (const auto& [name, own] : nodes) {
    const auto heats = static_cast<double>(own.count());
    if (own.count() > 1) within += own.sd() * own.sd() * (heats - 1);
    of_mean += 1 / (heats * k * k);
  }
  // ratio = t^2 / degrees
  const double half = std::sqrt(boundary_ratio(degrees + 1, alpha) * within * of_mean);
  const double middle = means_of(nodes).mean();
  return std::isfinite(half) ? Interval{middle - half, middle + half} : Interval{};
}

}  // namespace bakeoff::stats
