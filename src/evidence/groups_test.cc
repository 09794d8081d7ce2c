#include "evidence/groups.h"

#include <gtest/gtest.h>

namespace bakeoff {
namespace {

Contender in(const std::string& precision) {
  return {.id = precision, .settings = {{"precision", precision}, {"tf32", "false"}}};
}

TEST(Groups, PutTheSamePrecisionTogetherFloat32First) {
  const std::vector<Contender> all = {in("bfloat16"), in("float32"), in("bfloat16"),
                                      in("float16"),  in("float32"), in("float32")};
  const auto groups = groups_of(all, {0, 1, 2, 3, 4, 5}, 0.04);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].name, "float32");
  EXPECT_EQ(groups[0].members, (std::vector<size_t>{1, 4, 5}));
  EXPECT_EQ(groups[1].members, (std::vector<size_t>{0, 2}));
  EXPECT_EQ(groups[2].name, "float16");
  // Three pairs and one: together no more than 0.04. The third has nothing to say.
  EXPECT_DOUBLE_EQ(groups[0].alpha, 0.03);
  EXPECT_DOUBLE_EQ(groups[1].alpha, 0.01);
  const auto some = groups_of(all, {0, 2}, 0.04);
  ASSERT_EQ(some.size(), 1u);
  EXPECT_DOUBLE_EQ(some[0].alpha, 0.04);
}

}  // namespace
}  // namespace bakeoff
