#include "study/latency/latency_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "study/section_testing.h"

namespace bakeoff {
namespace {

using testing::cell;
using testing::csv;
using ::testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

LatencyRow steady(const std::string& contender, double rate) {
  LatencyRow row{.contender = contender, .rate = rate, .state = LatencyState::kSteady, .processes = 3};
  row.requests = 2940;
  row.percentiles = {{0.5, 3.21, {3.19, 3.24}, 2940, 2100}, {0.999, 11.4, {9.07, kInf}, 2940, 1900}};
  row.by_process = {{3.1, 3.3}, {8.8, 14.2}};
  row.mean_ms = 3.52;
  row.service_ms = 3.02;
  row.load = rate * 3.02e-3;
  return row;
}

// Two contenders in single stream and at two rates, the second of which one of them cannot serve.
table::Section section() {
  std::vector<LatencyRow> rows;
  for (const double rate : {0.0, 100.0}) {
    for (const char* id : {"torch", "jax"}) rows.push_back(steady(id, rate));
  }
  LatencyRow growing{.contender = "torch", .rate = 500, .state = LatencyState::kGrowing, .processes = 3};
  growing.service_ms = 3.02;
  growing.load = 1.51;
  growing.growth_per_s = 169;
  growing.note = "above its capacity: 500 requests arrive a second, 331 can be answered";
  rows.push_back(growing);
  return latency_section(rows, 0.99, 1);
}

TEST(PercentileName, HasNoMoreDigitsThanItNeeds) {
  EXPECT_EQ(percentile_name(0.5), "p50");
  EXPECT_EQ(percentile_name(0.999), "p99.9");
  EXPECT_EQ(percentile_name(99.99 / 100), "p99.99");
}

TEST(LatencySection, ShowsValueBoundsAndRangeOverProcesses) {
  const table::Section s = section();
  testing::expect_whole(s, 5);
  EXPECT_THAT(s.legend, HasSubstr("99% on its own"));
  EXPECT_THAT(s.legend, HasSubstr("one batch of 1."));
  EXPECT_EQ(s.row_names[2], "torch, 100 requests/s");
  EXPECT_EQ(cell(s, "requests", 0).text, "single stream");
  EXPECT_EQ(cell(s, "requests", 2).text, "100 requests/s");
  EXPECT_EQ(cell(s, "load", 2).text, "30%");
  EXPECT_EQ(cell(s, "load", 0).text, "–") << "one after another asks for all there is";
  EXPECT_EQ(cell(s, "p50", 2).range, "[3.19, 3.24]");
  EXPECT_EQ(cell(s, "p99.9", 2).text, "11.4");
  EXPECT_EQ(cell(s, "p99.9", 2).range, "[9.07, ∞)");
  EXPECT_EQ(cell(s, "p99.9", 2).hint, "8.80 to 14.2 ms in the 3 processes");
  EXPECT_EQ(cell(s, "answer ms", 0).text, "3.02");
  EXPECT_EQ(cell(s, "measured", 0).text, "2,940");
  EXPECT_EQ(cell(s, "measured", 4).text, "–");
  EXPECT_EQ(cell(s, "queue", 0).ink, table::Ink::kGood);
  EXPECT_EQ(cell(s, "queue", 4), (table::Cell{"queue grows", "", table::Ink::kBad}));
  EXPECT_EQ(cell(s, "p50", 4).text, "–") << "a queue that grows has no percentile";
  EXPECT_THAT(s.notes[4], HasSubstr("331 can be answered"));
}

TEST(LatencySection, JsonHoldsBoundsAndWhatIsOpen) {
  const table::Section s = section();
  EXPECT_EQ(s.json["level"], 0.99);
  const auto& rows = s.json["rows"];
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_TRUE(rows[0]["arrivals_per_second"].is_null());
  EXPECT_TRUE(rows[0]["load"].is_null());
  EXPECT_EQ(rows[2]["arrivals_per_second"], 100);
  EXPECT_DOUBLE_EQ(rows[2]["percentiles"][1]["percentile"].get<double>(), 99.9);
  EXPECT_EQ(rows[2]["percentiles"][1]["ms"]["low"], 9.07);
  EXPECT_TRUE(rows[2]["percentiles"][1]["ms"]["high"].is_null());
  EXPECT_EQ(rows[2]["percentiles"][1]["by_process_ms"][0], 8.8);
  EXPECT_EQ(rows[4]["queue"], "growing");
  EXPECT_TRUE(rows[4]["mean_ms"].is_null());
  EXPECT_EQ(rows[4]["growth_per_second"], 169);
}

TEST(LatencySection, CsvHasEveryModeOfAContenderInItsRow) {
  const table::Section s = section();
  ASSERT_EQ(s.csv_names.size(), 3 * (2 + 2 * 3u));
  EXPECT_EQ(csv(s, "torch", "latency_100_per_s_p50_ms"), "3.21");
  EXPECT_EQ(csv(s, "torch", "latency_single_stream_p50_ms_low"), "3.19");
  EXPECT_EQ(csv(s, "torch", "latency_100_per_s_p99.9_ms_high"), "") << "not bounded";
  EXPECT_EQ(csv(s, "torch", "latency_500_per_s_queue"), "queue grows");
  EXPECT_EQ(csv(s, "torch", "latency_500_per_s_load"), "1.51");
  EXPECT_EQ(csv(s, "torch", "latency_500_per_s_p50_ms"), "");
  EXPECT_EQ(csv(s, "torch", "latency_single_stream_load"), "");
  EXPECT_EQ(csv(s, "jax", "latency_500_per_s_queue"), "") << "it was not asked at that rate";
  for (const std::string& name : s.csv_names) EXPECT_EQ(csv(s, "keras", name), "") << "it was not measured";
}

}  // namespace
}  // namespace bakeoff
