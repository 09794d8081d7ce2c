#include "race/sensing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/files.h"
#include "plan/fake_lanes_testing.h"
#include "race/race.h"
#include "race/usage_marks.h"
#include "sample/clock_probe.h"

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using testing::fake_spec;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TestFolder;

sample::Series series(std::initializer_list<double> values, int64_t apart_ns = 100'000'000) {
  sample::Series all;
  int64_t ns = 0;
  for (const double value : values) all.add(value, ns += apart_ns);
  return all;
}

TEST(UsedOf, TakesTheMeanTheHighestOrTheGrowth) {
  sample::Series gone = series({1});
  gone.add(sample::Reading::absent("GPU is lost"), 900'000'000);
  Texts absent;
  const auto used = used_of({{"rss_bytes", series({5, 9, 7})},
                             {"run_queue", series({1, 3})},
                             {"gpu_energy_j", series({100, 130, 160})},
                             {"gpu_power_w", gone},
                             {"temperature_c", {}}},
                            0.5, absent);
  EXPECT_DOUBLE_EQ(used.at("rss_bytes"), 9);
  EXPECT_DOUBLE_EQ(used.at("run_queue"), 2);
  EXPECT_DOUBLE_EQ(used.at("gpu_energy_j"), 150) << "60 J in 0.2 s, of a burst of 0.5 s";
  EXPECT_DOUBLE_EQ(used.at("gpu_power_w"), 1);
  EXPECT_FALSE(used.contains("temperature_c")) << "there was no look at it";
  EXPECT_EQ(absent, (Texts{{"gpu_power_w", "GPU is lost"}}));
  absent.clear();
  EXPECT_TRUE(used_of({{"gpu_energy_j", series({100})}}, 0.5, absent).empty());
  EXPECT_THAT(absent.at("gpu_energy_j"), HasSubstr("too short"));
  EXPECT_TRUE(used_of({{"gpu_energy_j", series({100, 5})}}, 0.5, absent).empty());
  EXPECT_THAT(absent.at("gpu_energy_j"), HasSubstr("went backwards"));
}

// This process as a worker.
TEST(Sensing, SeesABurstOfThisProcess) {
  Sensing sensing({.sample_ms = 10});
  const WorkerSensors sensors = sensing.attach(::getpid());
  Trial trial;
  const UsageMark before = sensing.begin(sensors);
  const int64_t begin = monotonic_clock().now_ns();
  while (seconds_since(begin) < 0.1) sample::dependent_chain(1000);
  const auto used = sensing.end(sensors, before, trial);
  EXPECT_GE(used.at("wall_s"), 0.1);
  EXPECT_GT(used.at("rss_bytes"), 1e6);
  EXPECT_TRUE(used.contains("run_queue") || trial.not_sampled.contains("run_queue"));
  for (const char* name : sample::kPerfNames)
    EXPECT_TRUE(used.contains(name) || !trial.not_sampled.at(name).empty()) << name;
  EXPECT_THAT(trial.sensors_lost, IsEmpty());
}

TEST(Sensing, WithoutSamplingThereAreTheCountersAlone) {
  Sensing sensing({.sample_ms = 0});
  const WorkerSensors sensors = sensing.attach(::getpid());
  Trial trial;
  const auto used = sensing.end(sensors, sensing.begin(sensors), trial);
  EXPECT_TRUE(used.contains("cpu_s"));
  EXPECT_TRUE(used.contains("rss_bytes")) << "as it is afterwards";
  EXPECT_FALSE(used.contains("run_queue"));
  EXPECT_FALSE(trial.not_sampled.contains("run_queue"));
}

TEST(Sensing, AMachineWithoutAnySensorHasItsReasons) {
  const TestFolder nothing;
  Sensing sensing({.root = nothing.path(), .sample_ms = 10});
  const WorkerSensors sensors = sensing.attach(::getpid());
  Trial trial;
  std::map<std::string, double> used;
  ASSERT_TRUE(testing::soon([&] {  // its thread looks when it gets a processor
    const UsageMark before = sensing.begin(sensors);
    ::usleep(10'000);
    used = sensing.end(sensors, before, trial);
    const Texts& why = trial.not_sampled;
    return std::ranges::all_of(std::array{"rss_bytes", "run_queue", "temperature_c"}, [&](const char* name) {
      return why.contains(name) && why.at(name) != "not read";  // as long as it has not looked at all
    });
  }));
  EXPECT_TRUE(used.contains("cpu_s")) << "the kernel itself is asked";
  EXPECT_THAT(trial.not_sampled.at("rss_bytes"), HasSubstr("statm cannot be read"));
  EXPECT_THAT(trial.not_sampled.at("run_queue"), HasSubstr("loadavg cannot be read"));
  EXPECT_THAT(trial.not_sampled.at("temperature_c"), HasSubstr("no /sys/class/hwmon"));
  EXPECT_THAT(trial.not_sampled.at("energy_j"), HasSubstr("no /sys/class/powercap"));
}

// Heats of fakes that say that they compute on a GPU, with a driver's library whose numbers the tests write.
class GpuHeatTest : public ::testing::Test {
 protected:
  // Set once and left alone: a thread that hangs in the library may read it at any time.
  static void SetUpTestSuite() {
    ::setenv("FAKE_NVML", ("@" + numbers().string()).c_str(), 1);
    ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  }
  static fs::path numbers() {
    static const TestFolder folder;
    return folder / "numbers";
  }
  static void now(const std::string& text) { EXPECT_TRUE(write_file(numbers(), text)); }

  // A heat in whose first burst the GPU was looked at: a machine that halts looks like a driver that hangs.
  Trial heat(const std::function<void(int)>& at_burst, const std::string& device = "cuda:0",
             const std::map<std::string, std::string>& more = {}) {
    const std::string numbers_before = read_file(numbers()).value();
    Trial trial;
    EXPECT_TRUE(testing::soon([&] {
      now(numbers_before);
      fs::remove_all(folder_ / "run");
      trial = heat_once(at_burst, device, more);
      return device == "cpu" || (!trial.bursts.empty() && trial.bursts[0].used.contains("gpu_power_w"));
    }));
    return trial;
  }

  // `at_burst` is called before each burst with its number, from 1.
  Trial heat_once(const std::function<void(int)>& at_burst, const std::string& device = "cuda:0",
                  const std::map<std::string, std::string>& more = {}) {
    Plan plan{.recipe = {}, .directory = RunDirectory::create(folder_ / "run").value()};
    plan.recipe.race.warmup_steps = 2;
    plan.recipe.race.bursts = 2;
    plan.recipe.race.burst_seconds = 0.25;  // the GPU is looked at ten times a second
    plan.recipe.race.sample_ms = 10;
    testing::add_fake_lane(plan, "a", {{"step_ms", "20"}, {"device", device}, {"allocator_mb", "96"}});
    plan.lanes[0].entry.worker.options.insert(more.begin(), more.end());
    int burst = 0;
    const Watch watch = [&](const Happening& here) {
      if (here.detail.starts_with("timing")) at_burst(++burst);
    };
    const Sensed sensed{.gpu_library = BAKEOFF_FAKE_NVML};
    return run_heat(plan, {.number = 1, .members = {0}}, sensed, watch, {}).trials.front();
  }
  TestFolder folder_;
};

constexpr const char* kSound =
    "busy=90 power=250000 memory=4294967296 sm=1410 temperature=61 throttle=0 processes=1";

TEST_F(GpuHeatTest, HasTheGpusNumbersAndTheAllocatorsPeak) {
  now(kSound);
  const Trial trial = heat([](int) {});
  ASSERT_FALSE(trial.failure) << trial.failure->reason;
  ASSERT_EQ(trial.bursts.size(), 2u);
  const GpuUse gpu = gpu_use_of({&trial});
  EXPECT_DOUBLE_EQ(gpu.power_w.value(), 250);
  EXPECT_DOUBLE_EQ(gpu.memory_bytes.value(), 4294967296.0);
  EXPECT_DOUBLE_EQ(gpu.sm_clock_hz.value(), 1.41e9);
  EXPECT_DOUBLE_EQ(gpu.throttled.value(), 0);
  EXPECT_FALSE(gpu.joules) << "this one has no energy counter";
  EXPECT_EQ(trial.not_sampled.at("gpu_energy_j"), "energy: Not Supported");
  const MemoryUse memory = memory_of({&trial}, 32);
  EXPECT_DOUBLE_EQ(memory.allocator_peak.value(), 96 << 20);
  EXPECT_DOUBLE_EQ(memory.per_sample.value(), 3 << 20);
  EXPECT_THAT(remarks_on({&trial}), IsEmpty());
}

TEST_F(GpuHeatTest, AGpuThatIsHeldBackIsStated) {
  now(std::string("power=250000 processes=2 throttle=") + std::to_string(0x4 | 0x20));
  const Trial trial = heat([](int) {});
  EXPECT_THAT(remarks_on({&trial}),
              ElementsAre("its GPU's clocks were reduced for 100% of the time (heat 100%, power cap 100%)",
                          "2 processes computed on its GPU"));
}

TEST_F(GpuHeatTest, AGpuThatDisappearsInMidRunIsStatedAndTheTimesStay) {
  now(kSound);
  const Trial trial = heat([&](int burst) {
    if (burst == 2) now(std::string(kSound) + " lost=0");
  });
  ASSERT_FALSE(trial.failure) << trial.failure->reason;
  ASSERT_EQ(trial.bursts.size(), 2u);
  EXPECT_TRUE(trial.bursts[0].used.contains("gpu_power_w"));
  EXPECT_FALSE(trial.bursts[1].used.contains("gpu_power_w"));
  EXPECT_THAT(remarks_on({&trial}), ElementsAre("lost during the run: GPU (GPU is lost)"));
}

TEST_F(GpuHeatTest, ADriverThatHangsInMidRunCostsTheGpusNumbersOnly) {
  now(kSound);
  const Trial trial = heat_once([&](int burst) {
    if (burst == 1) now("hang=1");
  });
  now(kSound);  // lets the thread go
  ASSERT_FALSE(trial.failure) << trial.failure->reason;
  ASSERT_EQ(trial.bursts.size(), 2u);
  EXPECT_THAT(trial.not_sampled.at("gpu_power_w"), HasSubstr("did not answer within 0.5 s"));
  EXPECT_TRUE(trial.bursts[1].used.contains("rss_bytes")) << "the sampler goes on";
}

TEST_F(GpuHeatTest, IsAskedForACopyToItsDeviceAfterItsBursts) {
  now(kSound);
  const Trial trial = heat([](int) {}, "cuda:0", {{"transfer_us", "800"}});
  ASSERT_FALSE(trial.failure) << trial.failure->reason;
  EXPECT_EQ(trial.transfer, (Transfer{"batch", 800'000, 4096}));
}

TEST_F(GpuHeatTest, ACopyThatCannotBeTimedCostsItsNumberOnly) {
  now(kSound);
  for (const char* told : {"broken", "0"}) {
    const Trial trial = heat([](int) {}, "cuda:0", {{"transfer_us", told}});
    EXPECT_FALSE(trial.failure);
    EXPECT_EQ(trial.bursts.size(), 2u);
    EXPECT_FALSE(trial.transfer);
  }
}

TEST_F(GpuHeatTest, WhoeverComputesOnTheCpuIsNotAskedAboutGpus) {
  now(kSound);
  const Trial trial = heat([](int) {}, "cpu", {{"transfer_us", "800"}});
  EXPECT_FALSE(trial.transfer);
  EXPECT_FALSE(trial.bursts[0].used.contains("gpu_power_w"));
  EXPECT_EQ(gpu_use_of({&trial}), GpuUse{});
  EXPECT_FALSE(trial.memory.contains("on_gpu"));
}

}  // namespace
}  // namespace bakeoff
