#include "store/index.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/testing.h"
#include "store/read_run.h"

namespace bakeoff::store {
namespace {

using bakeoff::testing::TestFolder;

class Indexes : public ::testing::Test {
 protected:
  Index open() {
    auto index = Index::open(folder_.path(), "");
    EXPECT_TRUE(index) << (index ? "" : index.error().text());
    return std::move(*index);
  }
  const TestFolder folder_;
};

IndexedRun run_at(int day, const std::string& directory, double seconds = 0.01,
                  const std::string& line = "l") {
  IndexedRun run{.directory = directory,
                 .stamp = "1",
                 .started = fmt::format("2026-01-{:02}T00:00:00Z", day),
                 .host = "h",
                 .recipe = "tiny"};
  run.id = run_id(*unix_seconds(run.started) * 1000, std::string(32, '0') + directory);
  run.id += directory.substr(directory.rfind('/') + 1);
  Series series{.id = "s" + line, .line = line, .name = "tiny torch", .recipe = "tiny", .contender = "torch"};
  series.packages = "{}";
  run.results.push_back({.series = series, .seconds = seconds, .verdict = "leader", .heats = 3});
  return run;
}

TEST_F(Indexes, RunsComeBackInTimeOrder) {
  Index index = open();
  const std::vector<IndexedRun> runs = {run_at(3, "/r/c", 0.03), run_at(1, "/r/a", 0.01),
                                        run_at(2, "/r/b", 0.02)};
  ASSERT_TRUE(index.put(runs));
  const auto points = index.points("l", 2);
  ASSERT_TRUE(points);
  ASSERT_EQ(points->size(), 2u);  // the latest two, oldest first
  EXPECT_EQ((*points)[0].seconds, 0.02);
  EXPECT_EQ((*points)[1].seconds, 0.03);
  const auto lines = index.lines();
  ASSERT_EQ(lines->size(), 1u);
  EXPECT_EQ(lines->front().runs, 3);
  EXPECT_EQ(lines->front().first, "2026-01-01T00:00:00Z");
  EXPECT_EQ(lines->front().latest, "2026-01-03T00:00:00Z");
}

TEST_F(Indexes, ARunThatIsPutAgainReplacesWhatWasKnown) {
  Index index = open();
  const IndexedRun before = run_at(1, "/r/a", 0.01);
  IndexedRun after = run_at(1, "/r/a", 0.02, "other");
  after.id += "X";  // it was half written before
  ASSERT_TRUE(index.put({&before, 1}));
  ASSERT_TRUE(index.put({&after, 1}));
  const auto lines = index.lines();
  ASSERT_EQ(lines->size(), 1u);  // a series without runs is gone
  EXPECT_EQ(lines->front().id, "other");
  EXPECT_EQ(lines->front().runs, 1);
  EXPECT_EQ(index.tally()->runs, 1);
}

TEST_F(Indexes, ACopyIsLeftOutAndAMovedRunIsFollowed) {
  Index index = open();
  ASSERT_TRUE(write_file(folder_ / "a/run.json", "{}"));
  const IndexedRun run = run_at(1, (folder_ / "a").string());
  IndexedRun copy = run;
  copy.directory = (folder_ / "b").string();
  ASSERT_EQ(*index.put({&run, 1}), 0);
  EXPECT_EQ(*index.put({&copy, 1}), 1);
  EXPECT_EQ(index.runs(9)->front().directory, run.directory);
  fs::remove_all(folder_ / "a");
  EXPECT_EQ(*index.put({&copy, 1}), 0);
  EXPECT_EQ(index.runs(9)->front().directory, copy.directory);
  EXPECT_EQ(index.tally()->runs, 1);
}

TEST_F(Indexes, ADirectoryThatCannotBeReadAnyMoreIsSkippedAndComesBack) {
  Index index = open();
  const IndexedRun run = run_at(1, "/r/a");
  ASSERT_TRUE(index.put({&run, 1}));
  const Skipped skipped{.directory = "/r/a", .reason = "torn", .seen = "2026-01-01T00:00:00Z"};
  ASSERT_TRUE(index.skip({&skipped, 1}));
  EXPECT_EQ(index.tally()->runs, 0);
  EXPECT_EQ(*index.skipped(9), (std::vector<Skipped>{skipped}));
  ASSERT_TRUE(index.put({&run, 1}));
  EXPECT_EQ(index.tally()->skipped, 0);
  EXPECT_EQ(index.tally()->runs, 1);
}

TEST_F(Indexes, AnAcceptedStepIsOfItsRunAndCanBeWithdrawn) {
  Index index = open();
  IndexedRun run = run_at(1, "/r/a");
  run.results[0].accepted = AcceptedStep{.contender = "torch", .at = "now", .note = "meant"};
  ASSERT_TRUE(index.put({&run, 1}));
  EXPECT_EQ(index.points("l", 9)->front().accepted, "meant");
  run.results[0].accepted->withdrawn = true;
  ASSERT_TRUE(index.put({&run, 1}));
  EXPECT_EQ(index.points("l", 9)->front().accepted, std::nullopt);
}

TEST_F(Indexes, WhatIsNoTimeHasNoPoint) {
  Index index = open();
  IndexedRun run = run_at(1, "/r/a");
  run.results[0].seconds.reset();
  run.results[0].reason = "out of memory";
  ASSERT_TRUE(index.put({&run, 1}));
  EXPECT_TRUE(index.points("l", 9)->empty());
  EXPECT_EQ(index.lines()->front().runs, 1);
}

TEST_F(Indexes, NamesOfAnyBytesAreValues) {
  Index index = open();
  IndexedRun run = run_at(1, "/r/'; DROP TABLE runs; --\xF0\x9F\x92\xA5");
  run.host = std::string("a\0b", 3);
  ASSERT_TRUE(index.put({&run, 1}));
  EXPECT_EQ(index.runs(9)->front().directory, run.directory);
  EXPECT_EQ(index.runs(9)->front().host, run.host);
}

TEST_F(Indexes, TheClockThatWasSetBackIsSeen) {
  Index index = open();
  const IndexedRun run = run_at(5, "/r/a");
  ASSERT_TRUE(index.put({&run, 1}));
  EXPECT_TRUE(*index.later_run("h", "2026-01-04T00:00:00Z"));
  EXPECT_FALSE(*index.later_run("h", "2026-01-06T00:00:00Z"));
  EXPECT_FALSE(*index.later_run("another", "2026-01-04T00:00:00Z"));
}

TEST(RunId, SortsByTimeAndDependsOnTheContent) {
  const std::string hash(64, 'a');
  EXPECT_EQ(run_id(0, hash).size(), 26u);
  EXPECT_LT(run_id(1000, std::string(64, 'f')), run_id(2000, std::string(64, '0')));
  EXPECT_NE(run_id(1000, std::string(64, 'f')), run_id(1000, std::string(64, '0')));
  EXPECT_EQ(run_id(-5, hash), run_id(0, hash));
}

TEST(UnixSeconds, OfATimeAndOfNone) {
  EXPECT_EQ(unix_seconds("1970-01-02T00:00:01Z"), 86401);
  for (const char* wrong : {"", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+", "yesterday"})
    EXPECT_FALSE(unix_seconds(wrong)) << wrong;
}

TEST(StoredPath, KeepsEveryNameAndComesBack) {
  for (const char* path :
       {"/srv/runs/a", "/srv/ünï/100% sure", "/srv/\xff\xfe", "/srv/a\nb", "/srv/\x1b[31m"}) {
    const std::string stored = stored_path(path);
    EXPECT_EQ(path_of(stored), fs::path(path)) << stored;
    EXPECT_EQ(stored.find('\n'), std::string::npos);
  }
  EXPECT_EQ(stored_path("/srv/runs/a"), "/srv/runs/a");
}

TEST(MachineClass, HasNoHostName) {
  Host host{.name = "a", .cpu = "Example", .cpus = 4, .memory_bytes = int64_t{16} << 30};
  EXPECT_EQ(machine_class(host), "Example, 4 CPUs, 16 GiB");
}

}  // namespace
}  // namespace bakeoff::store
