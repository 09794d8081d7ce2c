#include "report/search_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/charts.h"
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

Summary with_search() {
  Summary s = sample_summary(10);
  SearchRow first{.contender = s.ranked[0].contender.id, .best = 256, .enough = 128};
  first.points = {
      {16, 2, 1200, 1180, 1220, 1 << 29}, {128, 2, 3320, 3300, 3340, 1 << 29}, {256, 2, 3400, 3350, 3410}};
  SearchRow second{.contender = s.ranked[1].contender.id, .best = 16, .enough = 16};
  second.points = {{16, 1, 900, 900, 900}, {32, 0, 0, 0, 0, 0, "run: killed <b>9</b>, out of memory"}};
  second.note = "batch 32: run: killed <b>9</b>, out of memory";
  SearchRow third{.contender = s.ranked[2].contender.id};
  third.points = {{16, 0, 0, 0, 0, 0, "emit: the batch of a script of your own is its own"}};
  third.note = third.points[0].failure;
  s.search = {first, second, third};
  return s;
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(SearchCells, NameTheBestBatch) {
  const auto rows = search_cells(with_search());
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].best, "256");
  EXPECT_EQ(rows[0].rate, "3,400");
  EXPECT_EQ(rows[0].range, "3,350 to 3,410");
  EXPECT_EQ(rows[0].enough, "128");
  EXPECT_EQ(rows[0].tried, "16 to 256 (3)");
  EXPECT_EQ(rows[1].range, "–") << "one process";
  EXPECT_EQ(rows[2].best, "–");
}

TEST(BatchChart, HasALineForEachContenderAndADotForEachBatch) {
  for (const double width : {kWide, kNarrow}) {
    const std::string svg = batch_chart(with_search(), width);
    EXPECT_EQ(occurrences(svg, "<circle"), 4u) << "what failed has none";
    EXPECT_EQ(occurrences(svg, "class=\"fat\""), 1u) << "one point is no line";
    EXPECT_THAT(svg, HasSubstr("batch 256: 3,400 samples/s, the best"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
  }
  EXPECT_EQ(batch_chart(sample_summary(10), kWide), "");
}

TEST(Search, StandsInEveryFormat) {
  const Summary s = with_search();
  const std::string terminal = render_terminal(s, {.width = 200});
  for (const char* part :
       {"Batch size", "best batch", "3,350 to 3,410", "out of memory", "no error rate is claimed"})
    EXPECT_THAT(terminal, HasSubstr(part));
  for (int width = 40; width <= 200; width += 10) {
    const std::string plain = render_terminal(s, {.width = width});
    for (size_t at = 0, end; (end = plain.find('\n', at)) != std::string::npos; at = end + 1)
      ASSERT_LE(display_width(plain.substr(at, end - at)), width) << plain.substr(at, end - at);
  }
  const std::string html = render_html(s);
  EXPECT_THAT(html, HasSubstr("<section id=\"batches\">"));
  EXPECT_THAT(html, HasSubstr("killed &lt;b&gt;9&lt;/b&gt;, out of memory"));
  EXPECT_THAT(html, Not(HasSubstr("<b>9</b>")));
  EXPECT_THAT(render_markdown(s), HasSubstr("| `tensorflow[mode=function]` | 256 | 3,400 |"));
  EXPECT_THAT(render_csv(s), HasSubstr("best_batch,best_batch_samples_per_second,enough_batch\r\n"));
  EXPECT_THAT(render_csv(s), HasSubstr(",256,3400,128\r\n"));
  const auto json = nlohmann::json::parse(render_json(s));
  EXPECT_EQ(json["batch_search"][0]["best_batch"], 256);
  EXPECT_EQ(json["batch_search"][0]["points"][1]["samples_per_second"], 3320);
  EXPECT_THAT(json["batch_search"][1]["points"][1]["failure"].get<std::string>(), HasSubstr("out of memory"));
  EXPECT_TRUE(json["batch_search"][2]["best_batch"].is_null());
}

TEST(Search, LeavesNoTraceWhereNobodyAskedForIt) {
  const Summary none = sample_summary(10);
  EXPECT_THAT(render_terminal(none, {.width = 200}), Not(HasSubstr("Batch size")));
  EXPECT_THAT(render_html(none), Not(HasSubstr("id=\"batches\"")));
  EXPECT_THAT(render_csv(none), Not(HasSubstr("best_batch")));
  EXPECT_FALSE(nlohmann::json::parse(render_json(none)).contains("batch_search"));
}

}  // namespace
}  // namespace bakeoff::report
