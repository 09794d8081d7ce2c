#include "report/largest_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/csv.h"
#include "report/html.h"
#include "report/json.h"
#include "report/markdown.h"
#include "report/sample_summary.h"
#include "report/terminal.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMiB = int64_t{1} << 20;

Summary with_largest() {
  Summary s = sample_summary(10);
  LargestRow first{.contender = s.ranked[0].contender.id,
                   .limit_bytes = 4096 * kMiB,
                   .largest = 6144,
                   .peak_bytes = 3900 * kMiB,
                   .fails_at = 6400,
                   .bytes_per_sample = 0.5 * kMiB,
                   .stop = Stop::kAllocator,
                   .stopped_by = "its allocator: <b>can't</b> allocate | 9 bytes",
                   .tried = 9};
  LargestRow second{.contender = s.ranked[1].contender.id,
                    .limit_bytes = 4096 * kMiB,
                    .fails_at = 1,
                    .stop = Stop::kLimit,
                    .stopped_by = "the limit: killed",
                    .tried = 8};
  LargestRow third{.contender = s.ranked[2].contender.id,
                   .largest = 60000,
                   .stopped_by = "the data has 60,000 rows: a larger batch may fit"};
  s.largest = {first, second, third};
  return s;
}

TEST(LargestCells, SayWhatFitsAndWhatDoesNot) {
  const auto rows = largest_cells(with_largest());
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].largest, "6,144");
  EXPECT_EQ(rows[0].fails_at, "6,400");
  EXPECT_EQ(rows[0].per_sample, "512 KiB");
  EXPECT_EQ(rows[0].limit, "4.00 GiB");
  EXPECT_EQ(rows[1].largest, "–");
  EXPECT_EQ(rows[1].peak, "–") << "never a zero";
  EXPECT_EQ(rows[1].per_sample, "–");
  EXPECT_EQ(rows[2].fails_at, "–");
  EXPECT_EQ(rows[2].limit, "the device's");
}

TEST(Largest, StandsInEveryFormat) {
  const Summary s = with_largest();
  const std::string terminal = render_terminal(s, {.width = 200});
  for (const char* part : {"Largest batch that fits", "6,144", "6,400", "can't</b> allocate", "60,000 rows"})
    EXPECT_THAT(terminal, HasSubstr(part));
  for (int width = 40; width <= 200; width += 10) {
    const std::string plain = render_terminal(s, {.width = width});
    for (size_t at = 0, end; (end = plain.find('\n', at)) != std::string::npos; at = end + 1)
      ASSERT_LE(display_width(plain.substr(at, end - at)), width) << plain.substr(at, end - at);
  }
  const std::string html = render_html(s);
  EXPECT_THAT(html, HasSubstr("<section id=\"largest\">"));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;can&apos;t&lt;/b&gt; allocate"));
  EXPECT_THAT(html, Not(HasSubstr("<b>can't</b>")));
  EXPECT_THAT(render_markdown(s), HasSubstr("| `tensorflow[mode=function]` | 6,144 | 6,400 |"));
  const std::string csv = render_csv(s);
  EXPECT_THAT(csv,
              HasSubstr("largest_batch,largest_batch_fails_at,largest_batch_peak_bytes,"
                        "bytes_per_sample_over_batches,largest_batch_limit_bytes,largest_batch_stopped_by"));
  EXPECT_THAT(csv, HasSubstr(",6144,6400,4089446400,524288,4294967296,"));
  const auto json = nlohmann::json::parse(render_json(s));
  EXPECT_EQ(json["largest_batch"][0]["largest_batch"], 6144);
  EXPECT_EQ(json["largest_batch"][0]["stop"], "allocator");
  EXPECT_EQ(json["largest_batch"][0]["bytes_per_sample"], 524288);
  EXPECT_TRUE(json["largest_batch"][1]["largest_batch"].is_null());
  EXPECT_TRUE(json["largest_batch"][1]["peak_bytes"].is_null());
  EXPECT_TRUE(json["largest_batch"][2]["limit_bytes"].is_null());
}

TEST(Largest, LeavesNoTraceWhereNobodyAskedForIt) {
  const Summary none = sample_summary(10);
  EXPECT_THAT(render_terminal(none, {.width = 200}), Not(HasSubstr("Largest batch")));
  EXPECT_THAT(render_html(none), Not(HasSubstr("id=\"largest\"")));
  EXPECT_THAT(render_markdown(none), Not(HasSubstr("Largest batch")));
  EXPECT_THAT(render_csv(none), Not(HasSubstr("largest_batch")));
  EXPECT_FALSE(nlohmann::json::parse(render_json(none)).contains("largest_batch"));
}

}  // namespace
}  // namespace bakeoff::report
