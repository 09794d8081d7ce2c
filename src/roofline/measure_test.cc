#include "roofline/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>

#include "base/testing.h"

namespace bakeoff::roofline {
namespace {

using ::testing::HasSubstr;

std::vector<int> cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> all;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) all.push_back(cpu);
  }
  return all;
}

std::string why(const Limits& limits, const std::string& what) {
  for (const Absent& absent : limits.absent) {
    if (absent.what == what) return absent.reason;
  }
  return "";
}

TEST(Stopwatch, CountsTheWorkOfAllThreads) {
  std::atomic<int64_t> prepared = 0;
  const Stopwatch watch{.windows = 3, .window_s = 0.002};
  const auto work = [](size_t, int64_t times) {
    for (int64_t i = 0; i < times; ++i) on_cpu(-1, [] {});  // anything that takes time
  };
  EXPECT_GT(watch.best(cpus(), 1, work, [&](size_t) { ++prepared; }), 0);
  EXPECT_EQ(prepared, static_cast<int64_t>(cpus().size()));
}

TEST(Stopwatch, StopsAndRefusesACpuThatIsNotThere) {
  const auto work = [](size_t, int64_t) { now_s(); };
  EXPECT_EQ(
      (Stopwatch{.windows = 1000000, .window_s = 1e-4, .stop = [] { return true; }}.best(cpus(), 1, work)),
      0);
  EXPECT_EQ((Stopwatch{.windows = 1, .window_s = 1e-4}.best({cpus()[0], 1000}, 1, work)), 0);
  EXPECT_EQ(Stopwatch{}.best({}, 1, work), 0);
}

TEST(MeasurePeaks, WidthsUnitsAndClockAreConsistent) {
  // No processor retires more than its width allows. While other work runs, the clock may look slower than it is.
  Limits limits;
  ASSERT_TRUE(testing::soon([&] {
    measure_peaks({.cpus = cpus(), .effort = 0.05}, limits = {});
    return std::ranges::all_of(limits.peaks, [](const Peak& peak) { return peak.of_width() < 1.5; });
  }));
  const Peak* f32 = limits.peak("f32");
  ASSERT_NE(f32, nullptr);
  EXPECT_GT(f32->ops.one, 1e8);
  EXPECT_GT(limits.scalar_hz.one, 1e8);
  EXPECT_GT(limits.vector_hz.all, 0);
  for (const Peak& peak : limits.peaks) {
    SCOPED_TRACE(peak.isa + " " + peak.dtype);
    EXPECT_GT(peak.clock_hz, 0);
  }
}

TEST(MeasureBounds, AreNoLowerThanWhatTheSameLoopsReach) {
  // Other work may slow the first measurement and not the second: then both are made again.
  EXPECT_TRUE(testing::soon([] {
    const Limits bounds = measure_bounds({.cpus = cpus()});
    Limits seen;
    measure_peaks({.cpus = cpus(), .effort = 0.2}, seen);
    const Rate above = bounds.peak("f32")->ops, reached = seen.peak("f32")->ops;
    // 5% are what check_flops() allows.
    return above.all >= above.one && reached.one <= 1.05 * above.one && reached.all <= 1.05 * above.all;
  }));
}

TEST(MeasureBounds, AreNoneWhereTheMeasurementWasStopped) {
  // Each stop comes later, until one comes too late.
  for (int asked = 0, at = 1;; asked = 0, at *= 4) {
    const Limits bounds =
        measure_bounds({.cpus = cpus(), .effort = 0.05, .stop = [&] { return ++asked > at; }});
    if (asked <= at) {
      EXPECT_FALSE(bounds.peaks.empty());
      break;
    }
    EXPECT_TRUE(bounds.peaks.empty()) << at;
  }
}

TEST(MeasureLevels, AbsenceHasItsReason) {
  Limits limits;
  measure_levels({.cpus = cpus(), .root = "/nonexistent", .memory_bytes = 1 << 20, .effort = 0.05}, limits);
  EXPECT_TRUE(limits.levels.empty());
  EXPECT_THAT(why(limits, "cache bandwidth"), HasSubstr("sizes of the caches"));
  EXPECT_THAT(why(limits, "DRAM bandwidth"), HasSubstr("only 1 MiB"));
}

TEST(MeasureLevels, CachesAreThereWhereTheSystemTellsOfThem) {
  Limits limits;
  measure_levels({.cpus = {cpus()[0]}, .memory_bytes = 1 << 20, .effort = 0.05}, limits);
  for (const Level& level : limits.levels) {
    EXPECT_GT(level.read.one, 1e8) << level.name;
    EXPECT_EQ(level.read.all, level.read.one) << "one CPU is all CPUs";
  }
  EXPECT_NE(limits.level("L1"), nullptr);
}

TEST(MeasureLink, IsARateOrSaysWhyThereIsNone) {
  Limits alone;
  measure_link({.cpus = {0}}, alone);
  EXPECT_EQ(alone.link, 0);
  ASSERT_EQ(alone.absent.size(), 1u);
  EXPECT_EQ(alone.absent[0].reason, "there is one CPU only");
  if (cpus().size() < 2) GTEST_SKIP() << "one CPU";
  Limits both;
  measure_link({.cpus = cpus()}, both);
  EXPECT_TRUE(both.link > 1e7 && both.link < 1e12) << both.link << " bytes per second";
  Limits stopped;
  measure_link({.cpus = cpus(), .stop = [] { return true; }}, stopped);
  EXPECT_EQ(stopped.link, 0);
}

TEST(MeasureCosts, PageFaultAndProcessStart) {
  Limits limits;
  measure_costs({}, limits);
  EXPECT_GT(limits.page_fault_s, 1e-9);
  EXPECT_GT(limits.process_start_s, 1e-5);
}

TEST(MeasureGemms, LibrariesThatAreNoneAreReasons) {
  Limits limits;
  measure_gemms({.cpus = cpus(), .gemms = {{"Missing", "/nonexistent/libblas.so"}, {"libc", "libc.so.6"}}},
                limits);
  EXPECT_TRUE(limits.gemms.empty());
  EXPECT_THAT(why(limits, "Missing matrix product"), HasSubstr("No such file"));
  EXPECT_THAT(why(limits, "libc matrix product"), HasSubstr("no matrix product"));
}

TEST(MeasureGpus, AbsenceHasItsReason) {
  Limits none, no_driver;
  measure_gpus({.cuda = "/nonexistent/libcuda.so.1"}, none);
  EXPECT_TRUE(none.gpus.empty());
  EXPECT_THAT(why(none, "GPU"), HasSubstr("No such file"));
  measure_gpus({.cuda = "libc.so.6"}, no_driver);
  EXPECT_THAT(why(no_driver, "GPU"), HasSubstr("lacks cuInit"));
}

TEST(Measure, AStopEndsItBeforeItsParts) {
  const Limits limits = measure({.stop = [] { return true; }});
  EXPECT_TRUE(limits.peaks.empty());
  EXPECT_TRUE(limits.levels.empty());
}

}  // namespace
}  // namespace bakeoff::roofline
