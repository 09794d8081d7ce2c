// Effects of settings and the baseline in every format.

#include "report/effects_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "emit/all/frameworks.h"
#include "report/baseline_section.h"
#include "report/charts.h"
#include "report/csv.h"
#include "report/html.h"
#include "report/json.h"
#include "report/markdown.h"
#include "report/terminal.h"

namespace bakeoff::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

void add_row(Summary& s, const std::string& id, const std::map<std::string, std::string>& changed,
             double ratio) {
  const std::string framework = id.substr(0, id.find('['));
  Contender c{
      .id = id, .framework = framework, .settings = emit::defaults_of(*emit::find_framework(framework))};
  for (const auto& [key, value] : changed) c.settings[key] = value;
  s.manifest.contenders.push_back(c);
  s.ranked.push_back({.contender = c, .rank_best = 1, .rank_worst = 2});
  s.ranked.back().verdict = s.ranked.size() == 1 ? RowVerdict::kLeader : RowVerdict::kSlower;
  s.ranked.back().ratio = {ratio, ratio / 1.02, ratio * 1.02};
  s.ranked.back().ms_per_step = {10 * ratio, 9 * ratio, 11 * ratio};
}

Summary raced_summary() {
  Summary s{.title = "t", .decided = true, .margin = 0.03, .alpha = 0.01};
  add_row(s, "torch[compile=default]", {{"compile", "default"}}, 1);
  add_row(s, "torch", {}, 1.15);
  add_row(s, "jax", {}, 2.3);
  for (size_t a = 0; a < 3; ++a) {
    for (size_t b = 0; b < a; ++b) {
      const double r = s.ranked[a].ratio.value / s.ranked[b].ratio.value;
      s.pairs.push_back({s.ranked[a].contender.id, s.ranked[b].contender.id, 8, {r, r / 1.02, r * 1.02}});
    }
  }
  s.baseline = "torch";
  return s;
}

TEST(EffectsSection, StandsInEveryFormat) {
  const Summary s = raced_summary();
  const std::string sentence = "Set compile = default in PyTorch: 1.15x faster [1.13, 1.17] than off.";
  for (const int width : {40, 80, 200}) {
    const std::string terminal = render_terminal(s, {.width = width});
    EXPECT_THAT(terminal, HasSubstr("Effect of each setting"));
    EXPECT_THAT(terminal, HasSubstr("1.150"));
  }
  EXPECT_THAT(render_terminal(s, {.width = 120}), AllOf(HasSubstr(sentence), HasSubstr("[1.127, 1.173]")));
  EXPECT_THAT(render_markdown(s), AllOf(HasSubstr("- Set compile = default in PyTorch"),
                                        HasSubstr("**Effect of each setting, others equal**")));
  EXPECT_THAT(render_html(s), AllOf(HasSubstr("<section id=\"effects\">"), HasSubstr(sentence),
                                    HasSubstr("Bar chart: times as fast with this value")));
  const auto json = nlohmann::json::parse(render_json(s));
  EXPECT_EQ(json["effects"]["advice"][0], sentence);
  const auto& pair = json["effects"]["pairs"][0];
  EXPECT_EQ(pair["before"], "torch");
  EXPECT_EQ(pair["after"], "torch[compile=default]");
  EXPECT_NEAR(pair["times_as_fast"]["value"].get<double>(), 1.15, 1e-9);
  EXPECT_EQ(pair["verdict"], "faster");
  EXPECT_TRUE(pair["through"].is_null());
  EXPECT_THAT(render_csv(s), AllOf(HasSubstr(",effects,"), HasSubstr("compile=default against off: 1.15")));
}

TEST(EffectsSection, IsNotThereWithoutSuchPairs) {
  Summary s = raced_summary();
  s.ranked.erase(s.ranked.begin());
  EXPECT_FALSE(effects_section(s));
  s = raced_summary();
  s.refusal = "busy";
  EXPECT_FALSE(effects_section(s));
  EXPECT_FALSE(effects_section(Summary{}));
}

TEST(BaselineSection, SaysHowManyTimesAsFastInEveryFormat) {
  const Summary s = raced_summary();
  EXPECT_THAT(render_terminal(s, {.width = 100}),
              AllOf(HasSubstr("Against the baseline PyTorch"),
                    HasSubstr("PyTorch (compile = default) is 1.150x as fast as PyTorch [1.127, 1.173]."),
                    HasSubstr("0.500")));
  EXPECT_THAT(render_html(s),
              AllOf(HasSubstr("<section id=\"baseline\">"), HasSubstr("Bar chart: times as fast as PyTorch"),
                    HasSubstr("class=\"bar gain\""), HasSubstr("class=\"bar loss\"")));
  const auto json = nlohmann::json::parse(render_json(s));
  EXPECT_EQ(json["baseline"]["contender"], "torch");
  EXPECT_EQ(json["baseline"]["rows"][1]["verdict"], "baseline");
  EXPECT_NEAR(json["baseline"]["rows"][2]["times_as_fast"]["value"].get<double>(), 0.5, 1e-9);
  EXPECT_THAT(render_csv(s), HasSubstr("times_as_fast_as_baseline"));
  Summary none = raced_summary();
  none.baseline.clear();
  EXPECT_THAT(render_csv(none), Not(HasSubstr("times_as_fast_as_baseline")));
  EXPECT_FALSE(baseline_section(none));
}

TEST(BaselineSection, ABaselineThatIsNotRankedSaysWhy) {
  Summary s = raced_summary();
  s.unranked.push_back(s.ranked[1]);
  s.unranked.back().failure = Failure{Stage::kRun, "crashed <here>", {}};
  s.ranked.erase(s.ranked.begin() + 1);
  for (const std::string& text : {render_terminal(s, {.width = 200}), render_html(s)}) {
    EXPECT_THAT(text, HasSubstr("The baseline PyTorch is not ranked"));
    EXPECT_THAT(text, HasSubstr("crashed"));
  }
  EXPECT_THAT(render_html(s), Not(HasSubstr("crashed <here>")));
}

TEST(SpeedupChart, DrawsNothingButFiniteBars) {
  table::Picture picture{.x_title = "times as fast"};
  EXPECT_EQ(speedup_chart(picture, kWide), "");
  picture.bars = {{.name = "a<b", .factor = {2, 0, INFINITY}, .label = "2", .sure = true},
                  {.name = "none", .factor = {NAN, 0, 1}},
                  {.name = "slow", .factor = {0.01, 0.005, 0.02}, .label = "0.01", .sure = true}};
  for (const double width : {kWide, kNarrow}) {
    const std::string svg = speedup_chart(picture, width);
    EXPECT_THAT(svg, AllOf(HasSubstr("a&lt;b"), HasSubstr("arrow over"), Not(HasSubstr("nan")),
                           Not(HasSubstr("inf")), Not(HasSubstr("none</text>")), HasSubstr("log scale")));
  }
}

}  // namespace
}  // namespace bakeoff::report
