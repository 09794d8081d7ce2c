// Precision groups, waits for batches and a published table, in every form of the report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "recipe/published_table.h"
#include "report/csv.h"
#include "report/html.h"
#include "report/json.h"
#include "report/markdown.h"
#include "report/phrases.h"
#include "report/published_section.h"
#include "report/ranking.h"
#include "report/sample_summary_testing.h"
#include "report/terminal.h"

namespace bakeoff::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The last two rows in bfloat16, the first of them its leader.
Summary grouped_summary() {
  Summary s = sample_summary(10);
  for (size_t i = s.ranked.size() - 2; i < s.ranked.size(); ++i) {
    Row& row = s.ranked[i];
    row.group = "bfloat16";
    row.support = "this CPU has AVX512_BF16";
    row.loss_distance = 0.0021;
    row.gradient_distance = 0.034;
  }
  return s;
}

Summary published_summary() {
  Summary s = sample_summary(10);
  s.manifest.contenders = {s.ranked[0].contender, s.ranked[1].contender, s.unranked[0].contender};
  recipe::Published table{.source = "A study", .agreement = 1, .compared = 2};
  table.rows = {{.contender = s.ranked[0].contender.id, .seconds = 40, .ratio = 1, .place = 1},
                {.contender = s.ranked[1].contender.id, .seconds = 50, .ratio = 1.25, .place = 2},
                {.contender = s.unranked[0].contender.id, .seconds = 60, .ratio = 1.5, .place = 3},
                {.contender = "not_in_the_recipe", .seconds = 1}};
  for (size_t i = 0; i < 2; ++i) {
    recipe::PublishedRow& row = table.rows[i];
    row.measured_ms = i == 0 ? 100 : 150;
    row.measured_ratio = i == 0 ? 1 : 1.5;
    row.measured_place = static_cast<int>(i) + 1;
  }
  s.published = table;
  return s;
}

TEST(Groups, HaveLeadersOfTheirOwn) {
  const Summary s = grouped_summary();
  const Row& second = s.ranked[s.ranked.size() - 2];
  EXPECT_EQ(ratio_cell(s, s.ranked.front()).range, "");
  EXPECT_EQ(ratio_cell(s, second).range, "");
  EXPECT_NE(ratio_cell(s, s.ranked[1]).range, "");
}

TEST(Groups, AreNamedInEveryTable) {
  const Summary s = grouped_summary();
  EXPECT_THAT(render_terminal(s, {.width = 160}),
              AllOf(HasSubstr("precision"), HasSubstr("bfloat16"), HasSubstr("0.0021 · 0.034"),
                    HasSubstr("from float32")));
  EXPECT_THAT(render_terminal(s, {.width = 80}), AllOf(HasSubstr("precision"), HasSubstr("bfloat16")));
  EXPECT_THAT(render_markdown(s, {}), AllOf(HasSubstr("| precision |"), HasSubstr(" bfloat16 |")));
  EXPECT_THAT(render_csv(s), AllOf(HasSubstr(",bfloat16,0.0021,0.034,"), HasSubstr("group,loss_distance")));
  EXPECT_THAT(render_html(s, {}), AllOf(HasSubstr(">precision<"), HasSubstr("0.0021 · 0.034")));
  const auto json = nlohmann::json::parse(render_json(s, {}));
  EXPECT_EQ(json["ranked"].back()["group"], "bfloat16");
  EXPECT_EQ(json["ranked"].back()["distance_from_float32"]["gradients"], 0.034);
  EXPECT_EQ(json["ranked"].back()["precision_support"], "this CPU has AVX512_BF16");
  EXPECT_EQ(json["ranked"][0]["group"], "float32");
}

TEST(Groups, OfAnswersHaveTheDistanceOfTheirLogits) {
  Summary s = grouped_summary();
  s.ranked.back().loss_distance = s.ranked.back().gradient_distance = {};
  s.ranked.back().logit_distance = 0.0153;
  EXPECT_THAT(render_terminal(s, {.width = 160}), HasSubstr("0.015"));
  EXPECT_THAT(render_csv(s), HasSubstr(",bfloat16,,,0.0153,"));
  const auto json = nlohmann::json::parse(render_json(s, {}));
  EXPECT_EQ(json["ranked"].back()["distance_from_float32"]["logits"], 0.0153);
}

TEST(Groups, AreLeftOutWhereEverythingIsInFloat32) {
  const Summary s = sample_summary(10);
  EXPECT_THAT(render_terminal(s, {.width = 200}), Not(HasSubstr("from float32")));
  EXPECT_THAT(render_markdown(s, {}), Not(HasSubstr("from float32")));
  EXPECT_THAT(render_html(s, {}), Not(HasSubstr(">precision<")));
}

TEST(Groups, ShareNoTieLetters) {
  Summary s = grouped_summary();
  for (Row& row : s.ranked) row.ties.clear();
  s.ranked.front().ties = s.ranked.back().ties = "a";
  EXPECT_FALSE(has_ties(s));
  s.ranked[1].ties = "a";
  EXPECT_TRUE(has_ties(s));
}

TEST(Waits, StandInEveryForm) {
  const Summary s = sample_summary(10);
  const auto json = nlohmann::json::parse(render_json(s, {}));
  bool known = false, unknown = false;
  for (const auto& row : json["ranked"]) {
    known = known || row["batch_wait"]["ms_per_batch"] == 0.2;
    unknown = unknown || row["batch_wait"]["ms_per_batch"].is_null();
  }
  EXPECT_TRUE(known && unknown);
  EXPECT_THAT(render_csv(s), AllOf(HasSubstr("batch_wait_share"), HasSubstr(",0.2,3,49.6,")));
  EXPECT_THAT(render_html(s, {}), AllOf(HasSubstr("wait/batch"), HasSubstr("wait/first batch")));
  EXPECT_THAT(render_terminal(s, {.width = 400}), HasSubstr("wait"));
}

TEST(Transfers, StandInEveryFormWhereAnybodyCopies) {
  Summary s = sample_summary(10);
  const auto forms = [&] {
    return std::vector<std::string>{render_terminal(s, {.width = 400}), render_markdown(s, {}),
                                    render_html(s, {})};
  };
  for (const std::string& text : forms())
    EXPECT_THAT(text, AllOf(Not(HasSubstr("to the device")), Not(HasSubstr("To the device"))));
  s.ranked[0].transfer = Transfer{"batch", 812'000, 802'816};
  s.ranked[1].transfer = Transfer{"data", 35'000'000, 188'160'000};
  for (const std::string& text : forms())
    EXPECT_THAT(text, AllOf(HasSubstr("o the device"), HasSubstr("812 µs a batch"), HasSubstr("35 ms once")));
  const auto rows = nlohmann::json::parse(render_json(s, {}))["ranked"];
  EXPECT_EQ(rows[0]["transfer"]["ms"], 0.812);
  EXPECT_EQ(rows[1]["transfer"]["of"], "data");
  EXPECT_TRUE(rows[2]["transfer"].is_null()) << "no zero";
  EXPECT_THAT(render_csv(s), AllOf(HasSubstr(",batch,0.812,802816,"), HasSubstr(",data,35,188160000,")));
}

std::vector<table::Cell> column(const table::Section& section, const std::string& title) {
  for (const auto& [column, cells] : section.columns) {
    if (column.title == title) return cells;
  }
  ADD_FAILURE() << "no column '" << title << "'";
  return {};
}

TEST(Published, ShowsBothOrdersAndWhatWasNotRanked) {
  const Summary s = published_summary();
  const table::Section section = *published_section(s);
  ASSERT_EQ(section.rows(), 3u);
  EXPECT_EQ(column(section, "ratio")[1].text, "1.250");
  EXPECT_EQ(column(section, "ratio here")[1].text, "1.500");
  EXPECT_EQ(column(section, "place here")[2].text, "–");
  EXPECT_THAT(section.legend, AllOf(HasSubstr("100%"), HasSubstr("A study")));
  for (const std::string& text :
       {render_terminal(s, {.width = 120}), render_markdown(s, {}), render_html(s, {})})
    EXPECT_THAT(text, AllOf(HasSubstr("gainst the published table"), HasSubstr("1.250"),
                            Not(HasSubstr("not_in_the_recipe"))));
  EXPECT_EQ(nlohmann::json::parse(render_json(s, {}))["published"]["compared"], 2);
  EXPECT_TRUE(nlohmann::json::parse(render_json(sample_summary(1), {}))["published"].is_null());
}

TEST(Published, SaysWhetherStepsOrWholeTrainingsWereMeasured) {
  Summary s = published_summary();
  EXPECT_EQ(column(*published_section(s), "ms/step here")[0].text, "100.0");
  EXPECT_THAT(published_section(s)->legend, HasSubstr("steps were timed, no whole trainings"));
  s.published->epochs = 41;
  s.published->rows[0].measured_s = 38.06;
  EXPECT_EQ(column(*published_section(s), "41 epochs here")[0].text, "38.1 s");
  EXPECT_EQ(column(*published_section(s), "41 epochs here")[1].text, "–")
      << "its steps were timed, but it was not trained";
  EXPECT_THAT(published_section(s)->legend, HasSubstr("those of whole trainings"));
  for (const std::string& text :
       {render_terminal(s, {.width = 140}), render_markdown(s, {}), render_html(s, {})})
    EXPECT_THAT(text,
                AllOf(HasSubstr("41 epochs here"), HasSubstr("38.1 s"), Not(HasSubstr("ms/step here"))));
  const auto json = nlohmann::json::parse(render_json(s, {}))["published"];
  EXPECT_EQ(json["measured"], "whole trainings");
  EXPECT_EQ(json["rows"][0]["measured_seconds"], 38.06);
}

TEST(Wait, StandsInMarkdownWhereAnybodyCanTell) {
  Summary s = sample_summary(10);
  s.studies.clear();  // whole trainings have a column of this name
  for (Row& row : s.ranked) row.wait = {};
  EXPECT_THAT(render_markdown(s, {}), Not(HasSubstr(" wait |")));
  for (Row& row : s.ranked) row.wait.share = 0.0002;
  EXPECT_THAT(render_markdown(s, {}), Not(HasSubstr(" wait |"))) << "every row would read 0.0%";
  EXPECT_THAT(render_terminal(s, {.width = 400}), Not(HasSubstr("0.0%")));
  EXPECT_THAT(render_csv(s), HasSubstr("0.0002")) << "a program reads it all the same";
  s.ranked[1].wait.share = 0.2;
  const std::string markdown = render_markdown(s, {});
  EXPECT_THAT(markdown, HasSubstr("| break-even | wait | peak memory |"));
  EXPECT_THAT(markdown, HasSubstr("| 20% |"));
}

// The last row was never timed; the one before it is out by its comparison with the third.
Summary bounded_summary() {
  Summary s = sample_summary(5);
  Row& last = s.ranked.back();
  last.at_least = 10;
  last.verdict = RowVerdict::kAtLeast;
  last.ratio = {10, 10, std::numeric_limits<double>::infinity()};
  last.ms_per_step = {756, 756, std::numeric_limits<double>::infinity()};
  last.samples_per_second = last.gflops = 0;
  last.heat_ms.clear();
  last.step_ms.clear();
  Row& out = s.ranked[3];
  out.verdict = RowVerdict::kBehindAnother;
  out.behind = Behind{"third", 1.12};
  out.ratio = {1.2, 0.9, 1.6};
  return s;
}

TEST(Bounds, AContenderThatWasNotTimedIsShownByItsBoundAlone) {
  const Summary s = bounded_summary();
  EXPECT_EQ(ratio_cell(s, s.ranked.back()), (table::Cell{"≥ 10.0"}));
  EXPECT_THAT(step_time_cell(s.ranked.back()).text, ::testing::StartsWith("≥ "));
  EXPECT_EQ(verdict_text(s.ranked.back()), "at least 10 times slower");
  EXPECT_THAT(render_terminal(s, {.width = 200}), AllOf(HasSubstr("≥ 10.0"), HasSubstr("at least 10 times")));
  EXPECT_THAT(render_markdown(s), HasSubstr("≥ 10.0"));
  EXPECT_THAT(render_html(s), HasSubstr("≥ 10.0"));
  const auto json = nlohmann::json::parse(render_json(s));
  const auto& row = json["ranked"].back();
  EXPECT_EQ(row["at_least_times_slower"], 10);
  EXPECT_TRUE(row["ratio"]["value"].is_null());
  EXPECT_EQ(row["ratio"]["low"], 10);
  EXPECT_TRUE(row["samples_per_second"].is_null());
  EXPECT_THAT(render_csv(s), HasSubstr("at least 10 times slower"));
}

TEST(Bounds, WhoeverIsOutByAThirdIsNotCalledSlowerThanTheLeader) {
  const Summary s = bounded_summary();
  EXPECT_EQ(verdict_text(s.ranked[3]), "behind third by at least 12%");
  EXPECT_EQ(nlohmann::json::parse(render_json(s))["ranked"][3]["behind"]["contender"], "third");
  EXPECT_THAT(render_csv(s), HasSubstr("behind third"));
}

}  // namespace
}  // namespace bakeoff::report
