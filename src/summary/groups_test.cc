#include "evidence/groups.h"

#include <gtest/gtest.h>

#include "summary/summary.h"

namespace bakeoff {
namespace {

TEST(Groups, OfASummaryHaveLeadersOfTheirOwn) {
  Summary s;
  for (const auto& [id, group] : std::vector<std::pair<const char*, const char*>>{
           {"a", "float32"}, {"b", "float32"}, {"c", "bfloat16"}, {"d", "bfloat16"}}) {
    Row row;
    row.contender.id = id;
    row.group = group;
    s.ranked.push_back(row);
  }
  EXPECT_EQ(groups_of(s), (std::vector<std::string>{"float32", "bfloat16"}));
  EXPECT_EQ(&leader_of(s, s.ranked[1]), &s.ranked[0]);
  EXPECT_EQ(&leader_of(s, s.ranked[3]), &s.ranked[2]);
}

}  // namespace
}  // namespace bakeoff
