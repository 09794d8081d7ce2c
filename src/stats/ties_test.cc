#include "stats/ties.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

namespace bakeoff::stats {
namespace {

using Groups = std::vector<std::vector<size_t>>;
using Matrix = std::vector<std::vector<bool>>;

Matrix tied_pairs(size_t n, const std::vector<std::pair<size_t, size_t>>& pairs) {
  Matrix tied(n, std::vector<bool>(n, false));
  for (const auto& [i, j] : pairs) tied[i][j] = tied[j][i] = true;
  return tied;
}

bool share(const Groups& groups, size_t i, size_t j) {
  return std::any_of(groups.begin(), groups.end(), [&](const std::vector<size_t>& group) {
    return std::count(group.begin(), group.end(), i) + std::count(group.begin(), group.end(), j) == 2;
  });
}

TEST(TieGroups, OfEachShape) {
  const struct {
    const char* what;
    size_t n;
    std::vector<std::pair<size_t, size_t>> tied;
    Groups groups;
  } kCases[] = {
      {"none", 3, {}, {{0}, {1}, {2}}},
      {"all", 3, {{0, 1}, {0, 2}, {1, 2}}, {{0, 1, 2}}},
      {"chain", 3, {{0, 1}, {1, 2}}, {{0, 1}, {1, 2}}},
      {"sliding", 5, {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}, {3, 4}}, {{0, 1, 2}, {1, 2, 3}, {3, 4}}},
      {"one is uncertain", 3, {{0, 2}, {1, 2}}, {{0, 2}, {1, 2}}},
      {"one contender", 1, {}, {{0}}},
      {"nobody", 0, {}, {}},
  };
  for (const auto& row : kCases) {
    SCOPED_TRACE(row.what);
    std::vector<size_t> order(row.n);
    std::iota(order.begin(), order.end(), size_t{0});
    EXPECT_EQ(tie_groups(order, tied_pairs(row.n, row.tied)), row.groups);
  }
}

TEST(TieGroups, GroupsOnlyThoseInTheOrder) {
  const Matrix tied = tied_pairs(4, {{0, 3}, {1, 2}, {0, 1}});
  EXPECT_EQ(tie_groups({3, 0, 2}, tied), (Groups{{3, 0}, {2}}));
}

TEST(TieGroups, ShareAGroupExactlyWhenTiedAndNoGroupIsWasted) {
  EXPECT_TRUE(rc::check([] {
    const size_t n = *rc::gen::inRange<size_t>(1, 12);
    Matrix tied(n, std::vector<bool>(n, false));
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < i; ++j) tied[i][j] = tied[j][i] = *rc::gen::arbitrary<bool>();
    }
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    const Groups groups = tie_groups(order, tied);
    for (size_t i = 0; i < n; ++i) {
      RC_ASSERT(!letters(groups, i).empty());
      for (size_t j = 0; j < i; ++j) RC_ASSERT(share(groups, i, j) == tied[i][j]);
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      Groups others = groups;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(g));
      bool needed = groups[g].size() == 1;
      for (const size_t i : groups[g]) {
        for (const size_t j : groups[g]) needed = needed || (i < j && !share(others, i, j));
      }
      RC_ASSERT(needed);
    }
  }));
}

TEST(TieGroups, OfIntervalsAreTheFewest) {
  // Contenders at 0, 1, 2, ... tied when nearer than `reach`: runs of neighbours, n - reach + 1 of them.
  for (size_t n = 1; n < 12; ++n) {
    for (size_t reach = 1; reach <= n; ++reach) {
      Matrix tied(n, std::vector<bool>(n, false));
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) tied[i][j] = i != j && (i > j ? i - j : j - i) < reach;
      }
      std::vector<size_t> order(n);
      std::iota(order.begin(), order.end(), size_t{0});
      EXPECT_EQ(tie_groups(order, tied).size(), n - reach + 1) << n << " " << reach;
    }
  }
}

TEST(Letters, NameTheGroups) {
  const Groups groups = {{0, 1}, {1, 2}, {3}};
  EXPECT_EQ(letters(groups, 0), "a");
  EXPECT_EQ(letters(groups, 1), "ab");
  EXPECT_EQ(letters(groups, 3), "c");
  EXPECT_EQ(letters(groups, 9), "");
  Groups many;
  for (size_t i = 0; i < 60; ++i) many.push_back({i});
  EXPECT_EQ(letters(many, 25), "z");
  EXPECT_EQ(letters(many, 26), "A");
  EXPECT_EQ(letters(many, 51), "Z");
  EXPECT_EQ(letters(many, 52), "(53)");
}

}  // namespace
}  // namespace bakeoff::stats
