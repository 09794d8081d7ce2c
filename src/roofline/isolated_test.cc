#include "roofline/isolated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

namespace bakeoff::roofline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(InChild, GivesWhatTheWorkReturns) {
  const std::string large(200'000, 'x');
  const auto answer = in_child(
      [&] {
        std::puts("noise on standard output");
        return large + "\n";
      },
      20, {});
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(*answer, large + "\n");
}

TEST(InChild, ACrashIsAReason) {
  const auto killed = in_child(
      []() -> std::string {
        ::raise(SIGKILL);
        return "";
      },
      20, {});
  ASSERT_FALSE(killed);
  EXPECT_THAT(killed.error().message, HasSubstr("signal 9"));
  const auto left = in_child([]() -> std::string { ::_exit(3); }, 20, {});
  ASSERT_FALSE(left);
  EXPECT_THAT(left.error().message, HasSubstr("exit code 3"));
}

TEST(InChild, WhatHangsOrIsStoppedIsKilled) {
  const auto hang = []() -> std::string {
    while (true) ::sleep(60);
  };
  const auto late = in_child(hang, 0.1, {});
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("did not end in time"));
  const auto stopped = in_child(hang, 600, [] { return true; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, "stopped");
}

}  // namespace
}  // namespace bakeoff::roofline
