#include "report/target_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/csv.h"
#include "report/html.h"
#include "report/json.h"
#include "report/markdown.h"
#include "report/sample_summary.h"
#include "report/terminal.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Summary with_target() {
  Summary s = sample_summary(10);
  s.target_text = "an accuracy of 97% on 2000 rows that are not trained on";
  TargetRow referee{.contender = "referee", .seeds = 5, .reached = 5};
  referee.steps = OverSeeds{212, {180, 250}};
  referee.epochs = OverSeeds{0.906, {0.77, 1.07}};
  TargetRow first = referee;
  first.contender = s.ranked[0].contender.id;
  first.seconds = OverSeeds{17.2, {15.1, 19.6}};
  first.start_up_s = 2.5;
  first.convergence = Convergence::kWithinChance;
  first.p = 0.41;
  first.ratio = 1.013;
  TargetRow second{.contender = s.ranked[1].contender.id, .seeds = 5, .reached = 3};
  second.convergence = Convergence::kWorse;
  second.p = 0.0012;
  second.ratio = 1.9;
  second.note = "2 of 5 trainings did not reach it <b>within</b> 5 epochs";
  s.target = {referee, first, second};
  return s;
}

TEST(TargetCells, SayHowOftenHowLongAndHowWell) {
  const auto rows = target_cells(with_target());
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "referee");
  EXPECT_EQ(rows[0].seconds, "–") << "its time is of no interest";
  EXPECT_EQ(rows[1].reached, "5 of 5");
  EXPECT_EQ(rows[1].steps, "212");
  EXPECT_EQ(rows[1].steps_interval, "[180, 250]");
  EXPECT_EQ(rows[1].seconds, "17.2");
  EXPECT_EQ(rows[1].convergence, "within chance: 1.013 × its steps, p = 0.41");
  EXPECT_EQ(rows[2].reached, "3 of 5");
  EXPECT_EQ(rows[2].steps, "–") << "no mean where some did not reach it";
  EXPECT_EQ(rows[2].convergence, "worse: 1.900 × its steps, p = 0.0012");
}

TEST(Target, StandsInEveryFormat) {
  const Summary s = with_target();
  const std::string terminal = render_terminal(s, {.width = 200});
  for (const char* part :
       {"Training to an accuracy of 97%", "3 of 5", "[180, 250]", "within chance", "worse:"})
    EXPECT_THAT(terminal, HasSubstr(part));
  for (int width = 40; width <= 200; width += 10) {
    const std::string plain = render_terminal(s, {.width = width});
    for (size_t at = 0, end; (end = plain.find('\n', at)) != std::string::npos; at = end + 1)
      ASSERT_LE(display_width(plain.substr(at, end - at)), width) << plain.substr(at, end - at);
  }
  const std::string html = render_html(s);
  EXPECT_THAT(html, HasSubstr("<section id=\"target\">"));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;within&lt;/b&gt;"));
  const std::string markdown = render_markdown(s);
  EXPECT_THAT(markdown, HasSubstr("| `tensorflow[mode=function]` | 5 of 5 | 212 [180, 250] |"));
  EXPECT_THAT(markdown, Not(HasSubstr("<b>within")));
  EXPECT_THAT(render_csv(s), HasSubstr("target_seeds,target_reached,target_steps"));
  EXPECT_THAT(render_csv(s), HasSubstr(",5,5,212,0.906,17.2,0.41\r\n"));
  const auto json = nlohmann::json::parse(render_json(s));
  EXPECT_EQ(json["target"]["target"], s.target_text);
  const auto& rows = json["target"]["rows"];
  EXPECT_EQ(rows[1]["steps"]["value"], 212);
  EXPECT_EQ(rows[1]["convergence"], "within chance");
  EXPECT_TRUE(rows[2]["steps"].is_null());
  EXPECT_TRUE(rows[0]["p"].is_null());
}

TEST(Target, LeavesNoTraceWhereThereIsNone) {
  const Summary none = sample_summary(10);
  EXPECT_THAT(render_terminal(none, {.width = 200}), Not(HasSubstr("Training to")));
  EXPECT_THAT(render_html(none), Not(HasSubstr("id=\"target\"")));
  EXPECT_THAT(render_csv(none), Not(HasSubstr("target")));
  EXPECT_FALSE(nlohmann::json::parse(render_json(none)).contains("target"));
}

}  // namespace
}  // namespace bakeoff::report
