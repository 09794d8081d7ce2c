#include "proc/ring.h"

#include <algorithm>

#include "base/files.h"
#include "proc/testing.h"

namespace bakeoff::proc {
namespace {

using testing::FakeWorker;

FakeWorker worker_with(const MarkRing& ring) {
  ChildOptions options = testing::fake_options();
  options.argv.insert(options.argv.end(), {"--ring", ring.path()});
  return FakeWorker(options);
}

TEST(MarkRing, ReadsTheMarksOfAWorkerOnOurClock) {
  const testing::TestFolder folder;
  const MarkRing ring = MarkRing::create(folder / "marks", 100).value();
  FakeWorker worker = worker_with(ring);
  ASSERT_TRUE(worker.import(R"("step_ms":"2")"));
  ASSERT_TRUE(worker.build());
  EXPECT_EQ(ring.count(), 0);
  const int64_t begin = testing::now();
  ASSERT_TRUE(worker.run(10));
  const int64_t end = testing::now();
  const Marks marks = ring.since(0);
  EXPECT_EQ(marks.first, 0);
  ASSERT_EQ(marks.ns.size(), 10U);
  EXPECT_GT(marks.ns.front(), begin);
  EXPECT_LT(marks.ns.back(), end);
  for (size_t i = 1; i < marks.ns.size(); ++i) EXPECT_GE(marks.ns[i] - marks.ns[i - 1], 2'000'000);
  EXPECT_EQ(ring.since(7).ns.size(), 3U);
  EXPECT_TRUE(ring.since(10).ns.empty());
  EXPECT_TRUE(ring.since(1000).ns.empty());
}

TEST(MarkRing, OverwrittenMarksAreToldByTheirNumber) {
  const testing::TestFolder folder;
  const MarkRing ring = MarkRing::create(folder / "marks", 8).value();
  FakeWorker worker = worker_with(ring);
  ASSERT_TRUE(worker.import(""));
  ASSERT_TRUE(worker.build());
  ASSERT_TRUE(worker.run(20));
  EXPECT_EQ(ring.count(), 20);
  const Marks marks = ring.since(3);
  EXPECT_EQ(marks.first, 13);
  ASSERT_EQ(marks.ns.size(), 7U);
  EXPECT_TRUE(std::is_sorted(marks.ns.begin(), marks.ns.end()));
}

TEST(MarkRing, WithoutItsFileItGoesOn) {
  const testing::TestFolder folder;
  MarkRing ring = MarkRing::create(folder / "marks", 8).value();
  FakeWorker worker = worker_with(ring);
  ASSERT_TRUE(worker.import(""));
  ring.unlink();
  EXPECT_FALSE(fs::exists(folder / "marks"));
  ASSERT_TRUE(worker.build());
  ASSERT_TRUE(worker.run(3));
  EXPECT_EQ(ring.count(), 3);
}

TEST(MarkRing, OwnsItsFile) {
  const testing::TestFolder folder;
  {
    MarkRing ring = MarkRing::create(folder / "marks", 8).value();
    EXPECT_FALSE(MarkRing::create(folder / "marks", 8));
    const MarkRing moved = std::move(ring);
    EXPECT_TRUE(fs::exists(folder / "marks"));
    EXPECT_EQ(moved.count(), 0);
  }
  EXPECT_FALSE(fs::exists(folder / "marks"));
  EXPECT_FALSE(MarkRing::create(folder / "marks", 0));
  EXPECT_FALSE(MarkRing::create("/no/such/folder/marks", 8));
}

TEST(MarkRing, WorkerRefusesAForeignFile) {
  const testing::TestFolder folder;
  ASSERT_TRUE(write_file(folder / "marks", std::string(200, 'x')));
  ChildOptions options = testing::fake_options();
  options.argv.insert(options.argv.end(), {"--ring", folder / "marks"});
  Child child = Child::start(options).value();
  LineChannel channel(child);
  const std::string answer = channel.receive(testing::in_seconds(), "start").value();
  EXPECT_NE(answer.find("not a ring of step marks"), std::string::npos) << answer;
  EXPECT_EQ(child.wait(testing::in_seconds())->code, 2);
}

}  // namespace
}  // namespace bakeoff::proc
