#include "study/batches/largest_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/section_testing.h"

namespace bakeoff {
namespace {

using testing::cell;

constexpr int64_t kMiB = int64_t{1} << 20;

std::vector<LargestRow> rows() {
  return {
      {.contender = "torch",
       .limit_bytes = 4096 * kMiB,
       .largest = 6144,
       .peak_bytes = 3900 * kMiB,
       .fails_at = 6400,
       .bytes_per_sample = 0.5 * kMiB,
       .stop = Stop::kAllocator,
       .note = "its allocator: can't allocate | 9 bytes",
       .tried = 9},
      {.contender = "jax",
       .limit_bytes = 4096 * kMiB,
       .fails_at = 1,
       .stop = Stop::kLimit,
       .note = "the limit: killed",
       .tried = 8},
      {.contender = "keras", .largest = 60000, .note = "the data has 60,000 rows: a larger batch may fit"}};
}

TEST(LargestSection, SaysWhatFitsAndWhatDoesNot) {
  const table::Section section = largest_section(rows());
  testing::expect_whole(section, 3);
  EXPECT_EQ(cell(section, "largest batch", 0).text, "6,144");
  EXPECT_EQ(cell(section, "fails at", 0).text, "6,400");
  EXPECT_EQ(cell(section, "a sample", 0).text, "512 KiB");
  EXPECT_EQ(cell(section, "limit", 0).text, "4.00 GiB");
  EXPECT_EQ(cell(section, "largest batch", 1).text, "–");
  EXPECT_EQ(cell(section, "peak", 1).text, "–") << "never a zero";
  EXPECT_EQ(cell(section, "a sample", 1).text, "–");
  EXPECT_EQ(cell(section, "fails at", 2).text, "–");
  EXPECT_EQ(cell(section, "limit", 2).text, "the device's");
  EXPECT_EQ(section.notes[0], "its allocator: can't allocate | 9 bytes");
  EXPECT_EQ(section.notes[2], "the data has 60,000 rows: a larger batch may fit");
}

TEST(LargestSection, IsReadByPrograms) {
  const table::Section section = largest_section(rows());
  EXPECT_EQ(section.json[0]["largest_batch"], 6144);
  EXPECT_EQ(section.json[0]["stop"], "allocator");
  EXPECT_EQ(section.json[0]["bytes_per_sample"], 524288);
  EXPECT_EQ(section.json[0]["stopped_by"], "its allocator: can't allocate | 9 bytes");
  EXPECT_EQ(section.json[0]["tried"], 9);
  EXPECT_TRUE(section.json[1]["largest_batch"].is_null());
  EXPECT_TRUE(section.json[1]["peak_bytes"].is_null());
  EXPECT_TRUE(section.json[2]["limit_bytes"].is_null());
  EXPECT_EQ(testing::csv_names(section),
            "largest_batch,largest_batch_fails_at,largest_batch_peak_bytes,bytes_per_sample_over_batches,"
            "largest_batch_limit_bytes,largest_batch_stopped_by");
  EXPECT_EQ(testing::csv_values(section, "torch"),
            "6144,6400,4089446400,524288,4294967296,its allocator: can't allocate | 9 bytes");
}

}  // namespace
}  // namespace bakeoff
