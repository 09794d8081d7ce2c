#include "history/series_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/testing.h"

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SeriesFile : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) {
    const auto path = folder_.path() / "times.csv";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::vector<FileSeries> read(const std::string& text, double unit = 1) {
    auto read = read_series(write(text), {.unit = unit});
    EXPECT_TRUE(read) << read.error().text();
    notes = read ? read->notes : std::vector<std::string>{};
    return read ? read->series : std::vector<FileSeries>{};
  }
  std::string refused(const std::string& text) {
    const auto series = read_series(write(text));
    return series ? "" : series.error().text();
  }
  static std::vector<double> seconds(const FileSeries& series) {
    std::vector<double> all;
    for (const auto& point : series.points) all.push_back(point.seconds);
    return all;
  }
  static std::vector<std::string> names(const std::vector<FileSeries>& all) {
    std::vector<std::string> found;
    for (const auto& one : all) found.push_back(one.line.name);
    return found;
  }

  std::vector<std::string> notes = {};  // of the last file
  bakeoff::testing::TestFolder folder_;
};

TEST_F(SeriesFile, OneColumnIsASeriesNamedAsTheFileIs) {
  const auto all = read("seconds\n0.5\n\n0.25\n");
  ASSERT_EQ(names(all), std::vector<std::string>{"times"});
  EXPECT_THAT(seconds(all[0]), ElementsAre(0.5, 0.25));
  EXPECT_EQ(all[0].points[1].started, "line 4");
  EXPECT_EQ(all[0].line.runs, 2);
}

TEST_F(SeriesFile, RowsAreSortedByTheirTime) {
  const auto all = read("time,value,commit\n2026-02-01,2,b\n2026-01-01,1,a\n");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_THAT(seconds(all[0]), ElementsAre(1, 2));
  EXPECT_EQ(all[0].points[0].commit, "a");
  EXPECT_EQ(all[0].line.latest, "2026-02-01");
}

TEST_F(SeriesFile, NumbersAreSortedAsNumbersAndOtherTextsNotAtAll) {
  EXPECT_THAT(seconds(read("time,seconds\n10,3\n2,2\n1,1\n")[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(seconds(read("time,seconds\n2024.01.01 10:00,1\n2024.01.01 9:00,2\n")[0]), ElementsAre(1, 2));
  EXPECT_THAT(seconds(read("time,seconds\n2026-01-02 09:00,2\n2026-01-02,1\n")[0]), ElementsAre(1, 2));
  EXPECT_THAT(seconds(read("time,seconds\n2026-01-02,1\n7,2\n2026-01-01,3\n")[0]), ElementsAre(1, 2, 3));
}

TEST_F(SeriesFile, OneNameOnTwoMachinesIsTwoSeries) {
  const auto all = read("name,machine,seconds\nnet,a,1\nnet,b,2\nnet,a,3\n");
  ASSERT_EQ(names(all), (std::vector<std::string>{"net", "net"}));
  EXPECT_THAT(seconds(all[0]), ElementsAre(1, 3));
  EXPECT_EQ(all[0].line.machine, "a");
  EXPECT_NE(all[0].line.id, all[1].line.id);
}

TEST_F(SeriesFile, SecondsSince1970AreDates) {
  const auto all = read("time,seconds\n1767225600,1\n");
  EXPECT_EQ(all[0].points[0].started, "2026-01-01T00:00:00Z");
}

TEST_F(SeriesFile, WithoutANameForTheTimeEachNumberIsASeries) {
  const auto all = read("time,commit,p50,p99,why\n1,aa,10,20,x\n2,bb,,21,\n", 1e-3);
  ASSERT_EQ(names(all), (std::vector<std::string>{"p50", "p99"}));
  EXPECT_THAT(seconds(all[0]), ElementsAre(0.01));
  EXPECT_THAT(seconds(all[1]), ElementsAre(0.02, 0.021));
}

TEST_F(SeriesFile, RowsNameTheirSeries) {
  EXPECT_EQ(names(read("name,seconds\nb,1\na,2\nb,3\n")), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names(read("name,x,y\nb,1,2\n")), (std::vector<std::string>{"b x", "b y"}));
}

// Rates of a long table: a series for each benchmark and configuration, and a time for each rate.
TEST_F(SeriesFile, RatesOfManyBenchmarksAreTimesOfAsManySeries) {
  std::string text = "date,benchmark,threads,ops_per_second\n";
  for (int day = 1; day <= 9; ++day)
    for (const char* benchmark : {"insert", "scan"})
      for (const int threads : {1, 8})
        text += fmt::format("2026-01-0{},{},{},{}\n", day, benchmark, threads, 200 * threads);
  const auto all = read(text, 1e-3);
  EXPECT_EQ(names(all), (std::vector<std::string>{"insert 1", "insert 8", "scan 1", "scan 8"}));
  ASSERT_EQ(all[0].points.size(), 9U);
  EXPECT_DOUBLE_EQ(all[0].points[0].seconds, 1.0 / 200) << "seconds, whatever --unit says";
  EXPECT_THAT(notes, ElementsAre(HasSubstr("'benchmark', 'threads'"),
                                 HasSubstr("'ops_per_second' is taken for a rate")));
}

TEST_F(SeriesFile, HostsThatAlternateAreApartAndOneThatMovesIsNot) {
  EXPECT_EQ(read("host,seconds\na,1\nb,2\na,1\nb,2\na,1\nb,2\n").size(), 2U);
  EXPECT_EQ(read("host,seconds\na,1\na,2\na,1\nb,2\nb,1\nb,2\n").size(), 1U);
  EXPECT_TRUE(notes.empty());
}

TEST_F(SeriesFile, PairsAreComparedAsPairs) {
  std::string text = "pair,side,ms\n";
  for (int pair = 1; pair <= 8; ++pair)  // the machine drifts by a factor of 8, a pair by nothing
    text += fmt::format("{0},old,{1}\n{0},new,{2}\n", pair, 10 * pair,
                        10.5 * pair * (pair % 2 == 0 ? 1.01 : 0.99));
  const auto file = read_series(write(text), {.unit = 1e-3});
  ASSERT_TRUE(file && file->pairs);
  EXPECT_EQ(file->pairs->base, "old");
  EXPECT_EQ(file->pairs->pairs, 8);
  EXPECT_NEAR(file->pairs->ratio.value, 1.05, 0.001);
  EXPECT_GT(file->pairs->ratio.low, 1.03);
  EXPECT_LT(file->pairs->ratio.high, 1.07);
  EXPECT_EQ(names(file->series), (std::vector<std::string>{"new", "old"}));
  EXPECT_FALSE(read_series(write("pair,side,ms\n1,a,1\n1,b,2\n1,c,3\n"))->pairs) << "three sides are none";
}

TEST_F(SeriesFile, ColumnsAreThoseThatTheUserNames) {
  const std::string text = "kind,took,other\nx,1,9\ny,2,9\nx,3,9\n";
  const auto read = read_series(write(text), {.time = "took", .by = {"kind"}});
  ASSERT_TRUE(read);
  EXPECT_EQ(names(read->series), (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(read->notes.empty());
  const auto none = read_series(write(text), {.time = "tok"});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text(), HasSubstr("its columns are: kind, took, other"));
}

TEST_F(SeriesFile, WhatATerminalObeysIsLeftOut) {
  const auto all = read("name,time,commit,run,seconds\n\"a\x1b[2Jb\",\x1b[1mx,\x1b[2Ja,\"r\n\x07\",1\n");
  const auto& point = all[0].points[0];
  for (const std::string& text : {all[0].line.name, point.started, point.commit, point.run})
    EXPECT_EQ(text.find_first_of("\x1b\x07\n"), std::string::npos) << text;
}

TEST_F(SeriesFile, AcceptedStepsAreKept) {
  const auto all = read("seconds,shift,note\n1,nominated,\n1,accepted,\"meant, truly\"\n");
  EXPECT_FALSE(all[0].points[0].accepted);
  EXPECT_EQ(all[0].points[1].accepted, "meant, truly");
}

TEST_F(SeriesFile, MistakesNameTheirLine) {
  EXPECT_THAT(refused(""), HasSubstr("no rows below a header"));
  EXPECT_THAT(refused("seconds\n"), HasSubstr("no rows below a header"));
  EXPECT_THAT(refused("seconds\n1\nred\n"), HasSubstr("times.csv:3"));
  EXPECT_THAT(refused("seconds\n0\n"), HasSubstr("'0' is no time above 0"));
  EXPECT_THAT(refused("seconds\nnan\n"), HasSubstr("'nan' is no time above 0"));
  EXPECT_THAT(refused("seconds,host\n1\n"), HasSubstr("has 1 cells, and the header 2"));
  EXPECT_THAT(refused("seconds,seconds\n1,2\n"), HasSubstr("two columns are called 'seconds'"));
  EXPECT_THAT(refused("host,commit\na,b\n"), HasSubstr("no column holds a time"));
  EXPECT_THAT(refused("seconds,host\n,a\n"), HasSubstr("no row has a time"));
  EXPECT_THAT(refused("seconds\n\"1\n"), HasSubstr("never closed"));
  EXPECT_THAT(refused("seconds,packages\n1,{\n"), HasSubstr("'{' is no JSON object"));
}

}  // namespace
}  // namespace bakeoff
