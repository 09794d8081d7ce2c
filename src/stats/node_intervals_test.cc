#include "stats/node_intervals.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "stats/boundary.h"
#include "stats/pair_table.h"
#include "stats/ranking.h"

namespace bakeoff::stats {
namespace {

TEST(OfTheirKind, EachNodeIsOneValueHoweverManyHeatsItRan) {
  const std::vector<double> d = {0.01, 0.02, 0.03, 0.04, 0.05, 0.05, 0.05, 0.05};
  const std::vector<int> node = {0, 1, 2, 3, 4, 4, 4, 4};
  const Interval found = of_their_kind(d, node, 0.01);
  const double half = boundary_half_width(5, 0.01) * std::sqrt(0.001 / 4);
  EXPECT_NEAR(found.low, 0.03 - half, 1e-12);
  EXPECT_NEAR(found.high, 0.03 + half, 1e-12);
  EXPECT_FALSE(of_their_kind({d.data(), 2}, {node.data(), 2}, 0.01).bounded()) << "two nodes";
}

TEST(OfTheseNodes, OnlyWhatHeatsOfANodeDifferByIsNoise) {
  const std::vector<double> d = {0.09, 0.11, 0.10, -0.01, 0.01, 0.00};
  const std::vector<int> node = {7, 7, 7, 2, 2, 2};
  const Interval found = of_these_nodes(d, node, 0.01);
  // Five values have the 4 degrees of freedom that six heats of two nodes have; the mean's variance is 1/6 of a heat's.
  const double half = boundary_half_width(5, 0.01) * 0.01 * std::sqrt(5.0 / 6);
  EXPECT_NEAR(found.low, 0.05 - half, 1e-12);
  EXPECT_NEAR(found.high, 0.05 + half, 1e-12);
  EXPECT_FALSE(of_these_nodes(d, std::vector<int>{0, 1, 2, 3, 4, 5}, 0.01).bounded()) << "one heat each";
}

PairTable raced(const std::vector<double>& d, const std::vector<int>& node) {
  PairTable table(2, std::log1p(0.01), Backup::kOnSigns);
  for (size_t i = 0; i < d.size(); ++i) EXPECT_TRUE(table.add({.log_ms = {d[i], 0.0}, .node = node[i]}));
  return table;
}

TEST(About, FewNodesDecideOfThemselvesAlone) {
  std::vector<double> d;
  std::vector<int> node;
  for (int i = 0; i < 24; ++i) {
    node.push_back(i % 2);
    d.push_back((i % 2 == 0 ? 0.04 : 0.09) + 0.001 * std::sin(i));
  }
  const PairTable table = raced(d, node);
  ASSERT_TRUE(table.signs(0, 1).nodes) << "they differ";
  const Race here = race_state(table, {.margin = 0.01, .about = About::kTheseNodes});
  EXPECT_EQ(here.winner, 1u);
  const Race of_all = race_state(table, {.margin = 0.01, .about = About::kTheirKind});
  EXPECT_EQ(of_all.winner, std::nullopt);
  EXPECT_FALSE(of_all.standings[0].interval.bounded()) << "two nodes are no sample";
}

TEST(About, NodesThatAgreeDecideOfTheirKind) {
  std::vector<double> d;
  std::vector<int> node;
  for (int i = 0; i < 8; ++i) {
    node.push_back(i);
    d.push_back(0.05 + 0.002 * std::sin(i));
  }
  EXPECT_EQ(race_state(raced(d, node), {.about = About::kTheirKind}).winner, 1u);
}

}  // namespace
}  // namespace bakeoff::stats
