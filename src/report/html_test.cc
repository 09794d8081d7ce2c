#include "report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "report/charts.h"
#include "report/sample_summary_testing.h"
#include "report/svg.h"

namespace bakeoff::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t occurrences(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// Every attribute value of every picture, texts and titles left out.
std::string attributes(const std::string& html) {
  std::string out;
  for (size_t at = html.find("<svg"); at != std::string::npos; at = html.find("<svg", at)) {
    const size_t end = html.find("</svg>", at);
    bool tag = false;
    for (; at < end; ++at) {
      tag = html[at] == '<' || (tag && html[at - 1] != '>');
      if (tag) out += html[at];
    }
  }
  return out;
}

// Checks that the tags that must be closed are, in order; returns how many there are.
int expect_nested(const std::string& html) {
  const std::string body =
      html.substr(html.find("<body>"), html.find("<script>") - html.find("<body>")) + "</body>";
  static const std::regex tag("<(/?)([a-z][a-z0-9]*)([^>]*)>");
  std::vector<std::string> open;
  int n = 0;
  for (auto it = std::sregex_iterator(body.begin(), body.end(), tag); it != std::sregex_iterator();
       ++it, ++n) {
    const std::string name = (*it)[2], rest = (*it)[3];
    if (name == "wbr" || name == "meta" || (!rest.empty() && rest.back() == '/')) continue;
    if ((*it)[1].length() == 0) {
      open.push_back(name);
      continue;
    }
    if (open.empty() || open.back() != name) {
      ADD_FAILURE() << "</" << name << "> closes <" << (open.empty() ? "" : open.back()) << "> at "
                    << it->position();
      return n;
    }
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
  return n;
}

Summary poisoned_summary() {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  Summary s = sample_summary(10);
  s.margin = nan;
  for (Row& row : s.ranked) {
    row.ratio = {inf, nan, -inf};
    row.start_up = {nan, inf, -inf, nan, inf};
    row.break_even_step = inf;
    row.step_ms = {nan, inf, -1, 0, 5};
    row.heat_ms = {nan, inf};
    row.proof->losses = {nan, inf, 1};
  }
  s.ranked[0].ms_per_step = {nan, nan, nan};
  s.ranked[1].ms_per_step = {0, 0, 0};
  return s;
}

TEST(Html, IsOneFileWithoutNetwork) {
  const std::string html = render_html(sample_summary());
  for (const char* part : {"http://", "https://", "src=", "@import", "url(", "<link", "<iframe", "{{"}) {
    EXPECT_THAT(html, Not(HasSubstr(part)));
  }
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_EQ(html.rfind("<!DOCTYPE html>", 0), 0U);
}

TEST(Html, EscapesHostileText) {
  const std::string html = render_html(sample_summary());
  EXPECT_EQ(occurrences(html, "<script"), 1U);
  EXPECT_EQ(occurrences(html, "</script"), 1U);
  EXPECT_THAT(html, Not(HasSubstr("<b>not bold")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_THAT(html, HasSubstr("alert(2)"));
  EXPECT_THAT(html, HasSubstr("alert(3)"));
  EXPECT_THAT(html, HasSubstr("Grüße"));
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
}

TEST(Html, ShowsCommandsAsCodeAndRecordsAsText) {
  Summary s = sample_summary();
  s.notes.push_back("see `bakeoff help <heat>`; a lone ` stays");
  s.ranked[0].effective["optimizer"] = R"({"class":"RMSprop","centered":false,"rho":0.9})";
  s.ranked[0].effective["xla_flags"] = "";
  const std::string html = render_html(s);
  EXPECT_THAT(html, HasSubstr("see <code>bakeoff help &lt;heat&gt;</code>; a lone ` stays"));
  EXPECT_THAT(html, HasSubstr("class: RMSprop, centered: false, rho: 0.9"));
  EXPECT_THAT(html, Not(HasSubstr("xla_flags")));
}

TEST(Html, SpeaksOfLinesOnlyWhereThereAreSome) {
  EXPECT_THAT(render_html(sample_summary()), HasSubstr("the line is the interval"));
  EXPECT_THAT(render_html(single_summary()), Not(HasSubstr("the line is the interval")));
  Summary open = sample_summary();
  for (Row& row : open.ranked) row.ratio = {row.ratio.value, 0, std::numeric_limits<double>::infinity()};
  EXPECT_THAT(render_html(open), Not(HasSubstr("the line is the interval")));
}

TEST(Html, PagesForABrowser) {
  keep_page("sample", render_html(sample_summary()));
  keep_page("single", render_html(single_summary()));
  keep_page("empty", render_html(empty_summary()));
  keep_page("poisoned", render_html(poisoned_summary()));
}

TEST(Html, TagsNest) {
  EXPECT_GT(expect_nested(render_html(sample_summary())), 1000);
  EXPECT_GT(expect_nested(render_html(single_summary())), 50);
  EXPECT_GT(expect_nested(render_html(empty_summary())), 20);
  EXPECT_GT(expect_nested(render_html(poisoned_summary())), 500);
}

TEST(Html, HasEverySection) {
  const std::string html = render_html(sample_summary());
  for (const char* id : {"table", "unranked", "notes", "intervals", "steps", "start", "total", "losses",
                         "parity", "fairness", "settings", "host", "sources", "texts", "reading"}) {
    EXPECT_EQ(occurrences(html, std::string("<section id=\"") + id + '"'), 1U) << id;
  }
  const std::string empty = render_html(empty_summary());
  EXPECT_THAT(empty, HasSubstr("No contender could be ranked."));
  EXPECT_THAT(empty, Not(HasSubstr("<svg")));
}

TEST(Html, CarriesTheTrackLabelAndVerdict) {
  const std::string html = render_html(sample_summary());
  EXPECT_THAT(html, HasSubstr("<title>mnist_cnn · equalised track · Bakeoff</title>"));
  EXPECT_THAT(html, HasSubstr("<h1>Too close to call: TensorFlow, Keras on TensorFlow, "));
  EXPECT_THAT(render_html(single_summary()), HasSubstr("as-is track"));
}

TEST(Html, WhoHadNoHeatIsNotSpokenAbout) {
  Summary s = sample_summary(10);
  s.outlooks.clear();
  s.unranked.resize(2);
  for (const size_t raced : {1u, 2u}) {
    s.ranked.resize(raced);
    for (Row& row : s.unranked) row.waits = true;
    s.decided = false;
    const std::string html = render_html(s);
    EXPECT_THAT(html, HasSubstr(raced == 1 ? "<h1>Only TensorFlow was raced; 2 contenders had no heat."
                                           : "<h1>TensorFlow leads so far; 2 contenders had no heat."));
    EXPECT_THAT(html, HasSubstr("To settle it"));
    EXPECT_THAT(html, HasSubstr("2 contenders had no heat yet."));
    EXPECT_THAT(html, Not(HasSubstr(">Decided<")));
    EXPECT_THAT(html, Not(HasSubstr("could be ranked")));
  }
}

TEST(Html, CoordinatesAreNumbers) {
  for (const Summary& s : {sample_summary(), single_summary(), poisoned_summary()}) {
    const std::string svg = attributes(render_html(s));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    EXPECT_THAT(svg, Not(HasSubstr("e+")));
  }
}

TEST(Html, StaysSmallWithTenContendersOf2000Steps) {
  Summary s = sample_summary(2000);
  s.ranked.push_back(s.ranked[3]);
  s.ranked.push_back(s.ranked[5]);
  ASSERT_EQ(s.ranked.size(), 10U);
  EXPECT_LT(render_html(s).size(), 3000000U);
}

TEST(Html, IsDeterministic) { EXPECT_EQ(render_html(sample_summary()), render_html(sample_summary())); }

TEST(Html, SourcesCanBeLeftOut) {
  EXPECT_THAT(render_html(sample_summary(10), {.sources = false}), Not(HasSubstr("class MnistCnn")));
}

TEST(IntervalChart, DrawsUnboundedEndsAsOpenArrows) {
  const std::string svg = interval_chart(sample_summary(), kWide);
  EXPECT_EQ(occurrences(svg, "class=\"arrow"), 3U) << "both ends of one contender, the upper of another";
  EXPECT_EQ(occurrences(svg, "class=\"dot"), 8U);
}

TEST(LossCharts, BreakTheLineWhereALossIsNotFinite) {
  const std::string svg = loss_error_chart(single_summary(), kWide);
  EXPECT_EQ(occurrences(svg, "class=\"curve c"), 2U);
  EXPECT_EQ(occurrences(svg, "class=\"bead"), 9U);
}

TEST(IntervalChart, ColoursAreThoseOfTheContenders) {
  const std::string svg = interval_chart(sample_summary(), kWide);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(occurrences(svg, "class=\"dot c" + std::to_string(i) + '"'), 1U);
}

TEST(IntervalChart, AnArrowMeansThatThereIsNoBound) {
  Summary s = sample_summary();
  for (Row& row : s.ranked) row.ratio = {row.ratio.value, row.ratio.value / 40, row.ratio.value * 40};
  EXPECT_EQ(occurrences(interval_chart(s, kWide), "class=\"arrow"), 0U) << "however far the bounds are";
}

TEST(StartUpChart, DrawsEveryStageAndTheColdCache) {
  const std::string svg = start_up_chart(sample_summary(), kWide);
  for (int stage = 0; stage < 4; ++stage)
    EXPECT_EQ(occurrences(svg, "class=\"stage" + std::to_string(stage)), 8U);
  EXPECT_EQ(occurrences(svg, "class=\"cold\""), 3U);
  EXPECT_THAT(svg, HasSubstr("cold 21.9 s"));
}

TEST(TotalTimeChart, MarksBreakEvenSteps) {
  for (const bool relative : {false, true}) {
    const std::string svg = total_time_chart(sample_summary(), kWide, relative);
    EXPECT_EQ(occurrences(svg, "class=\"cross"), 2U) << "a break-even before the first step is none";
    EXPECT_EQ(occurrences(svg, "class=\"curve"), 8U);
  }
  EXPECT_EQ(total_time_chart(single_summary(), kWide, true), "") << "nobody to be compared with";
}

TEST(LossCharts, ShowTheFailedContenderToo) {
  EXPECT_EQ(occurrences(loss_chart(sample_summary(), kWide), "class=\"curve"), 9U);
  const std::string error = loss_error_chart(sample_summary(), kNarrow);
  EXPECT_EQ(occurrences(error, "class=\"curve c"), 9U);
}

// What is drawn as allowed is what each contender was held against, step by step.
TEST(LossCharts, EveryContenderHasItsOwnToleranceAsABand) {
  Summary s = sample_summary();
  EXPECT_EQ(occurrences(loss_error_chart(s, kWide), "class=\"band\""), 1U) << "all have the same";
  EXPECT_THAT(loss_error_chart(s, kWide),
              HasSubstr("allowed for every contender: 1e-5 at the first step, 0.00019 at the last"));
  for (double& limit : s.ranked[2].proof->loss_limits) limit *= 10;
  const std::string two = loss_error_chart(s, kWide);
  EXPECT_EQ(occurrences(two, "class=\"band\""), 2U);
  EXPECT_THAT(two,
              HasSubstr("allowed for PyTorch · channels_last: 0.0001 at the first step, 0.0019 at the last"));
  for (Row& row : s.ranked) row.proof->loss_limits.clear();
  for (Row& row : s.unranked) {
    if (row.proof) row.proof->loss_limits.clear();
  }
  EXPECT_EQ(occurrences(loss_error_chart(s, kWide), "class=\"band\""), 0U)
      << "of older records nothing is drawn";
}

TEST(Charts, OfNothingAreEmpty) {
  const Summary s = empty_summary();
  for (const auto draw : {interval_chart, distribution_chart, start_up_chart, loss_chart, loss_error_chart}) {
    EXPECT_EQ(draw(s, kWide), "");
  }
  EXPECT_EQ(total_time_chart(s, kWide, false), "");
}

}  // namespace
}  // namespace bakeoff::report
