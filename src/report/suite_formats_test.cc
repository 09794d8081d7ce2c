// The table of a suite in every format and at every width.

#include "report/suite_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/suite_page.h"
#include "report/suite_sections.h"
#include "table/text.h"

namespace bakeoff::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

suite::TableCell timed(double ratio, bool sure = false, bool may_be = false) {
  suite::TableCell cell{.standing = suite::Standing::kTimed, .ratio = {ratio, ratio * 0.98, ratio * 1.02}};
  if (ratio == 1) cell.ratio = {1, 1, 1};
  cell.ms = 4 * ratio;
  cell.samples_per_second = 1e6 / ratio;
  cell.surely_fastest = sure;
  cell.may_be_fastest = sure || may_be;
  cell.against = PairRatio{.ratio = {ratio, ratio, ratio}};
  cell.speed = {1 / ratio, 1 / ratio, 1 / ratio};
  cell.verdict = PairVerdict::kSlower;
  return cell;
}

suite::Table sample_table() {
  suite::Table t{.title = "quick <suite>", .baseline = "keras[backend=tensorflow,jit_compile]"};
  t.contenders = {"torch", "keras[backend=tensorflow,jit_compile]", "jax", "slow|one"};
  t.rows = {{.name = "mlp_small",
             .recipe = "/r/mlp.toml",
             .folder = "01-mlp_small",
             .decided = true,
             .alpha = 0.01},
            {.name = "digits_cnn", .recipe = "/r/d.toml", .folder = "02-digits_cnn", .note = "interrupted"},
            {.name = "broken", .folder = "03-broken", .failure = "r.toml:3: unknown key 'bacth'"}};
  suite::TableCell failed{.standing = suite::Standing::kNotRanked, .reason = "run: crashed <x>"};
  suite::TableCell bound{.standing = suite::Standing::kBound, .ratio = {10, 10, INFINITY}};
  t.rows[0].cells = {timed(1, true), timed(1.072), failed, bound};
  t.rows[1].cells = {timed(1, false, true), timed(1.01, false, true), timed(3), suite::TableCell{}};
  t.rows[2].cells.resize(4);
  t.rows[0].best = {"torch"};
  t.rows[0].sure = true;
  t.rows[1].best = {"torch", t.baseline};
  t.mean_rows = {0, 1};
  t.means.resize(4);
  t.means[0] = {
      .compared = true, .ratio = {1, 1, 1}, .to_best = {1, 1, 1}, .may_be_best = true, .surely_best = true};
  t.means[1] = {.compared = true, .ratio = {1.04, 1.02, 1.06}, .to_best = {1.04, 1.02, 1.06}};
  t.means[0].speed = Estimate{1.04, 1.02, 1.06};
  t.means[0].verdict = PairVerdict::kFaster;
  t.means[1].speed = Estimate{1, 1, 1};
  t.means[1].verdict = PairVerdict::kBaseline;
  t.means[2].why_not = "not ranked in mlp_small";
  t.means[3].why_not = "only a bound in mlp_small";
  t.alpha = 0.02;
  return t;
}

// Without white space: where a name is broken says nothing.
std::string packed(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

TEST(SuiteFormats, NoContenderIsLeftOutAtAnyWidth) {
  for (const int width : {1, 40, 60, 80, 120, 200}) {
    SCOPED_TRACE(width);
    const std::string text = render_terminal(sample_table(), {.width = width});
    for (const char* part : {"slow|one", "jax", "torch", "geometric", "1.072", "≥10.0", "✗", "broken",
                             "unknownkey'bacth'", "crashed<x>", "Withoutamean:jax(notrankedinmlp_small)",
                             "2of3races", "2%atmost", "Notinthemean:broken", "1.000●", "1.010○"})
      EXPECT_THAT(packed(text), HasSubstr(part));
    // Where one block holds all contenders without intervals, but not with them, they give way.
    EXPECT_EQ(packed(text).find("[1.051,1.093]") == std::string::npos, width == 80) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(table::display_width(line), std::max(width, 40)) << line;
  }
}

TEST(SuiteFormats, WithoutVerdictsTheTitleAndTheReasonAreSaid) {
  suite::Table t = sample_table();
  t.title = "suite";
  t.mean_rows.clear();
  t.means.assign(4, suite::Mean{});
  for (suite::TableRow& row : t.rows) {
    if (row.failure.empty()) row.refusal = "this host was busy throughout";
  }
  for (const std::string& text :
       {render_terminal(t, {.width = 200}), render_markdown(t), render_suite_page(t)}) {
    EXPECT_THAT(text, HasSubstr("suite of 3 recipes"));
    EXPECT_THAT(text, HasSubstr("No verdict in any race (busy host), so there is no geometric mean."));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("No two contenders")));
    EXPECT_THAT(text, HasSubstr("4.00")) << "the least step time of a row";
  }
  t.rows[0].refusal.clear();
  EXPECT_THAT(suite::headline(t), HasSubstr("No verdict in 1 of 2 races (busy host), and no two"));
}

TEST(SuiteFormats, SayWhoHadNoHeatAndWhatIsLeftToDecide) {
  suite::Table t = sample_table();
  t.rows[0].cells[2] = {.standing = suite::Standing::kWaits, .reason = "the run ended before its first heat"};
  t.rows[1].rest = "About 6 more minutes (5 heats) decide it.";
  for (const std::string& text :
       {render_terminal(t, {.width = 200}), render_markdown(t), render_suite_page(t)})
    EXPECT_THAT(text, AllOf(HasSubstr("no heat"), HasSubstr("interrupted. About 6 more minutes")));
  EXPECT_THAT(render_terminal(t, {.width = 200}), ::testing::Not(HasSubstr("✗")));
  EXPECT_EQ(nlohmann::json::parse(render_json(t))["rows"][0]["cells"]["jax"]["state"], "waits");
}

TEST(SuiteFormats, APageShadesCellsByTheirRatio) {
  const std::string html = render_suite_page(sample_table());
  for (const char* shade : {"num heat0", "num heat5", "num heat6"})
    EXPECT_THAT(html, HasSubstr(shade)) << "1, 3, 10";
}

TEST(SuiteFormats, ManyRecipesAreTheLinesOfAPagesTable) {
  suite::Table t = sample_table();
  EXPECT_THAT(render_suite_page(t), HasSubstr("<table class=\"suite \">"));
  t.rows.resize(9, t.rows[0]);
  t.rows.resize(12, t.rows[2]);
  const std::string html = render_suite_page(t);
  EXPECT_THAT(
      html,
      AllOf(HasSubstr("<table class=\"suite tall slim\">"), HasSubstr("<th scope=\"col\">recipe</th>"),
            HasSubstr("<a href=\"01-mlp_small/report.html\">mlp_small</a></th><td class=\"num heat0\"")));
  t.contenders.resize(14, "one more");
  for (suite::TableRow& row : t.rows) row.cells.resize(14);
  t.means.resize(14);
  EXPECT_THAT(render_suite_page(t), HasSubstr("<table class=\"suite cardy\">"));
}

TEST(SuiteFormats, JsonHasEveryCell) {
  const auto json = nlohmann::json::parse(render_json(sample_table()));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["rows"].size(), 3);
  EXPECT_EQ(json["rows"][0]["cells"]["jax"]["state"], "not ranked");
  EXPECT_EQ(json["rows"][0]["cells"]["slow|one"]["ratio"]["low"], 10);
  EXPECT_TRUE(json["rows"][0]["cells"]["slow|one"]["ratio"]["high"].is_null());
  EXPECT_EQ(json["rows"][1]["cells"]["slow|one"]["state"], "not in the recipe");
  EXPECT_EQ(json["rows"][2]["failure"], "r.toml:3: unknown key 'bacth'");
  EXPECT_EQ(json["geometric_mean"]["rows"], nlohmann::json({"mlp_small", "digits_cnn"}));
  EXPECT_EQ(json["geometric_mean"]["error_rate"], 0.02);
  EXPECT_EQ(json["geometric_mean"]["contenders"]["jax"]["why_not"], "not ranked in mlp_small");
}

TEST(SuiteFormats, CsvHasALineForEachCellAndMean) {
  const std::string csv = render_csv(sample_table());
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 4 + 4 + 1 + 4);
  EXPECT_THAT(csv, AllOf(HasSubstr("mlp_small,01-mlp_small,jax,not ranked,"), HasSubstr("run: crashed <x>"),
                         HasSubstr("broken,03-broken,,"), HasSubstr("geometric mean,,torch,ranked,1,1,1")));
}

TEST(SuiteFormats, MarkdownAndHtmlAreEscaped) {
  EXPECT_THAT(render_markdown(sample_table()), AllOf(HasSubstr("**Bakeoff: suite quick \\<suite\\>**"),
                                                     HasSubstr("slow\\|one"), HasSubstr("1.000 ●")));
  const std::string html = render_suite_page(sample_table());
  EXPECT_THAT(
      html,
      AllOf(HasSubstr("quick &lt;suite&gt;"), HasSubstr("<a href=\"01-mlp_small/report.html\">mlp_small</a>"),
            HasSubstr("crashed &lt;x&gt;"), HasSubstr("geometric mean"),
            HasSubstr("Bar chart: times as fast as"), ::testing::Not(HasSubstr("href=\"03-broken"))));
}

TEST(SuiteFormats, AnEmptySuiteIsATableWithoutRows) {
  const suite::Table none{.title = "none"};
  EXPECT_THAT(render_terminal(none, {.width = 80}), HasSubstr("no geometric mean"));
  EXPECT_THAT(render_suite_page(none), HasSubstr("no geometric mean"));
  EXPECT_EQ(nlohmann::json::parse(render_json(none))["rows"].size(), 0);
  EXPECT_EQ(render_csv(none), "");
  render_markdown(none);
}

}  // namespace
}  // namespace bakeoff::report
