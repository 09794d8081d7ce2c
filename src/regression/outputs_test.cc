#include "regression/outputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "stats/interval.h"
#include "table/text.h"

namespace bakeoff::regression {
namespace {

Row regression(const std::string& name, double low = 1.04) {
  return {.contender = name,
          .name = name,
          .file = "train.py",
          .change = stats::Change::kRegression,
          .end = stats::NextStep::What::kDecided,
          .ratio = {low + 0.01, low, low + 0.02},
          .base_ms = 100,
          .head_ms = 105,
          .heats = 6,
          .noise = 0.01};
}
Row equal(const std::string& name) {
  Row row = regression(name, 0.98);
  row.change = stats::Change::kNone;
  return row;
}
Row open(const std::string& name) {
  Row row = regression(name, 0.9);
  row.change = stats::Change::kUndecided;
  row.end = stats::NextStep::What::kTooNoisy;
  row.outlook = {.reachable_margin = 0.057, .decides_s = 4000, .too_noisy = true};
  return row;
}

Outcome outcome(std::vector<Row> rows) {
  return {.base = {"main", "1234 old"},
          .head = {"HEAD", "5678 new"},
          .target = "train.py",
          .per = "step",
          .rows = std::move(rows),
          .seconds = 90};
}

const std::string kHostile = "a<b>&\"'\x1b[31m\n::error::pwned\r%0A,x:y]]>|`**\xff";

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

TEST(Verdict, OfAllContenders) {
  EXPECT_EQ(exit_code(outcome({equal("a"), equal("b")})), 0);
  EXPECT_EQ(exit_code(outcome({equal("a"), open("b")})), 3);
  EXPECT_EQ(exit_code(outcome({regression("a"), open("b")})), 1);
  EXPECT_EQ(exit_code(outcome({})), 3) << "nothing raced, nothing is green";
  Outcome stopped = outcome({equal("a")});
  stopped.interrupted = true;
  EXPECT_EQ(exit_code(stopped), 130);
}

TEST(Verdict, OfOneHeatSaysThatItIsTooFewForAnInterval) {
  Row one = open("a");
  one.ratio = {.value = 444, .low = 0, .high = std::numeric_limits<double>::infinity()};
  one.heats = 1;
  EXPECT_EQ(
      sentence(one, outcome({one})),
      "UNDECIDED: a takes 444 times as long as before, in 1 heat, too few for an interval: whether it is more "
      "than 2% slower is not decided.");
  one.change = stats::Change::kRegression;
  one.ratio = {.value = 444, .low = 1.5, .high = 1e6};
  EXPECT_EQ(sentence(one, outcome({one})),
            "REGRESSION: a takes 444 times as long as before, [1.500, ∞): more than 2% slower.");
}

TEST(Junit, CasesByVerdict) {
  const std::string text = to_junit(outcome({regression("a"), equal("b"), open("c")}));
  EXPECT_NE(text.find("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), std::string::npos) << text;
  EXPECT_EQ(count(text, "<testcase "), 3U);
  EXPECT_EQ(count(text, "<failure "), 1U);
  EXPECT_EQ(count(text, "<skipped "), 1U);
}

TEST(Junit, HostileNamesStayText) {
  Outcome hostile = outcome({regression(kHostile)});
  hostile.head.name = kHostile;
  const std::string text = to_junit(hostile);
  EXPECT_EQ(count(text, "<b>"), 0U);
  EXPECT_EQ(count(text, "\x1b"), 0U);
  EXPECT_EQ(count(text, "<testcase "), 1U);
  EXPECT_NE(text.find("&lt;b&gt;&amp;&quot;&apos;"), std::string::npos) << text;
  EXPECT_EQ(count(junit_of_error(kHostile, {.message = kHostile}), "<b>"), 0U);
}

TEST(Annotations, AreOneLineEach) {
  Outcome hostile = outcome({regression(kHostile)});
  hostile.rows[0].file = "a,b:c%\n.py";
  const std::string text = to_annotations(hostile);
  EXPECT_EQ(count(text, "\n"), 1U) << text;
  EXPECT_EQ(text.rfind("::error file=a%2Cb%3Ac%25", 0), 0U) << text;
  EXPECT_EQ(count(text, "\r"), 0U);
  EXPECT_EQ(count(annotation_of_error({.message = "a\nb::error::c"}), "\n"), 1U);
}

TEST(Annotations, TheWorstTen) {
  std::vector<Row> rows;
  for (int i = 0; i < 15; ++i) rows.push_back(regression("c" + std::to_string(i), 1.05 + 0.01 * i));
  rows.push_back(open("z"));
  const std::string text = to_annotations(outcome(rows));
  EXPECT_EQ(count(text, "::error "), kMostAnnotations);
  EXPECT_EQ(count(text, "::warning "), 0U);
  EXPECT_NE(text.find("c14"), std::string::npos);
  EXPECT_EQ(text.find("title=bakeoff gate%3A c0:"), std::string::npos);
  EXPECT_EQ(count(to_annotations(outcome({equal("a")})), "::"), 0U);
}

TEST(StepSummary, HostileNamesStayText) {
  const std::string text = to_step_summary(outcome({regression(kHostile)}));
  EXPECT_EQ(text.find("<b>"), std::string::npos);
  EXPECT_EQ(count(text, "\n|"), 3U) << text;
}

TEST(StepSummary, IsCutAtItsCap) {
  std::string text;
  while (text.size() < kStepSummaryBytes) text += "a line of a summary\n";
  EXPECT_EQ(fitted_summary("short\n", 0), "short\n");
  for (const size_t before : {size_t{0}, size_t{500000}, kStepSummaryBytes - 10, 2 * kStepSummaryBytes}) {
    const std::string cut = fitted_summary(text, before);
    EXPECT_LE(before < kStepSummaryBytes ? cut.size() + before : cut.size(),
              before < kStepSummaryBytes ? kStepSummaryBytes : 0);
  }
  EXPECT_NE(fitted_summary(text, 0).find("did not fit"), std::string::npos);
}

TEST(GitLab, OneIssueForEachRegression) {
  const auto json = nlohmann::json::parse(to_gitlab(outcome({regression("a"), equal("b"), open("c")})));
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["severity"], "major");
  EXPECT_EQ(json[0]["location"]["path"], "train.py");
  EXPECT_EQ(json[0]["location"]["lines"]["begin"], 1);
  EXPECT_EQ(json[0]["fingerprint"].get<std::string>().size(), 64U);
  EXPECT_EQ(to_gitlab(outcome({equal("b")})), "[]\n");
}

TEST(Json, HoldsWhatWasFound) {
  Outcome some = outcome({open(kHostile)});
  some.rows[0].ratio.high = stats::kInfinity;
  const auto json = nlohmann::json::parse(to_json(some));
  EXPECT_EQ(json["verdict"], "undecided");
  EXPECT_EQ(json["exit_code"], 3);
  EXPECT_TRUE(json["contenders"][0]["ratio"]["high"].is_null());
  EXPECT_EQ(json["contenders"][0]["budget_that_decides_s"], 4000);
}

TEST(Text, SaysWhatDecidesAndFits) {
  const std::string text = to_text(outcome({open("train.py"), regression("b")}), 80);
  EXPECT_NE(text.find("--margin 6%"), std::string::npos) << text;
  EXPECT_NE(text.find("REGRESSION: b takes 1.050 times"), std::string::npos) << text;
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    EXPECT_LE(table::display_width(text.substr(at, end - at)), 80);
  }
}

}  // namespace
}  // namespace bakeoff::regression
