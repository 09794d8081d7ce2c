#include "report/explain_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/chart_waterfall.h"
#include "report/sample_summary_testing.h"

namespace bakeoff::report {
namespace {

namespace ex = bakeoff::explain;
using ::testing::HasSubstr;
using ::testing::Not;

ex::Subject subject(const std::string& name, double step_s) {
  ex::Subject s{.name = name};
  s.profile = {.phases = {{"steps", "steps", 1.0}}, .total_s = 1.0, .steps = 100, .step_s = step_s};
  s.seen.facts = {{"torch", {{"parameters", 10}, {"batch", 10}}}};
  return s;
}

ex::Explanation explained() {
  ex::Explanation e{.subjects = {subject("slow<b>.py", 0.1), subject("fast.py", 0.02)}};
  e.gap = Estimate{5, 4.8, 5.2};
  for (const ex::Rule& rule : ex::rules()) {
    const std::string key = rule.key;
    if (key != "collections" && key != "anomaly" && key != "threads") continue;
    ex::Cause cause{.suspect = {.rule = &rule, .suspicion = {.evidence = "it was seen"}}};
    cause.measured = key == "anomaly" ? Estimate{2, 1.9, 2.1} : Estimate{2.3, 2.2, 2.4};
    cause.finding = key == "threads" ? ex::Finding::kNoGain : ex::Finding::kConfirmed;
    e.causes.push_back(cause);
  }
  e.together = Estimate{4.5, 4.3, 4.7};
  e.residual = Estimate{1.1, 1.05, 1.15};
  return e;
}

TEST(ExplainPage, ShowsCausesAndWhatWasTried) {
  const std::string page = render_explanation(explained());
  keep_page("explain", page);
  for (const char* text :
       {"gap confirmed", "it collects garbage at each step", "anomaly detection is on",
        "Tried and not confirmed", "Where the time of a sample goes", "not explained", "slow&lt;b&gt;.py"})
    EXPECT_THAT(page, HasSubstr(text));
  EXPECT_THAT(page, Not(HasSubstr("slow<b>")));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(ExplainPage, NamesNoCauseWithoutAGap) {
  ex::Explanation e = explained();
  e.equal = true;
  e.gap = Estimate{1, 0.99, 1.01};
  const std::string page = render_explanation(e);
  EXPECT_THAT(page, HasSubstr("There is no gap"));
  EXPECT_THAT(page, Not(HasSubstr("<b>it collects garbage")));
  EXPECT_EQ(waterfall_chart(e, 900), "");
}

// 10 ms of a sample, of which all changes leave 10 / 4.5.
TEST(Waterfall, SharesAddUp) {
  const std::string chart = waterfall_chart(explained(), 900);
  EXPECT_THAT(chart, HasSubstr("slow&lt;b&gt;.py: 10.0 ms"));
  EXPECT_THAT(chart, HasSubstr("with all changes: 2.22 ms"));
  EXPECT_THAT(chart, HasSubstr("fast.py: 2.00 ms"));
}

}  // namespace
}  // namespace bakeoff::report
