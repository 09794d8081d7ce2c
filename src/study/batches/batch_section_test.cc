#include "study/batches/batch_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/section_testing.h"

namespace bakeoff {
namespace {

using testing::cell;
using ::testing::HasSubstr;

std::vector<SearchRow> rows() {
  SearchRow first{.contender = "torch", .best = 256, .enough = 128};
  first.points = {
      {16, 2, 1200, 1180, 1220, 1 << 29}, {128, 2, 3320, 3300, 3340, 1 << 29}, {256, 2, 3400, 3350, 3410}};
  SearchRow second{.contender = "jax", .best = 16, .enough = 16};
  second.points = {{16, 1, 900, 900, 900}, {32, 0, 0, 0, 0, 0, "run: killed, out of memory"}};
  second.note = "batch 32: run: killed, out of memory";
  SearchRow third{.contender = "mine"};
  third.points = {{16, 0, 0, 0, 0, 0, "emit: the batch of a script of your own is its own"}};
  third.note = third.points[0].failure;
  return {first, second, third};
}

TEST(BatchSection, NamesTheBestBatch) {
  const table::Section section = batch_section(rows(), 0.03, 64);
  testing::expect_whole(section, 3);
  EXPECT_THAT(section.legend, HasSubstr("no error rate is claimed"));
  EXPECT_THAT(section.legend, HasSubstr("within 3% of the best"));
  EXPECT_EQ(cell(section, "best batch", 0).text, "256");
  EXPECT_EQ(cell(section, "samples/s", 0), (table::Cell{"3,400", "(3,350 to 3,410)"}));
  EXPECT_EQ(cell(section, "enough", 0).text, "128");
  EXPECT_EQ(cell(section, "tried", 0).text, "16 to 256 (3)");
  EXPECT_EQ(cell(section, "samples/s", 1), (table::Cell{"900"})) << "one process has no range";
  for (const char* title : {"best batch", "samples/s", "enough"})
    EXPECT_EQ(cell(section, title, 2).text, "–") << title;
  EXPECT_EQ(section.notes[1], "batch 32: run: killed, out of memory");
}

TEST(BatchSection, HasAColumnForEveryBatch) {
  const table::Section section = batch_section(rows(), 0.03, 64);
  EXPECT_EQ(cell(section, "at 16", 0), (table::Cell{"1,200", "(1,180 to 1,220)"}));
  EXPECT_EQ(cell(section, "at 256", 0).ink, table::Ink::kBold) << "the best";
  EXPECT_EQ(cell(section, "at 32", 0), (table::Cell{.hint = "It was not tried."}));
  EXPECT_EQ(cell(section, "at 32", 1), (table::Cell{.hint = "run: killed, out of memory"}));
}

TEST(BatchSection, IsReadByPrograms) {
  const table::Section section = batch_section(rows(), 0.03, 64);
  EXPECT_EQ(section.json[0]["best_batch"], 256);
  EXPECT_EQ(section.json[0]["points"][1]["samples_per_second"], 3320);
  EXPECT_EQ(section.json[0]["points"][1]["by_process"].dump(), "[3300.0,3340.0]");
  EXPECT_EQ(section.json[1]["points"][1]["failure"], "run: killed, out of memory");
  EXPECT_TRUE(section.json[1]["points"][1]["by_process"].is_null());
  EXPECT_TRUE(section.json[2]["best_batch"].is_null());
  EXPECT_TRUE(section.json[2]["enough_batch"].is_null());
  EXPECT_FALSE(section.json[0].contains("best_batch_samples_per_second")) << "it stands among the points";
  EXPECT_EQ(testing::csv_names(section), "best_batch,best_batch_samples_per_second,enough_batch");
  EXPECT_EQ(testing::csv_values(section, "torch"), "256,3400,128");
  EXPECT_EQ(testing::csv_values(section, "mine"), ",,");
}

TEST(BatchSection, ItsPictureHasACurveForEachContenderAndAPointForEachBatch) {
  const table::Picture picture = batch_section(rows(), 0.03, 64).pictures.front();
  ASSERT_EQ(picture.curves.size(), 2u) << "what failed at all batches has none";
  EXPECT_EQ(picture.curves[0].contender, "torch");
  EXPECT_EQ(picture.curves[0].marked_x, 256);
  EXPECT_EQ(picture.curves[0].points[1], (table::Point{128, 3320, 3300, 3340}));
  EXPECT_EQ(picture.curves[1].points.size(), 1u) << "what failed has no point";
}

}  // namespace
}  // namespace bakeoff
