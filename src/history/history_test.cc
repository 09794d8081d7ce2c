#include "history/history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace bakeoff {
namespace {

// Points around 10 ms; from `at` on `step` times as much.
std::vector<store::LinePoint> points(size_t n, size_t at, double step, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<store::LinePoint> found;
  for (size_t i = 0; i < n; ++i)
    found.push_back({.run = fmt::format("R{:03}", i),
                     .seconds = 0.01 * (i >= at ? step : 1) * (1 + 0.01 * normal(random)),
                     .packages = R"({"torch":"2.12.0"})"});
  return found;
}

store::Line line() { return {.id = "abcdef0123456789", .name = "tiny torch", .runs = 60}; }

TEST(HistoryOf, OneShiftIsOneAlertHoweverManyRunsFollow) {
  for (const size_t n : {60, 200, 1000}) {
    const History history = history_of(line(), points(n, 40, 1.07));
    ASSERT_EQ(history.shifts.size(), 1u) << n;
    EXPECT_NEAR(static_cast<double>(history.shifts[0].at), 40, 2);
    EXPECT_NEAR(history.shifts[0].ratio, 1.07, 0.01);
    EXPECT_TRUE(history.shifts[0].open());
    EXPECT_EQ(history.open_shifts(), 1u);
  }
}

TEST(HistoryOf, NothingIsNominatedWhereNothingChanged) {
  int shifts = 0;
  for (uint64_t seed = 0; seed < 300; ++seed)
    shifts += !history_of(line(), points(100, 100, 1, seed)).shifts.empty();
  EXPECT_LE(shifts, 12);  // 1%, and what chance adds
}

TEST(HistoryOf, TwoShiftsAreTwo) {
  int two = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    auto all = points(60, 30, 1.2, seed);
    for (size_t i = 45; i < 60; ++i) all[i].seconds /= 1.3;
    const History history = history_of(line(), all);
    two += history.shifts.size() == 2 && history.shifts[0].at == 30 && history.shifts[1].at == 45;
  }
  EXPECT_GE(two, 180);  // 3% by chance in three parts, and few whose noise is taken for a slow drift
}

TEST(HistoryOf, AnAcceptedStepIsNoAlertAndWhatFollowsIsJudgedFromThere) {
  auto all = points(60, 40, 1.07);
  all[40].accepted = "meant";
  const History history = history_of(line(), all);
  ASSERT_EQ(history.shifts.size(), 1u);
  EXPECT_FALSE(history.shifts[0].open());
  EXPECT_EQ(history.shifts[0].note, "meant");
  EXPECT_NEAR(history.shifts[0].ratio, 1.07, 0.01);
  for (size_t i = 50; i < 60; ++i) all[i].seconds *= 1.1;
  EXPECT_EQ(history_of(line(), all).open_shifts(), 1u);
}

TEST(HistoryOf, SingleSlowRunsAreNoShifts) {
  int with_names = 0, found = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(1000 + seed);
    std::uniform_real_distribution<double> chance;
    auto still = points(100, 100, 1, seed), stepped = points(100, 60, 1.05, seed);
    for (auto* all : {&still, &stepped})
      for (auto& point : *all)
        if (chance(random) < 0.05) point.seconds *= 1.1 + 0.4 * chance(random);
    with_names += history_of(line(), still).shifts.empty() ? 0 : 1;
    const auto shifts = history_of(line(), stepped).shifts;
    found += std::ranges::any_of(shifts, [](const Shift& s) { return 58 <= s.at && s.at <= 62; }) ? 1 : 0;
  }
  EXPECT_LE(with_names, 10);  // 5% and chance
  EXPECT_GE(found, 180);
}

TEST(HistoryOf, OfMostlyEqualTimesTheLevelIsTheirs) {
  auto all = points(40, 40, 1);
  for (size_t i = 0; i < 40; ++i) all[i].seconds = i == 7 ? 0.03 : i % 9 == 0 ? 0.011 : 0.010;
  EXPECT_TRUE(history_of(line(), all).shifts.empty());
}

TEST(HistoryOf, MarksSayWhatChanged) {
  auto all = points(20, 20, 1);
  for (size_t i = 5; i < 20; ++i) all[i].packages = R"({"torch":"2.13.0","numpy":"2.4.0"})";
  for (size_t i = 7; i < 20; ++i) all[i].commit = "0123456789abcdef0123456789abcdef01234567";
  for (size_t i = 9; i < 20; ++i) all[i].host = "b", all[i].script = "x", all[i].bakeoff_version = "2";
  const History history = history_of(line(), all);
  ASSERT_EQ(history.marks.size(), 3u);
  EXPECT_EQ(history.marks[0].at, 5u);
  EXPECT_TRUE(history.marks[0].packages);
  EXPECT_EQ(history.marks[0].changes,
            (std::vector<std::string>{"numpy 2.4.0 is new", "torch 2.12.0 -> 2.13.0"}));
  EXPECT_EQ(history.marks[1].changes, (std::vector<std::string>{"commit 012345678"}));
  EXPECT_EQ(history.marks[2].changes,
            (std::vector<std::string>{"bakeoff  -> 2", "its script", "host  -> b"}));
}

TEST(HistoryOf, AShiftNamesWhatChangedBesideIt) {
  auto all = points(60, 40, 1.2);
  for (size_t i = 40; i < 60; ++i) all[i].packages = R"({"torch":"2.13.0"})";
  const History history = history_of(line(), all);
  ASSERT_EQ(history.shifts.size(), 1u);
  EXPECT_EQ(history.shifts[0].changes, (std::vector<std::string>{"torch 2.12.0 -> 2.13.0"}));
}

TEST(HistoryOf, FewPointsAndNoneAreNoError) {
  EXPECT_TRUE(history_of(line(), {}).shifts.empty());
  EXPECT_TRUE(history_of(line(), points(1, 1, 1)).shifts.empty());
  EXPECT_TRUE(history_of(line(), points(7, 4, 2)).shifts.empty());
  auto broken = points(10, 10, 1);
  broken[3].packages = "no JSON";
  EXPECT_EQ(history_of(line(), broken).points.size(), 10u);
}

TEST(History, LinesHaveTitlesThatPeopleRead) {
  const struct {
    const char *framework, *id, *title;
  } cases[] = {
      {"keras", "keras[backend=tensorflow]", "net, Keras on TensorFlow"},
      {"torch", "torch", "net, PyTorch"},
      {"torch", "torch[channels_last,compile=default]", "net, PyTorch · compile = default, channels_last"},
      {"torch", "torch[cpus=0,2-3]", "net, PyTorch · cpus = 0,2-3"},
      {"torch", "mine", "net, mine"},
      {"", "torch[workers=2]", "as it is"}};
  for (const auto& one : cases)
    EXPECT_EQ(
        title_of({.name = "as it is", .recipe = "net", .contender = one.id, .framework = one.framework}),
        one.title);
  const std::vector<store::Line> lines = {{.id = "aaaa1111",
                                           .name = "net keras[backend=jax]",
                                           .recipe = "net",
                                           .contender = "keras[backend=jax]",
                                           .framework = "keras"}};
  EXPECT_EQ(lines_named(lines, "Keras on JAX").size(), 1u);
  EXPECT_EQ(lines_named(lines, "keras[backend=jax]").size(), 1u);
}

TEST(LinesNamed, ByIdNameAndPart) {
  const std::vector<store::Line> lines = {{.id = "aaaa1111", .name = "net torch"},
                                          {.id = "bbbb2222", .name = "net torch[compile=default]"},
                                          {.id = "cccc3333", .name = "net jax"}};
  EXPECT_EQ(lines_named(lines, "").size(), 3u);
  EXPECT_EQ(lines_named(lines, "bbbb").size(), 1u);
  EXPECT_EQ(lines_named(lines, "bbb").size(), 0u);  // too short for an id
  EXPECT_EQ(lines_named(lines, "net torch").size(), 1u);
  EXPECT_EQ(lines_named(lines, "torch").size(), 2u);
  EXPECT_EQ(lines_named(lines, "keras").size(), 0u);
}

}  // namespace
}  // namespace bakeoff
