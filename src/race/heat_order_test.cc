#include "race/heat_order.h"

#include <gtest/gtest.h>

namespace bakeoff {
namespace {

TEST(HeatOrder, IsTheSameOnTheOtherSide) {
  const HeatOrder order{.number = 7,
                        .members = {3, 0, 2},
                        .at_once = 2,
                        .plan = {.rounds = 24, .burst_s = 0.25, .far_behind = {1}},
                        .left_s = 81.5,
                        .start_s = {{0, 3.25}, {3, 11}},
                        .bases_first = true,
                        .confirms = true,
                        .leader_step_s = 0.0125,
                        .timed = {0, 3},
                        .audited = {2},
                        .race_s = 120,
                        .audits_s = 9.5};
  const std::string text = to_json(order);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto back = heat_order_from_json(text, "a pipe");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, order);
  const auto endless = heat_order_from_json(to_json(HeatOrder{}), "a pipe");
  ASSERT_TRUE(endless);
  EXPECT_GT(endless->left_s, 1e300) << "no limit stays none";
}

TEST(HeatOrder, WhatIsNoneIsRefused) {
  for (const char* text : {"", "{}", "[1]", R"({"members": "all"})", R"({"members": [-1]})",
                           R"({"members": [0], "number": 1.5})"})
    EXPECT_FALSE(heat_order_from_json(text, "a pipe")) << text;
}

TEST(HeatResult, ItsTrialsAreCheckedLikeThoseOfAFile) {
  HeatResult result{.trials = {{.contender = "torch", .heat = 2, .bursts = {{1'000'000, 10}}}},
                    .audits_s = 1.5};
  const auto back = heat_result_from_json(to_json(result), "a pipe");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->trials, result.trials);
  EXPECT_EQ(back->audits_s, 1.5);
  result.trials[0].warmup_bursts = 2;
  EXPECT_FALSE(heat_result_from_json(to_json(result), "a pipe")) << "more warm-up than bursts";
}

}  // namespace
}  // namespace bakeoff
