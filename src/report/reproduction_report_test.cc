// A replayed study in every format and width.

#include "report/reproduction_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/texts.h"
#include "report/sample_summary_testing.h"
#include "table/text.h"

namespace bakeoff::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kOpen = std::numeric_limits<double>::infinity();

suite::Reproduction sample() {
  recipe::PublishedStudy study{.name = "mine",
                               .title = "Keras <against> torch",
                               .source = "somebody\x1b[31m, 2025",
                               .unit = "ms a step",
                               .gpu = "an A100",
                               .compared = {"Settings out of the box."}};
  study.confounds = {{.name = "XLA", .what = "On and off.", .settings = {"jit_compile"}},
                     {.name = "TF32", .what = "On and off.", .why_not = "no GPU"}};
  const std::string keras = "keras[backend=tensorflow,jit_compile=false]";
  suite::ReplayedRow row{
      .row = {.name = "SAM fit", .recipe = "sam.toml", .instead = "2 layers", .references = {"torch"}},
      .folder = "01-sam",
      .title = "sam_encoder_tiny",
      .alpha = 0.01,
      .margin = 0.05};
  row.contenders = {
      {.id = keras, .framework = "keras", .settings = {{"backend", "tensorflow"}, {"jit_compile", "false"}}},
      {.id = "torch", .framework = "torch"}};
  row.lines = {
      {.contender = keras,
       .reference = "torch",
       .published = 0.27,
       .today = PairRatio{.a = keras, .b = "torch", .heats = 8, .ratio = {1.5, 1.4, 1.6}},
       .order = suite::Order::kReversed,
       .shares = {{"XLA", "jit_compile", keras, "false", "true", {-0.25, -0.4, -0.1}},
                  {"XLA", "jit_compile", "torch", "off", "on", {1.2, 0.4, kOpen}}}},
      {.contender = "jax", .reference = "torch", .published = 2.0, .note = "jax is not ranked: <crashed>"}};
  suite::ReplayedRow later{.row = {.name = "generate", .references = {"torch"}},
                           .failure = "cannot be raced yet"};
  later.lines = {{.contender = "jax", .reference = "torch", .published = 0.5}};
  return {.study = study, .rows = {row, later}};
}

TEST(ReproductionReport, TheTerminalSaysFirstThatItIsNoReplication) {
  for (const int width : {40, 80, 120, 200}) {
    SCOPED_TRACE(width);
    const std::string text = render_terminal(sample(), {.width = width});
    EXPECT_TRUE(text.starts_with("Not a replication: no GPU")) << text;
    for (const std::string& line : lines_of(text)) EXPECT_LE(table::display_width(line), width) << line;
    EXPECT_THAT(text, Not(HasSubstr("\x1b[31m")));
  }
  const std::string wide = render_terminal(sample(), {.width = 200});
  for (const char* part :
       {"reversed", "0.270", "[1.400, 1.600]", "-25%", "[-40%, -10%]", "120%", "jit_compile → true",
        "reference: jit_compile → on", "[40%, ∞)", "Shares above: jit_compile.",
        "Not raced: cannot be raced yet.", "TF32: On and off. No share here: no GPU.",
        "In place of the study's network: 2 layers."})
    EXPECT_THAT(wide, HasSubstr(part));
  EXPECT_THAT(render_terminal(sample(), {.width = 80}), HasSubstr("reversed"));
}

TEST(ReproductionReport, JsonHoldsNumbersAndReasons) {
  const auto json = nlohmann::json::parse(render_json(sample()));
  EXPECT_FALSE(json.at("replication").get<bool>());
  const auto& line = json.at("rows").at(0).at("contenders").at(0);
  EXPECT_EQ(line.at("published"), 0.27);
  EXPECT_EQ(line.at("here").at("low"), 1.4);
  EXPECT_EQ(line.at("order"), "reversed");
  EXPECT_EQ(line.at("shares").at(0).at("share").at("low"), -0.4);
  EXPECT_TRUE(line.at("shares").at(1).at("share").at("high").is_null());
  EXPECT_EQ(json.at("rows").at(1).at("why_not_raced"), "cannot be raced yet");
  EXPECT_EQ(json.at("confounds").at(1).at("why_no_share"), "no GPU");
}

TEST(ReproductionPage, ShowsTheStudyAndEscapesItsTexts) {
  const std::string page = render_reproduction_page(sample());
  keep_page("reproduction", page);
  for (const char* text : {"no replication", "Not a replication: no GPU",
                           "SAM fit, against PyTorch · sam_encoder_tiny · equalised track",
                           "href=\"01-sam/report.html\"", "-25%", "&lt;crashed&gt;", "cannot be raced yet"})
    EXPECT_THAT(page, HasSubstr(text));
  EXPECT_THAT(page, Not(HasSubstr("<crashed>")));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

}  // namespace
}  // namespace bakeoff::report
