#include "study/training/target_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/section_testing.h"

namespace bakeoff {
namespace {

using table::Ink;
using testing::cell;

constexpr const char* kText = "an accuracy of 97% on 2000 rows that are not trained on";

std::vector<TargetRow> rows() {
  TargetRow referee{.contender = "referee", .seeds = 5, .reached = 5};
  referee.steps = OverSeeds{212, {180, 250}};
  referee.epochs = OverSeeds{0.906, {0.77, 1.07}};
  TargetRow first = referee;
  first.contender = "torch";
  first.seconds = OverSeeds{17.2, {15.1, 19.6}};
  first.start_up_s = 2.5;
  first.convergence = Convergence::kWithinChance;
  first.p = 0.41;
  first.ratio = 1.013;
  TargetRow second{.contender = "keras", .seeds = 5, .reached = 3};
  second.convergence = Convergence::kWorse;
  second.p = 0.0012;
  second.ratio = 1.9;
  second.note = "2 of 5 trainings did not reach it within 5 epochs";
  return {referee, first, second};
}

TEST(TargetSection, SaysHowOftenHowLongAndHowWell) {
  const table::Section section = target_section(rows(), kText, 0.01);
  testing::expect_whole(section, 3);
  EXPECT_EQ(section.title, std::string("Training to ") + kText);
  EXPECT_THAT(section.legend, ::testing::HasSubstr("intervals hold with 99% each"));
  EXPECT_EQ(cell(section, "contender", 0).text, "referee");
  EXPECT_EQ(cell(section, "seconds", 0).text, "–") << "its time is of no interest";
  EXPECT_EQ(cell(section, "reached", 1).text, "5 of 5");
  EXPECT_EQ(cell(section, "steps", 1), (table::Cell{"212", "[180, 250]"}));
  EXPECT_EQ(cell(section, "epochs", 1), (table::Cell{"0.91"})) << "no interval";
  EXPECT_EQ(cell(section, "seconds", 1), (table::Cell{"17.2", "[15.1, 19.6]"}));
  EXPECT_EQ(cell(section, "start-up", 1).text, "2.50 s");
  EXPECT_EQ(cell(section, "against the referee", 1),
            (table::Cell{"within chance: 1.013 × its steps, p = 0.41", "", Ink::kGood}));
  EXPECT_EQ(cell(section, "reached", 2).text, "3 of 5");
  EXPECT_EQ(cell(section, "steps", 2).text, "–") << "no mean where some did not reach it";
  EXPECT_EQ(cell(section, "against the referee", 2),
            (table::Cell{"worse: 1.900 × its steps, p = 0.0012", "", Ink::kBad}));
  EXPECT_EQ(section.notes[2], "2 of 5 trainings did not reach it within 5 epochs");
}

TEST(TargetSection, IsReadByPrograms) {
  const table::Section section = target_section(rows(), kText, 0.01);
  EXPECT_EQ(section.json["target"], kText);
  const auto& json = section.json["rows"];
  EXPECT_EQ(json[1]["steps"].dump(), R"({"value":212.0,"low":180.0,"high":250.0})");
  EXPECT_EQ(json[1]["convergence"], "within chance");
  EXPECT_EQ(json[1]["steps_over_referee"], 1.013);
  EXPECT_TRUE(json[2]["steps"].is_null());
  EXPECT_TRUE(json[0]["p"].is_null());
  EXPECT_TRUE(json[0]["start_up_s"].is_null());
  EXPECT_EQ(testing::csv_names(section),
            "target_seeds,target_reached,target_steps,target_epochs,target_seconds,target_p_of_worse");
  EXPECT_EQ(testing::csv_values(section, "torch"), "5,5,212,0.906,17.2,0.41");
  EXPECT_EQ(testing::csv_values(section, "keras"), "5,3,,,,0.0012");
  EXPECT_EQ(testing::csv_values(section, "jax"), ",,,,,");
}

}  // namespace
}  // namespace bakeoff
