#include "history/series_file.h"

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
    auto series = read_series(write(text), unit);
    EXPECT_TRUE(series) << series.error().text();
    return series ? *series : std::vector<FileSeries>{};
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
