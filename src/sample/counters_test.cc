#include "sample/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bakeoff::sample {
namespace {

using ::testing::HasSubstr;

constexpr const char* kStat =
    "cpu  300 30 60 1000 5 2 4 40 0 0\n"
    "cpu0 100 10 20 500 5 1 2 30 0 0\n"
    "cpu2 200 20 40 500 0 1 2 10 0 0\n"
    "intr 7275771 0 0\nctxt 10\nbtime 1795247159\nprocs_running 3\nprocs_blocked 0\n";

TEST(ParseStat, SumsByProcessor) {
  const Stat stat = parse_stat(kStat, 100).value();
  ASSERT_EQ(stat.cpus.size(), 2u);
  EXPECT_DOUBLE_EQ(stat.cpus.at(0).busy, 1.33);
  EXPECT_DOUBLE_EQ(stat.cpus.at(0).steal, 0.3);
  EXPECT_DOUBLE_EQ(stat.cpus.at(2).busy, 2.63);
  EXPECT_EQ(stat.running, 3);
}

TEST(ParseStat, GarbageHasItsReason) {
  const struct {
    const char* text;
    const char* reason;
  } cases[] = {
      {"", "no line of a processor"},
      {"cpu  1 2 3\n", "no line of a processor"},
      {"cpu0 1 2 3 4 5 6 7\nprocs_running 1\n", "no column of steal"},
      {"cpu0 1 2 x 4 5 6 7 8\nprocs_running 1\n", "not as expected: 'x'"},
      {"cpu0 1 2 -3 4 5 6 7 8\nprocs_running 1\n", "not as expected: '-3'"},
      {"cpux 1 2 3 4 5 6 7 8\nprocs_running 1\n", "not as expected"},
      {"cpu0 1 2 3 4 5 6 7 8\n", "no line 'procs_running'"},
      {"cpu0 1 2 3 4 5 6 7 8\nprocs_running\n", "'procs_running' of /proc/stat"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const auto stat = parse_stat(c.text, 100);
    ASSERT_FALSE(stat);
    EXPECT_THAT(stat.error().message, HasSubstr(c.reason));
  }
}

TEST(ParsePressure, TotalOfSome) {
  EXPECT_DOUBLE_EQ(*parse_pressure_some_s("some avg10=44.07 avg60=33.36 avg300=34.95 total=7742054759\n"
                                          "full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"),
                   7742.054759);
  for (const char* text :
       {"", "full avg10=0.00 total=5\n", "some avg10=1\n", "some total=lots\n", "some total=\n"})
    EXPECT_FALSE(parse_pressure_some_s(text)) << text;
}

TEST(ParseThrottled, BothVersionsOfCgroups) {
  EXPECT_DOUBLE_EQ(*parse_throttled_s("usage_usec 5\nnr_throttled 2\nthrottled_usec 1500000\n"), 1.5);
  EXPECT_DOUBLE_EQ(*parse_throttled_s("nr_periods 9\nnr_throttled 2\nthrottled_time 2500000000\n"), 2.5);
  const auto none = parse_throttled_s("usage_usec 5\nuser_usec 4\n");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("says nothing of throttling"));
  EXPECT_FALSE(parse_throttled_s("throttled_usec many\n"));
}

TEST(ParseSmallFiles, ValuesAndGarbage) {
  EXPECT_DOUBLE_EQ(*parse_load("2.16 2.26 2.84 3/110 27113\n"), 2.16);
  EXPECT_FALSE(parse_load("2.16\n"));
  EXPECT_FALSE(parse_load("busy very busy\n"));
  EXPECT_DOUBLE_EQ(*parse_uptime_s("123.45 200.00\n"), 123.45);
  EXPECT_FALSE(parse_uptime_s("\n"));
  EXPECT_EQ(
      *parse_involuntary_switches("Name:\tx\nvoluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t7\n"),
      7);
  EXPECT_FALSE(parse_involuntary_switches("voluntary_ctxt_switches:\t9\n"));
  EXPECT_EQ(*parse_schedstat("843512 3788574 3\n"), (SchedStat{843512, 3788574}));
  EXPECT_FALSE(parse_schedstat("843512\n"));
  EXPECT_FALSE(parse_schedstat("x y z\n"));
}

TEST(ParseCgroups, PathsByController) {
  const auto paths = parse_cgroups("9:name=systemd:/\n1:cpu,cpuacct:/a/b\n0::/user.slice\nnonsense\n");
  EXPECT_EQ(paths.at("cpu"), "/a/b");
  EXPECT_EQ(paths.at("cpuacct"), "/a/b");
  EXPECT_EQ(paths.at(""), "/user.slice");
}

}  // namespace
}  // namespace bakeoff::sample
