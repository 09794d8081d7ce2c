#include "study/training/fit_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/section_testing.h"

namespace bakeoff {
namespace {

using table::Ink;
using testing::cell;
using ::testing::HasSubstr;

const FitFacts kFacts{"41 epochs of 60,000 rows", 41, 3, 10'000, 10'000, 0.1};

std::vector<FitRow> rows() {
  FitRow first{.contender = "torch", .group = "float32", .seeds = 3};
  first.seconds = {37.62, 38.06, 39.0};
  first.epoch_s = 0.912;
  first.start_up_s = 2.5;
  first.wait_s = 1.18;
  first.over_steps = 1.083;
  first.loss = SeedRange{0.0121, 0.0123, 0.0127};
  first.held_loss = SeedRange{0.03, 0.0311, 0.032};
  first.accuracy = SeedRange{0.9901, 0.9908, 0.9911};
  FitRow second{.contender = "keras", .group = "float32", .seeds = 1};
  second.seconds = {80, 80, 80};
  second.epoch_s = 1.95;
  second.loss = SeedRange{0.5, 0.5, 0.5};
  second.accuracy = SeedRange{0.85, 0.85, 0.85};
  second.outlier = true;
  second.note = "its loss of 0.5 is 0.49 away from its group's";
  FitRow dead{.contender = "jax", .note = "run: exit code 1"};
  return {first, second, dead};
}

TEST(FitSection, SaysHowLongAndHowWell) {
  const table::Section section = fit_section(rows(), kFacts);
  testing::expect_whole(section, 3);
  EXPECT_EQ(section.title, "Whole training: 41 epochs of 60,000 rows");
  EXPECT_EQ(cell(section, "seconds", 0).text, "38.1 (37.6 to 39.0)");
  EXPECT_EQ(cell(section, "an epoch", 0).text, "0.912");
  EXPECT_EQ(cell(section, "wait", 0).text, "3.1%");
  EXPECT_EQ(cell(section, "over steps", 0).text, "1.08 ×");
  EXPECT_EQ(cell(section, "start-up", 0).text, "2.50 s");
  EXPECT_EQ(cell(section, "held-out loss", 0).text, "0.0311 (0.03 to 0.032)");
  EXPECT_EQ(cell(section, "accuracy", 0).text, "99.08% (99.01% to 99.11%)");
  EXPECT_EQ(cell(section, "loss", 0).ink, Ink::kPlain);
  EXPECT_EQ(cell(section, "seconds", 1).text, "80.0");
  EXPECT_EQ(cell(section, "wait", 1).text, "–");
  EXPECT_EQ(cell(section, "held-out loss", 1).text, "–");
  EXPECT_EQ(cell(section, "loss", 1).ink, Ink::kBad);
  for (const char* title : {"seconds", "an epoch", "wait", "over steps", "start-up", "loss", "accuracy"})
    EXPECT_EQ(cell(section, title, 2).text, "–") << title;
  EXPECT_EQ(section.notes[2], "run: exit code 1");
}

TEST(FitSection, IsReadByPrograms) {
  const table::Section section = fit_section(rows(), kFacts);
  EXPECT_EQ(section.json["what"], "41 epochs of 60,000 rows");
  EXPECT_EQ(section.json["epochs"], 41);
  EXPECT_EQ(section.json["held_out_rows"], 10'000);
  EXPECT_EQ(section.json["loss_tolerance"], 0.1);
  const auto& json = section.json["rows"];
  EXPECT_EQ(json[0]["seconds"].dump(), R"({"value":38.06,"least":37.62,"most":39.0})");
  EXPECT_EQ(json[0]["accuracy"]["most"], 0.9911);
  EXPECT_EQ(json[0]["seconds_over_steps"], 1.083);
  EXPECT_TRUE(json[1]["far_from_group"]);
  EXPECT_TRUE(json[1]["held_out_loss"].is_null());
  EXPECT_TRUE(json[2]["seconds"].is_null());
  EXPECT_TRUE(json[2]["start_up_s"].is_null());
  EXPECT_EQ(json[2]["seeds"], 0);
  EXPECT_EQ(
      testing::csv_names(section),
      "fit_epochs,fit_seeds,fit_seconds,fit_epochs_trained,fit_seconds_per_epoch,fit_wait_seconds,fit_start_up_seconds,"
      "fit_loss,fit_held_out_loss,fit_accuracy");
  EXPECT_EQ(testing::csv_values(section, "torch"), "41,3,38.06,,0.912,1.18,2.5,0.0123,0.0311,0.9908");
  EXPECT_EQ(testing::csv_values(section, "jax"), ",,,,,,,,,") << "it did not end well";
}

TEST(FitSection, SaysWhatAccuracyIsOf) {
  FitFacts facts = kFacts;
  EXPECT_THAT(fit_section(rows(), facts).legend,
              HasSubstr("accuracy of 10,000 rows that were not trained on"));
  EXPECT_THAT(fit_section(rows(), facts).legend, HasSubstr("losses 10% apart may be chance"));
  facts.held = 0;
  EXPECT_THAT(fit_section(rows(), facts).legend, HasSubstr("accuracy of the same rows"));
  facts.seeds = 1;
  EXPECT_THAT(fit_section(rows(), facts).legend, HasSubstr("One training each"));
}

}  // namespace
}  // namespace bakeoff
