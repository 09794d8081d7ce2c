#include "report/history_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "report/history_formats.h"
#include "report/sample_summary_testing.h"
#include "table/text.h"

namespace bakeoff::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

store::Line made_line(const std::string& name, int64_t runs) {
  return {.id = "f1043d12c8c9d3de",
          .name = "net " + name,
          .recipe = "net",
          .contender = name,
          .machine = "Example CPU, 2 CPUs, 8 GiB",
          .measured = "seconds per step: train, equalised, float32",
          .runs = runs,
          .series = 2,
          .latest = "2026-01-03T00:00:00Z"};
}

// With a shift in the middle at a new version of a package.
History made_history(const std::string& name, size_t n, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<store::LinePoint> points;
  for (size_t i = 0; i < n; ++i) {
    const bool late = i >= n / 2;
    const double seconds = 0.01 * (late ? 1.08 : 1) * (1 + 0.01 * normal(random));
    points.push_back(
        {.run = fmt::format("01KDZPZV0050Y6TB4J7K{:06}", i),
         .started = fmt::format("2026-{:02}-{:02}T{:02}:00:00Z", 1 + i / 700 % 12, 1 + i / 25 % 28, i % 24),
         .seconds = seconds,
         .low = seconds * 0.98,
         .high = seconds * 1.02,
         .commit = fmt::format("{:09x}{:031}", i / 500, 0),
         .packages = late ? R"({"torch":"2.13.0"})" : R"({"torch":"2.12.0"})"});
  }
  return history_of(made_line(name, static_cast<int64_t>(n)), points);
}

TEST(HistoryPage, OfTenThousandPoints) {
  std::vector<History> histories;
  for (int i = 0; i < 8; ++i)
    histories.push_back(made_history(fmt::format("torch[workers={}]", i), 250, static_cast<uint64_t>(i + 2)));
  histories.push_back(made_history("jax", 8000));
  const std::string page = render_history_page(histories, "/home/a/index.sqlite", "2026-01-03T00:00:00Z");
  keep_page("history", page);
  EXPECT_THAT(page, HasSubstr("10,000</b><span>points on this page"));
  EXPECT_THAT(page, HasSubstr("A history nominates, a pair decides"));
  EXPECT_THAT(page, HasSubstr("bakeoff gate"));
  EXPECT_THAT(page, HasSubstr("torch 2.12.0 -> 2.13.0"));
  EXPECT_FALSE(page.find(" src=") != page.npos || page.find(" href=") != page.npos)
      << "it names another file";
}

TEST(HistoryPage, OfNumbersThatAreHardlyAnyMore) {
  std::vector<store::LinePoint> points;
  for (int i = 0; i < 30; ++i)
    points.push_back({.run = fmt::format("01KDZPZV0050Y6TB4J7K{:06}", i),
                      .seconds = 1e-320,
                      .low = 5e-324,
                      .high = 1e-308});
  const History history = history_of(made_line("tiny", 30), points);
  EXPECT_THAT(render_history_page({history}, "x.csv", "2026-01-03T00:00:00Z"), HasSubstr("net tiny"));
}

TEST(HistoryPage, WithoutSeries) {
  const std::string page = render_history_page({}, "/i", "now");
  keep_page("history_empty", page);
  EXPECT_THAT(page, HasSubstr("No series yet"));
}

TEST(HistoryPage, NamesAreTextNeverMarkup) {
  const std::string evil = "</script><script>alert(1)</script>\x1b[31m\"'&";
  History history = made_history(evil, 20);
  history.line.recipe = evil;
  history.points[3].note = evil;
  const std::string page = render_history_page({history, made_history("jax", 1)}, evil, "now");
  keep_page("history_poisoned", page);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
}

TEST(HistoryText, FitsEveryWidthAndSaysWhatDecides) {
  const History history = made_history("torch", 60);
  for (const int width : {40, 60, 80, 120, 200}) {
    for (const std::string& text : {render_history(history, {.width = width}),
                                    render_history_list({history, history}, "/i", {.width = width})}) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) EXPECT_LE(table::display_width(line), width) << line;
    }
  }
  History far = history;
  far.line.machine = std::string(80, 'm');
  const std::string list = render_history_list({far}, "/i", {.width = 100});
  EXPECT_THAT(list, HasSubstr(title_of(far.line))) << "names are not broken for what may go";
  EXPECT_THAT(list, Not(HasSubstr("mmm")));
  const std::string text = render_history(history, {.width = 200});
  EXPECT_THAT(text, HasSubstr("a history nominates, a pair decides: bakeoff gate --base REF --head REF"));
  EXPECT_THAT(text, HasSubstr("bakeoff history accept f1043d12 --run 01KDZPZV0050Y6TB4J7K0000"));
  EXPECT_THAT(text, HasSubstr("torch 2.12.0 -> 2.13.0"));
}

TEST(HistoryText, OfAChangedCommitNamesBoth) {
  History history = made_history("torch", 60);
  history.points[29].commit = std::string(40, 'a');
  history.points[30].commit = std::string(40, 'b');
  history.shifts = {{.at = 30, .before = 0.01, .after = 0.02, .ratio = 2}};
  EXPECT_EQ(how_to_decide(history, history.shifts[0]), "bakeoff gate --base aaaaaaaaa --head bbbbbbbbb");
}

}  // namespace
}  // namespace bakeoff::report
