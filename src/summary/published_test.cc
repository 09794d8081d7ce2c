#include "summary/published.h"

#include <gtest/gtest.h>

#include "recipe/published_table.h"

namespace bakeoff {
namespace {

constexpr const char* kTable =
    "# Study of 2024, one GPU, seconds of 41 epochs\n"
    "framework,contender,seconds\n"
    "torch,torch,40\n"
    "torch,\"torch[compile=default,input=dataset]\",30\n"
    "keras_tf,keras[backend=tensorflow],20\n"
    "keras_tf,,10\n";

TEST(Published, StandsBesideWhatWasMeasured) {
  auto table = recipe::parse_published(kTable, "t.csv");
  ASSERT_TRUE(table) << table.error().text();
  EXPECT_EQ(table->source, "Study of 2024, one GPU, seconds of 41 epochs");
  ASSERT_EQ(table->rows.size(), 3u);
  EXPECT_EQ(table->rows[1].contender, "torch[compile=default,input=dataset]");
  compare_with(*table, {{"torch", 100}, {"torch[compile=default,input=dataset]", 50}, {"jax", 1}});
  EXPECT_DOUBLE_EQ(table->rows[0].ratio, 40.0 / 30);
  EXPECT_DOUBLE_EQ(*table->rows[0].measured_ratio, 2);
  EXPECT_EQ(table->rows[0].place, 2);
  EXPECT_EQ(table->rows[0].measured_place, 2);
  EXPECT_FALSE(table->rows[2].measured_ms);
  EXPECT_EQ(table->compared, 2);
  EXPECT_DOUBLE_EQ(table->agreement, 1);
}

TEST(Published, LetsARowStandBesideSeveralContenders) {
  const auto table = recipe::parse_published("seconds,contender\n7,torch jax[donate=false]\n8,\n", "t.csv");
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->rows[1].contender, "jax[donate=false]");
  EXPECT_EQ(table->rows[1].seconds, 7);
}

TEST(Published, SaysHowFarTheOrdersAgree) {
  auto table = recipe::parse_published(kTable, "t.csv");
  compare_with(*table,
               {{"torch", 3}, {"torch[compile=default,input=dataset]", 1}, {"keras[backend=tensorflow]", 2}});
  EXPECT_DOUBLE_EQ(table->agreement, 1.0 / 3);
  EXPECT_EQ(table->rows[2].place, 1);
  EXPECT_EQ(table->rows[2].measured_place, 2);
}

TEST(Published, WholeTrainingsTakeThePlaceOfSteps) {
  auto table = recipe::parse_published(kTable, "t.csv");
  compare_with(*table, {{"torch", 3}, {"keras[backend=tensorflow]", 2}});
  const recipe::Published steps = *table;
  compare_fits(*table, {}, 41);
  EXPECT_EQ(*table, steps) << "nobody was trained";
  compare_fits(*table, {{"torch", 10}, {"torch[compile=default,input=dataset]", 30}}, 41);
  EXPECT_EQ(table->epochs, 41);
  EXPECT_EQ(table->compared, 2);
  for (const recipe::PublishedRow& row : table->rows) {
    EXPECT_EQ(row.measured_place.has_value(), row.measured_s.has_value()) << row.contender;
    if (row.contender == "torch") {
      EXPECT_EQ(row.measured_ms, 3);
      EXPECT_EQ(row.measured_place, 1);
    }
    if (row.measured_s == 30) {
      EXPECT_EQ(row.measured_ratio, 3);
    }
  }
}

TEST(Published, NamesTheLineThatIsWrong) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c :
       {Case{"", "the table is empty"}, Case{"contender\ntorch\n", "no column 'seconds'"},
        Case{"contender,seconds\ntorch\n", "t.csv:2: 1 fields, the first line has 2"},
        Case{"contender,seconds\ntorch,-1\n", "'-1' is no positive number"},
        Case{"contender,seconds\ntorch,1\ntorch,2\n", "t.csv:3: contender 'torch' is in two"}}) {
    const auto table = recipe::parse_published(c.text, "t.csv");
    ASSERT_FALSE(table);
    EXPECT_NE(table.error().text().find(c.message), std::string::npos) << table.error().text();
  }
}

}  // namespace
}  // namespace bakeoff
