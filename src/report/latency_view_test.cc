#include "report/latency_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
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
Summary with_latency() {
  Summary s = sample_summary(10);
  const std::string first = s.ranked[0].contender.id, second = s.ranked[1].contender.id;
  for (const double rate : {0.0, 100.0}) {
    for (const auto& id : {first, second}) s.latency.push_back(steady(id, rate));
  }
  LatencyRow growing{.contender = first, .rate = 500, .state = LatencyState::kGrowing, .processes = 3};
  growing.service_ms = 3.02;
  growing.load = 1.51;
  growing.growth_per_s = 169;
  growing.note = "above its capacity: <b>500</b> requests arrive a second, 331 can be answered";
  s.latency.push_back(growing);
  s.latency_level = 0.99;
  s.batch = 1;
  return s;
}

TEST(PercentileName, HasNoMoreDigitsThanItNeeds) {
  EXPECT_EQ(percentile_name(0.5), "p50");
  EXPECT_EQ(percentile_name(0.999), "p99.9");
  EXPECT_EQ(percentile_name(99.99 / 100), "p99.99");
}

TEST(LatencyCells, ShowValueBoundsAndRangeOverProcesses) {
  const auto rows = latency_cells(with_latency());
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].mode, "single stream");
  EXPECT_EQ(rows[2].mode, "100 requests/s");
  EXPECT_EQ(rows[2].load, "30%");
  EXPECT_EQ(rows[0].load, "–") << "one after another asks for all there is";
  EXPECT_EQ(rows[2].percentiles[0].bounds, "[3.19, 3.24]");
  EXPECT_EQ(rows[2].percentiles[1].value, "11.4");
  EXPECT_EQ(rows[2].percentiles[1].bounds, "[9.07, ∞)");
  EXPECT_EQ(rows[2].percentiles[1].range, "8.80 to 14.2");
  EXPECT_EQ(rows[4].state, "queue grows");
  EXPECT_EQ(rows[4].percentiles[0].value, "–") << "a queue that grows has no percentile";
  EXPECT_EQ(rows[4].mean, "–");
}

TEST(Latency, StandsInEveryFormat) {
  const Summary s = with_latency();
  const std::string terminal = render_terminal(s, {.width = 200});
  for (const char* part : {"Latency", "p50", "p99.9", "[9.07, ∞)", "queue grows", "331 can be answered",
                           "wait for nobody", "99% on its own"})
    EXPECT_THAT(terminal, HasSubstr(part));
  const std::string markdown = render_markdown(s);
  EXPECT_THAT(markdown, HasSubstr("| 100 requests/s | `tensorflow[mode=function]` | 3.21 [3.19, 3.24] |"));
  EXPECT_THAT(markdown, Not(HasSubstr("<b>500")));
  const std::string html = render_html(s);
  EXPECT_THAT(html, HasSubstr("<section id=\"latency\">"));
  EXPECT_THAT(html, HasSubstr("processes 8.80 to 14.2"));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;500&lt;/b&gt; requests arrive"));
  const Summary none = sample_summary(10);
  EXPECT_THAT(render_terminal(none, {.width = 200}), Not(HasSubstr("Latency")));
  EXPECT_THAT(render_html(none), Not(HasSubstr("id=\"latency\"")));
  EXPECT_THAT(render_markdown(none), Not(HasSubstr("Latency")));
}

TEST(Latency, NoTerminalLineIsWiderThanTheScreen) {
  const Summary s = with_latency();
  for (int width = 40; width <= 200; width += 5) {
    const std::string plain = render_terminal(s, {.width = width});
    for (size_t at = 0, end; (end = plain.find('\n', at)) != std::string::npos; at = end + 1)
      ASSERT_LE(display_width(plain.substr(at, end - at)), width) << plain.substr(at, end - at);
  }
}

TEST(Latency, JsonHoldsBoundsAndWhatIsOpen) {
  const auto json = nlohmann::json::parse(render_json(with_latency()));
  const auto& rows = json["latency"]["rows"];
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_TRUE(rows[0]["arrivals_per_second"].is_null());
  EXPECT_EQ(rows[2]["arrivals_per_second"], 100);
  EXPECT_DOUBLE_EQ(rows[2]["percentiles"][1]["percentile"].get<double>(), 99.9);
  EXPECT_EQ(rows[2]["percentiles"][1]["ms"]["low"], 9.07);
  EXPECT_TRUE(rows[2]["percentiles"][1]["ms"]["high"].is_null());
  EXPECT_EQ(rows[4]["queue"], "growing");
  EXPECT_TRUE(rows[4]["mean_ms"].is_null());
  EXPECT_EQ(rows[4]["growth_per_second"], 169);
  EXPECT_FALSE(nlohmann::json::parse(render_json(sample_summary(10))).contains("latency"));
}

TEST(Latency, CsvHasTheSameColumnsForEveryContender) {
  const Summary s = with_latency();
  const auto first = latency_fields(s, s.ranked[0].contender.id);
  const auto third = latency_fields(s, s.ranked[2].contender.id);
  ASSERT_EQ(first.size(), third.size());
  ASSERT_EQ(first.size(), 3 * (2 + 2 * 3u));
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].first, third[i].first);
    EXPECT_EQ(third[i].second, "") << "it was not measured";
  }
  const auto value = [&](const std::string& name) {
    for (const auto& [key, text] : first) {
      if (key == name) return text;
    }
    return std::string("no such column");
  };
  EXPECT_EQ(value("latency_100_per_s_p50_ms"), "3.21");
  EXPECT_EQ(value("latency_100_per_s_p99.9_ms_high"), "") << "not bounded";
  EXPECT_EQ(value("latency_500_per_s_queue"), "queue grows");
  EXPECT_EQ(value("latency_500_per_s_p50_ms"), "");
  EXPECT_EQ(value("latency_single_stream_load"), "");
  EXPECT_THAT(render_csv(s), HasSubstr("latency_single_stream_p50_ms_low"));
  EXPECT_THAT(render_csv(sample_summary(10)), Not(HasSubstr("latency")));
}

}  // namespace
}  // namespace bakeoff::report
