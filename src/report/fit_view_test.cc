#include "report/fit_view.h"

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

Summary with_fit() {
  Summary s = sample_summary(10);
  s.fit_facts = {"41 epochs of 60,000 rows", 41, 3, 10'000, 10'000, 0.1};
  FitRow first{.contender = s.ranked[0].contender.id, .group = "float32", .seeds = 3};
  first.seconds = {37.62, 38.06, 39.0};
  first.epoch_s = 0.912;
  first.start_up_s = 2.5;
  first.wait_s = 1.18;
  first.over_steps = 1.083;
  first.loss = SeedRange{0.0121, 0.0123, 0.0127};
  first.held_loss = SeedRange{0.03, 0.0311, 0.032};
  first.accuracy = SeedRange{0.9901, 0.9908, 0.9911};
  FitRow second{.contender = s.ranked[1].contender.id, .group = "float32", .seeds = 1};
  second.seconds = {80, 80, 80};
  second.epoch_s = 1.95;
  second.loss = SeedRange{0.5, 0.5, 0.5};
  second.accuracy = SeedRange{0.85, 0.85, 0.85};
  second.far = true;
  second.note = "its loss of 0.5 is 0.49 away <b>from</b> its group's";
  FitRow dead{.contender = s.ranked[2].contender.id, .note = "run: exit code 1"};
  s.fit = {first, second, dead};
  return s;
}

TEST(FitCells, SayHowLongAndHowWell) {
  const auto rows = fit_cells(with_fit());
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].seconds, "38.1 (37.6 to 39.0)");
  EXPECT_EQ(rows[0].epoch, "0.912");
  EXPECT_EQ(rows[0].wait, "3.1%");
  EXPECT_EQ(rows[0].over_steps, "1.08 ×");
  EXPECT_EQ(rows[0].accuracy, "99.08% (99.01% to 99.11%)");
  EXPECT_FALSE(rows[0].bad);
  EXPECT_EQ(rows[1].seconds, "80.0");
  EXPECT_EQ(rows[1].wait, "–");
  EXPECT_EQ(rows[1].held_loss, "–");
  EXPECT_TRUE(rows[1].bad);
  EXPECT_EQ(rows[2].seconds, "–");
  EXPECT_EQ(rows[2].note, "run: exit code 1");
}

TEST(Fit, StandsInEveryFormat) {
  const Summary s = with_fit();
  const std::string terminal = render_terminal(s, {.width = 200});
  for (const char* part : {"Whole training: 41 epochs of 60,000 rows", "38.1 (37.6 to 39.0)", "99.08%",
                           "run: exit code 1", "losses 10% apart may be chance"})
    EXPECT_THAT(terminal, HasSubstr(part));
  for (int width = 40; width <= 200; width += 10) {
    const std::string plain = render_terminal(s, {.width = width});
    for (size_t at = 0, end; (end = plain.find('\n', at)) != std::string::npos; at = end + 1)
      ASSERT_LE(display_width(plain.substr(at, end - at)), width) << plain.substr(at, end - at);
  }
  const std::string html = render_html(s);
  EXPECT_THAT(html, HasSubstr("<section id=\"fit\">"));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;from"));
  EXPECT_THAT(html, HasSubstr("<span class=\"parity bad\">0.5"));
  const std::string markdown = render_markdown(s);
  EXPECT_THAT(markdown, HasSubstr("**Whole training: 41 epochs of 60,000 rows**"));
  EXPECT_THAT(markdown, HasSubstr("| 38.1 (37.6 to 39.0) | 0.912 | 3.1% | 1.08 × |"));
  EXPECT_THAT(markdown, Not(HasSubstr("<b>from")));
  EXPECT_THAT(render_csv(s), HasSubstr("fit_epochs,fit_seeds,fit_seconds,fit_seconds_per_epoch"));
  EXPECT_THAT(render_csv(s), HasSubstr(",41,3,38.06,0.912,1.18,2.5,0.0123,0.0311,0.9908\r\n"));
  const auto json = nlohmann::json::parse(render_json(s));
  EXPECT_EQ(json["fit"]["epochs"], 41);
  const auto& rows = json["fit"]["rows"];
  EXPECT_EQ(rows[0]["seconds"]["value"], 38.06);
  EXPECT_EQ(rows[0]["accuracy"]["most"], 0.9911);
  EXPECT_TRUE(rows[1]["far_from_group"]);
  EXPECT_TRUE(rows[1]["held_out_loss"].is_null());
  EXPECT_TRUE(rows[2]["seconds"].is_null());
}

TEST(Fit, SaysWhatAccuracyIsOf) {
  Summary s = with_fit();
  EXPECT_THAT(fit_legend(s), HasSubstr("accuracy of 10,000 rows that nobody trained on"));
  s.fit_facts.held = 0;
  EXPECT_THAT(fit_legend(s), HasSubstr("accuracy of the same rows"));
  s.fit_facts.seeds = 1;
  EXPECT_THAT(fit_legend(s), HasSubstr("One training each"));
}

TEST(Fit, LeavesNoTraceWhereThereIsNone) {
  const Summary none = sample_summary(10);
  EXPECT_THAT(render_terminal(none, {.width = 200}), Not(HasSubstr("Whole training")));
  EXPECT_THAT(render_html(none), Not(HasSubstr("id=\"fit\"")));
  EXPECT_THAT(render_csv(none), Not(HasSubstr("fit_")));
  EXPECT_FALSE(nlohmann::json::parse(render_json(none)).contains("fit"));
}

}  // namespace
}  // namespace bakeoff::report
