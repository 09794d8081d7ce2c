#include "regression/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "table/text.h"

namespace bakeoff::regression {
namespace {

Summary run(double ms, const std::string& version = "2.12.0") {
  Summary summary{.run = "runs/a", .batch = 64};
  summary.manifest.workload_text = "workload";
  summary.manifest.host = {.name = "box", .cpu = "cpu", .cpus = 2};
  summary.manifest.recipe_file = "mnist.toml";
  for (const char* id : {"torch", "jax"})
    summary.ranked.push_back({.contender = {.id = id},
                              .heat_ms = {ms, 1.01 * ms, 0.99 * ms, ms, 1.01 * ms, 0.99 * ms},
                              .versions = {{id, version}}});
  return summary;
}

TEST(Compare, EqualRunsDifferInNothing) {
  const Comparison same = compare(run(10), run(10));
  EXPECT_TRUE(same.differences.empty());
  ASSERT_EQ(same.rows.size(), 2U);
  EXPECT_LT(same.rows[0].ratio->low, 1);
  EXPECT_GT(same.rows[0].ratio->high, 1);
  EXPECT_NE(to_text(same, 80).find("no proof"), std::string::npos);
  EXPECT_NE(same.gate.find("OLD_COMMIT"), std::string::npos);
}

TEST(Compare, NamesVersionsAndTheGateThatDecides) {
  const Comparison c = compare(run(10), run(12, "2.13.0"));
  ASSERT_EQ(c.differences.size(), 2U);
  EXPECT_EQ(c.differences[0], (Difference{"version of torch", "2.12.0", "2.13.0", "torch"}));
  EXPECT_NEAR(c.rows[0].ratio->value, 1.2, 1e-9);
  EXPECT_GT(c.rows[0].ratio->low, 1.1);
  EXPECT_EQ(c.gate, "bakeoff gate --base OLD_ENVIRONMENT --head NEW_ENVIRONMENT mnist.toml");
}

TEST(Compare, NoIntervalWhereItWouldMeanNothing) {
  Summary other = run(12);
  other.manifest.host.cpu = "another";
  Comparison c = compare(run(10), other);
  EXPECT_FALSE(c.same_machine);
  EXPECT_FALSE(c.rows[0].ratio) << "they were never paired";
  other = run(12);
  other.batch = 32;
  c = compare(run(10), other);
  EXPECT_FALSE(c.same_work);
  EXPECT_EQ(c.rows[0].ratio->low, 0);
  other = run(12);
  other.ranked[0].heat_ms = {12, 12};
  c = compare(run(10), other);
  EXPECT_EQ(c.rows[0].ratio->low, 0);
  EXPECT_TRUE(nlohmann::json::parse(to_json(c))["contenders"][0]["ratio"]["low"].is_null());
}

TEST(Compare, OfTwoMachinesEachHasItsRanking) {
  Summary here = run(10), there = run(3);
  there.manifest.host.cpu = "another";
  for (Summary* one : {&here, &there}) {
    one->currency = "USD";
    one->ranked[0].rank_best = one->ranked[0].rank_worst = 1;
    one->ranked[1].rank_best = 1;
    one->ranked[1].rank_worst = 2;
    one->ranked[1].ratio = {1.25, 1.2, 1.3};
    one->ranked[0].epoch = {.samples_per_joule = 4, .samples_per_unit = 2e6};
  }
  const Comparison c = compare(here, there);
  EXPECT_EQ(c.gate, "") << "no gate can race two machines";
  const std::string wide = to_text(c, 200), narrow = to_text(c, 60);
  for (const std::string& text : {wide, narrow}) {
    EXPECT_NE(text.find("0.25"), std::string::npos) << "J a sample\n" << text;
    EXPECT_NE(text.find("1-2"), std::string::npos) << text;
    EXPECT_NE(text.find("never paired"), std::string::npos) << text;
    EXPECT_EQ(text.find("3.333"), std::string::npos) << "no ratio of times\n" << text;
    EXPECT_EQ(text.find("0.300"), std::string::npos) << text;
  }
  const auto json = nlohmann::json::parse(to_json(c));
  EXPECT_TRUE(json["contenders"][0]["ratio"].is_null());
  EXPECT_EQ(json["contenders"][0]["second"]["price_per_million_samples"], 0.5);
}

TEST(Compare, OfAFleetEachHasItsRanking) {
  Summary fleet = run(12);
  fleet.fleet = true;
  fleet.currency = "EUR";
  const Comparison c = compare(run(10), fleet);
  EXPECT_FALSE(c.rows[0].ratio) << "the host of a fleet's run is one of its nodes";
  EXPECT_EQ(c.gate, "");
  EXPECT_NE(to_text(c, 200).find("no price, EUR"), std::string::npos);
  const auto json = nlohmann::json::parse(to_json(c));
  EXPECT_EQ(json["second"]["currency"], "EUR");
}

TEST(Compare, ContendersOfOneRunAlone) {
  Summary other = run(10);
  other.ranked[0].contender.id = "keras\x1b[31m<b>";
  const Comparison c = compare(run(10), other);
  EXPECT_EQ(c.first_alone, std::vector<std::string>{"torch"});
  EXPECT_EQ(c.second_alone.size(), 1U);
  EXPECT_EQ(to_text(c, 80).find('\x1b'), std::string::npos);
}

TEST(Compare, ARunThatHasRankedNobody) {
  Summary unfinished = run(10);
  unfinished.ranked.clear();
  const Comparison c = compare(run(10), unfinished);
  EXPECT_EQ(c.gate, "") << "a gate would not decide why it was not ranked";
  const std::string text = to_text(c, 200);
  EXPECT_NE(text.find("The second run has ranked no contender; `bakeoff report runs/a` says why."),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("ratios"), std::string::npos) << text;
}

TEST(Compare, LinesOfRecipes) {
  Summary first = run(10), second = run(10);
  first.manifest.recipe_text = "batch = 64\n# a comment\nlr = 1\n";
  second.manifest.recipe_text = "batch = 64\nlr = 2\n";
  const Comparison c = compare(first, second);
  ASSERT_EQ(c.differences.size(), 1U);
  EXPECT_EQ(c.differences[0], (Difference{"recipe's lines", "lr = 1", "lr = 2"}));
}

TEST(Compare, FitsATerminal) {
  Summary second = run(12, "2.13.0");
  second.ranked[0].contender.id = std::string(200, 'x');
  for (const auto& c : {compare(run(10), second), compare(second, second)}) {
    const std::string text = to_text(c, 80);
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      EXPECT_LE(table::display_width(text.substr(at, end - at)), 80) << text;
    }
  }
}

// Runs of machines that all differ, with odd prices and names.
std::vector<Summary> machines(size_t count) {
  std::vector<Summary> all;
  for (size_t i = 0; i < count; ++i) {
    Summary one = run(3 + static_cast<double>(i));
    one.run = i % 2 == 0 ? "runs/a" : "runs/\x1b[31m\u202e" + std::string(120, 'x');
    one.manifest.host.cpu = "cpu " + std::to_string(i);
    one.ranked[0].rank_best = one.ranked[0].rank_worst = 1;
    one.ranked[0].epoch = {.samples_per_unit = i % 3 == 0 ? 1e-300 : 1e300};
    one.ranked[1].ratio = {1.25, 1.2, 1.3};
    one.ranked[1].epoch = {.samples_per_unit = 0};
    all.push_back(one);
  }
  return all;
}

TEST(Rankings, OfManyMachinesFitAnyTerminal) {
  const Rankings found = rankings(machines(20));
  for (const int width : {60, 80, 200}) {
    SCOPED_TRACE(width);
    std::istringstream text(to_text(found, width));
    int heads = 0;
    for (std::string line; std::getline(text, line);) {
      EXPECT_LE(table::display_width(line), width) << line;
      EXPECT_EQ(line.find('\x1b'), std::string::npos);
      if (line.find("PyTorch") == 0 || line.find("torch") == 0) ++heads;
    }
    EXPECT_EQ(heads, width == 200 ? 4 : 20) << "no run is left out";
  }
}

TEST(Rankings, HaveNoRatioOfTwoRunsInAnyFormat) {
  std::vector<Summary> all = machines(3);
  all[1].ranked.erase(all[1].ranked.begin() + 1);
  all[2].batch = 32;
  const Rankings found = rankings(all);
  EXPECT_FALSE(found.same_work);
  EXPECT_FALSE(found.runs[1].places[1]) << "jax is not ranked there";
  for (const std::string& text : {to_text(found, 80), to_json(found), to_csv(found)})
    for (const char* ratio : {"1.333", "1.667", "0.75", "0.600"})
      EXPECT_EQ(text.find(ratio), std::string::npos) << text;
  const auto json = nlohmann::json::parse(to_json(found));
  EXPECT_EQ(json["runs"][1]["contenders"].size(), 1U);
  EXPECT_TRUE(json["runs"][0]["contenders"][1]["price_per_million_samples"].is_null());
  const std::string csv = to_csv(found);
  EXPECT_EQ(std::ranges::count(csv, '\n'), 6) << csv;
}

}  // namespace
}  // namespace bakeoff::regression
