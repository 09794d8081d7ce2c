#include "study/batches/largest_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "machine/host.h"
#include "plan/fake_lanes_testing.h"
#include "records/records.h"
#include "sample/machine_limits.h"

namespace bakeoff {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::fake_spec;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TestFolder;

constexpr int64_t kMiB = int64_t{1} << 20;

LargestTrial fits(int64_t batch, int64_t peak = 0) {
  return {.contender = "a", .batch = batch, .limit_bytes = 1 << 30, .peak_bytes = peak};
}
LargestTrial fails(int64_t batch, const std::string& reason = "MemoryError", Stage stage = Stage::kRun,
                   const std::string& log = "") {
  LargestTrial trial = fits(batch);
  trial.failure = Failure{stage, reason, log};
  return trial;
}

TEST(StopOf, TellsWhatEndedAnAttempt) {
  const struct {
    Failure failure;
    Stop stop;
    bool memory;
  } cases[] = {
      {{Stage::kRun,
        "killed by signal 9 (SIGKILL) in stage run, out of memory: it used 1.1 GiB, above its limit of 1.0 "
        "GiB",
        "", Cause::kLimit},
       Stop::kLimit,
       true},
      {{Stage::kFirstStep,
        "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate "
        "memory",
        ""},
       Stop::kAllocator,
       true},
      {{Stage::kFirstStep, "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 3 bytes.", ""},
       Stop::kAllocator,
       true},
      {{Stage::kRun, "torch.OutOfMemoryError: CUDA out of memory.", ""}, Stop::kAllocator, true},
      {{Stage::kRun, "killed by signal 6 (SIGABRT) in stage run",
        "terminate called after throwing 'std::bad_alloc'"},
       Stop::kAllocator,
       true},
      {{Stage::kRun, "killed by signal 9 (SIGKILL) in stage run, likely out of memory", "", Cause::kKilled},
       Stop::kKilled,
       true},
      {{Stage::kRun, "RuntimeError: timed out, above its limit of 3", ""}, Stop::kCrash, true},
      {{Stage::kRun, "killed by signal 11 (SIGSEGV) in stage run", ""}, Stop::kCrash, true},
      {{Stage::kFirstStep, "timed out after 30 s in stage first step", "", Cause::kTime}, Stop::kTime, false},
      {{Stage::kImport, "MemoryError", ""}, Stop::kStart, false},
      {{Stage::kEmit, "the batch of a script of your own is its own", ""}, Stop::kNoScript, false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.failure.reason);
    EXPECT_EQ(stop_of(c.failure), c.stop);
    EXPECT_EQ(is_memory(c.stop), c.memory);
    EXPECT_THAT(in_words(c.stop, c.failure), HasSubstr(c.failure.reason.substr(0, 60)));
  }
  EXPECT_EQ(stop_of(std::nullopt), Stop::kNone);
  const std::string words =
      in_words(Stop::kAllocator, {Stage::kRun, "a\n  b\t" + std::string(1000, 'x'), ""});
  EXPECT_THAT(words, AllOf(HasSubstr("its allocator: a b x"), HasSubstr(" ...")));
  EXPECT_LT(words.size(), 200u);
}

// All batches that are tried when `largest` is the largest that fits.
std::vector<int64_t> search(int64_t largest, int64_t first, int64_t end) {
  std::vector<LargestTrial> own;
  std::vector<int64_t> tried;
  while (const auto batch = next_to_fit(own, first, end)) {
    tried.push_back(*batch);
    own.push_back(*batch <= largest ? fits(*batch) : fails(*batch));
    if (tried.size() > 100) break;
  }
  return tried;
}

TEST(NextToFit, DoublesThenBisects) {
  EXPECT_THAT(search(100, 32, 1000), ElementsAre(32, 64, 128, 96, 112, 104, 100));
  EXPECT_THAT(search(5, 32, 1000), ElementsAre(32, 16, 8, 4, 6, 5)) << "down where the first one fails";
  EXPECT_THAT(search(0, 4, 1000), ElementsAre(4, 2, 1)) << "not even one row";
  EXPECT_THAT(search(1 << 20, 32, 100), ElementsAre(32, 64, 100)) << "the end of the data";
  EXPECT_THAT(search(1 << 20, 32, 20), ElementsAre(20));
  EXPECT_THAT(search(3, 1, 0), IsEmpty());
}

TEST(NextToFit, EndsWithinASixteenthOfTheTruthWhateverThatIs) {
  for (int64_t largest = 1; largest < 3000; largest += 7) {
    const std::vector<int64_t> tried = search(largest, 256, 100000);
    int64_t low = 0, high = 100001;
    for (const int64_t batch : tried) {
      if (batch <= largest)
        low = std::max(low, batch);
      else
        high = std::min(high, batch);
    }
    ASSERT_LE(low, largest);
    ASSERT_LE(high - low, std::max<int64_t>(1, low / 16)) << largest;
    ASSERT_LT(tried.size(), 16u);
  }
}

TEST(NextToFit, EndsAtWhatMemoryDoesNotExplain) {
  LargestTrial late = fails(16, "timed out after 30 s");
  late.failure->cause = Cause::kTime;
  EXPECT_EQ(next_to_fit({fits(8), late}, 8, 1000), std::nullopt);
  EXPECT_EQ(next_to_fit({fails(8, "no module named torch", Stage::kImport)}, 8, 1000), std::nullopt);
}

TEST(LargestRows, NameTheBatchItsMemoryAndWhatStoppedTheNext) {
  const auto rows = largest_rows({fits(64, 300 * kMiB), fits(128, 400 * kMiB), fails(192, "MemoryError"),
                                  fails(256, "RuntimeError: other")},
                                 {"stranger", "a"}, 1'000'000, 60'000);
  ASSERT_THAT(rows, SizeIs(1));
  const LargestRow& row = rows[0];
  EXPECT_EQ(row.largest, 128);
  EXPECT_EQ(row.peak_bytes, 400 * kMiB);
  EXPECT_EQ(row.fails_at, 192);
  EXPECT_EQ(row.stop, Stop::kAllocator);
  EXPECT_EQ(row.note, "its allocator: MemoryError");
  EXPECT_EQ(row.limit_bytes, 1 << 30);
  EXPECT_EQ(row.tried, 4);
  EXPECT_FALSE(row.exact);
  EXPECT_NEAR(*row.bytes_per_sample, 100.0 * kMiB / 64, 1);
  EXPECT_TRUE(largest_rows({fits(3), fails(4)}, {"a"}, 100, 0)[0].exact);
}

TEST(LargestRows, MemoryPerSampleIsTheSlopeOverAllThatFit) {
  // 200 MiB and 2 MiB a sample, with an allocator that is 10 MiB off once: 2 MiB all the same.
  const auto rows =
      largest_rows({fits(100, 400 * kMiB), fits(200, 610 * kMiB), fits(400, 1000 * kMiB)}, {"a"}, 100'000, 0);
  EXPECT_NEAR(*rows[0].bytes_per_sample / kMiB, 2, 0.02);
  EXPECT_EQ(largest_rows({fits(100, kMiB)}, {"a"}, 1000, 0)[0].bytes_per_sample, std::nullopt) << "one";
  EXPECT_EQ(largest_rows({fits(100, 2 * kMiB), fits(200, kMiB)}, {"a"}, 1000, 0)[0].bytes_per_sample,
            std::nullopt)
      << "it falls";
}

TEST(LargestRows, SayWhereNothingFailed) {
  EXPECT_THAT(largest_rows({fits(50)}, {"a"}, 1000, 50)[0].note,
              HasSubstr("the data has 50 rows: a larger batch may fit"));
  EXPECT_THAT(largest_rows({fits(1000)}, {"a"}, 1000, 5000)[0].note,
              HasSubstr("the recipe tries none above 1,000"));
  EXPECT_THAT(largest_rows({fits(8)}, {"a"}, 1000, 5000)[0].note, HasSubstr("the run ended before"));
  const LargestRow none = largest_rows({fails(1)}, {"a"}, 1000, 5000)[0];
  EXPECT_EQ(none.largest, std::nullopt);
  EXPECT_EQ(none.fails_at, 1);
}

TEST(MemoryToGive, IsTheLeastOfMachineAndCgroupLessAReserve) {
  TestFolder folder;
  EXPECT_THAT(memory_to_give(folder.path()).error().message, HasSubstr("not known"));
  const auto put = [&](const std::string& file, const std::string& text) {
    ASSERT_TRUE(write_file(folder.path() / file, text));
  };
  put("proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable: 10485760 kB\n");  // 10 GiB
  EXPECT_EQ(memory_to_give(folder.path()).value(), 9 * 1024 * kMiB) << "a tenth stays free";
  put("proc/self/cgroup", "0::/job\n");
  put("sys/fs/cgroup/job/memory.current", std::to_string(3 * 1024 * kMiB));
  put("sys/fs/cgroup/job/memory.max", std::to_string(4 * 1024 * kMiB));
  EXPECT_EQ(memory_to_give(folder.path()).value(), 512 * kMiB) << "1 GiB is left of the cgroup's";
  put("sys/fs/cgroup/job/memory.stat",
      "inactive_file " + std::to_string(1024 * kMiB) + "\nactive_file 0\nanon 7\n");
  EXPECT_EQ(memory_to_give(folder.path()).value(), 1536 * kMiB) << "and files that can be given back";
  EXPECT_EQ(sample::available_memory_bytes(folder.path()), 2048 * kMiB) << "what everybody else reckons with";
  put("sys/fs/cgroup/job/memory.current", std::to_string(6 * 1024 * kMiB));
  EXPECT_EQ(sample::available_memory_bytes(folder.path()), 1) << "none is left, which is not: not known";
  EXPECT_FALSE(memory_to_give(folder.path()));
  fs::remove(folder / "sys/fs/cgroup/job/memory.max");
  EXPECT_EQ(sample::available_memory_bytes(folder.path()), 10 * 1024 * kMiB) << "no limit";
  put("proc/meminfo", "MemAvailable: 400000 kB\n");
  EXPECT_THAT(memory_to_give(folder.path()).error().message, HasSubstr("391 MiB of memory are available"));
  put("proc/meminfo", "garbage");
  EXPECT_EQ(sample::available_memory_bytes(folder.path()), 0);
  EXPECT_FALSE(memory_to_give(folder.path()));
}

// A plan of one fake whose `run` takes a mebibyte a row, and a machine with 10 GiB.
struct Fakes {
  TestFolder folder;
  Plan plan{.recipe = {}, .directory = RunDirectory::create(folder / "run").value()};
  Sensed sensed;
  std::vector<Parity> parities;
  std::vector<int64_t> tried;
  std::map<std::string, std::string> options;

  explicit Fakes(const recipe::LargestBatch& asked, int64_t batch = 64) {
    EXPECT_TRUE(write_file(folder.path() / "root/proc/meminfo", "MemAvailable: 10485760 kB\n"));
    sensed.root = folder / "root";
    plan.recipe.largest_batch = asked;
    plan.recipe.training.batch = batch;
    plan.gate.rows = 10'000;
    testing::add_fake_lane(plan, "a");
    parities = testing::all_pass(plan);
  }
  Status search() {
    const LaneAt lane_at = [this](size_t lane, int64_t batch) {
      tried.push_back(batch);
      Lane at = plan.lanes[lane];
      auto own = options;
      own["hold_mb"] = std::to_string(batch);
      at.entry.worker = fake_spec(own);
      return at;
    };
    return search_largest({.plan = plan, .parities = parities, .trials = {}, .sensed = sensed}, lane_at);
  }
  LargestRow row() {
    return largest_rows(plan.directory.read<LargestTrial>().value(), {"a"}, plan.recipe.largest_batch.most,
                        plan.gate.rows)
        .at(0);
  }
};

TEST(SearchLargest, FindsWhereTheAllocatorFails) {
  Fakes fakes({.wanted = true, .memory_bytes = 400 * kMiB});
  ASSERT_TRUE(fakes.search());
  const LargestRow row = fakes.row();
  ASSERT_TRUE(row.largest) << row.note;
  EXPECT_EQ(row.limit_bytes, 400 * kMiB);
  // The interpreter itself takes some dozens.
  EXPECT_GE(*row.largest, 300);
  EXPECT_LT(*row.largest, 400);
  EXPECT_TRUE(row.stop == Stop::kAllocator || row.stop == Stop::kLimit) << row.note;
  const auto trials = fakes.plan.directory.read<LargestTrial>().value();
  const auto above = std::find_if(trials.begin(), trials.end(), [](const auto& t) { return t.batch == 512; });
  ASSERT_NE(above, trials.end());
  EXPECT_EQ(stop_of(above->failure), Stop::kAllocator) << "more than the limit at once";
  EXPECT_EQ(above->failure->reason, "MemoryError");
#ifndef __SANITIZE_ADDRESS__  // a child's peak begins at that of the process that forked it, which is large there
  EXPECT_NEAR(*row.bytes_per_sample / kMiB, 1, 0.05) << "a mebibyte a row";
#endif
  EXPECT_GT(row.peak_bytes, *row.largest * kMiB);
  EXPECT_LE(row.peak_bytes, row.limit_bytes);
  fakes.tried.clear();
  ASSERT_TRUE(fakes.search());
  EXPECT_THAT(fakes.tried, IsEmpty()) << "all of it was there";
}

TEST(SearchLargest, WhatTheAllocatorDoesNotSeeIsKilledAtTheLimit) {
  LargestRow row;
  // Long enough for the watch, which looks every 20 ms; longer if other work keeps it from looking.
  for (const char* ms : {"100", "1000", "10000"}) {
    Fakes fakes({.wanted = true, .memory_bytes = 300 * kMiB});
    fakes.options = {{"hold_shared", "1"}, {"step_ms", ms}};
    ASSERT_TRUE(fakes.search());
    row = fakes.row();
    if (row.largest && *row.largest < 300) break;
  }
  ASSERT_TRUE(row.largest) << row.note;
  EXPECT_GE(*row.largest, 200);
  EXPECT_LT(*row.largest, 300);
  EXPECT_EQ(row.stop, Stop::kLimit);
  EXPECT_THAT(row.note, HasSubstr("above its limit of 300 MiB"));
}

TEST(SearchLargest, TheMachineHasTheLastWord) {
  Fakes fakes({.wanted = true, .memory_bytes = 64 * 1024 * kMiB, .most = 80});
  ASSERT_TRUE(fakes.search());
  EXPECT_EQ(fakes.row().limit_bytes, 9 * 1024 * kMiB) << "not the recipe's 64 GiB";
  EXPECT_EQ(fakes.row().largest, 80);
  EXPECT_THAT(fakes.row().note, HasSubstr("the recipe tries none above 80"));
}

TEST(SearchLargest, WithoutKnownMemoryNothingIsTried) {
  Fakes fakes({.wanted = true});
  fakes.sensed.root = fakes.folder / "nowhere";
  ASSERT_TRUE(fakes.search());
  EXPECT_EQ(fakes.row().largest, std::nullopt);
  EXPECT_THAT(fakes.row().note, HasSubstr("how much memory is available is not known"));
  EXPECT_THAT(fakes.tried, SizeIs(1)) << "a script, but no process";
}

TEST(SearchLargest, FillsAGpuByItsOwnAllocatorAlone) {
  Fakes fakes({.wanted = true, .most = 80});
  fakes.parities[0].effective["device"] = "cuda:0";
  fakes.options = {{"device", "cuda:0"}, {"allocator_mb", "77"}};
  ASSERT_TRUE(fakes.search());
  EXPECT_EQ(fakes.row().limit_bytes, 0);
  EXPECT_EQ(fakes.row().peak_bytes, 77 * kMiB);
}

TEST(SearchLargest, DoesNothingUnasked) {
  Fakes fakes({});
  ASSERT_TRUE(fakes.search());
  EXPECT_THAT(fakes.tried, IsEmpty());
}

}  // namespace
}  // namespace bakeoff
