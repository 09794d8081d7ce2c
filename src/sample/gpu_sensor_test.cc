#include "sample/gpu_sensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/testing.h"

namespace bakeoff::sample {
namespace {

using ::testing::HasSubstr;

TEST(GpuOf, IsTheOneThatKnowsTheProcessElseTheOnlyOneElseTheFirstVisible) {
  std::vector<GpuSnapshot> gpus(3);
  gpus[2].pids = {5, 7};
  EXPECT_EQ(gpu_of(gpus, 7, "1").value(), 2u);
  EXPECT_EQ(gpu_of(gpus, 8, "1").value(), 1u);
  EXPECT_EQ(gpu_of(gpus, 8, "1,2").value(), 1u);
  for (const char* visible : {"", "GPU-8932f937", "7", "1x"})
    EXPECT_THAT(gpu_of(gpus, 8, visible).error().message, HasSubstr("which of 3 GPUs")) << visible;
  gpus.resize(1);
  EXPECT_EQ(gpu_of(gpus, 8, "").value(), 0u);
  EXPECT_THAT(gpu_of({}, 8, "").error().message, HasSubstr("no GPU"));
}

class GpuSensorTest : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("FAKE_NVML", ("@" + (folder_ / "now").string()).c_str(), 1); }
  void TearDown() override { ::unsetenv("FAKE_NVML"); }
  void now(const std::string& numbers) { ASSERT_TRUE(write_file(folder_ / "now", numbers)); }
  static Reading of(const Sensor& sensor, const std::string& name) {
    std::vector<Reading> readings(sensor.names.size());
    sensor.read(readings);
    const auto at = std::find(sensor.names.begin(), sensor.names.end(), name);
    return at == sensor.names.end() ? Reading::absent("no such name")
                                    : readings[static_cast<size_t>(at - sensor.names.begin())];
  }
  testing::TestFolder folder_;
};

TEST_F(GpuSensorTest, TellsOfTheGpuThatTheProcessComputesOn) {
  now("power=300000 throttle=36 processes=2 pid=41");
  const auto library = std::make_shared<GpuLibrary>(BAKEOFF_FAKE_NVML);
  const Sensor sensor = gpu_sensor(library, 42);
  EXPECT_DOUBLE_EQ(*of(sensor, "gpu_power_w"), 300);
  EXPECT_EQ(*of(sensor, "gpu_throttled"), 1);
  EXPECT_EQ(*of(sensor, "gpu_throttled: heat"), 1);
  EXPECT_EQ(*of(sensor, "gpu_throttled: power cap"), 1);
  EXPECT_EQ(*of(sensor, "gpu_throttled: sync boost"), 0);
  EXPECT_EQ(of(sensor, "gpu_energy_j").reason(), "energy: Not Supported");
  now("power=300000 lost=0");
  EXPECT_EQ(of(sensor, "gpu_power_w").reason(), "GPU is lost");
  EXPECT_EQ(of(sensor, "gpu_throttled: heat").reason(), "GPU is lost");
}

TEST_F(GpuSensorTest, SaysWhyThereIsNone) {
  now("power=1000");
  const auto none = std::make_shared<GpuLibrary>("libnvidia-ml-that-is-not-there.so");
  EXPECT_THAT(of(gpu_sensor(none, 42), "gpu_busy").reason(), HasSubstr("cannot open shared object"));
  const auto two = std::make_shared<GpuLibrary>(BAKEOFF_FAKE_NVML);
  EXPECT_THAT(of(gpu_sensor(two, 42), "gpu_power_w").reason(), HasSubstr("which of 2 GPUs"));
  EXPECT_DOUBLE_EQ(*of(gpu_sensor(two, 42, "1"), "gpu_power_w"), 1);
}

TEST_F(GpuSensorTest, WhileOneIsHeldInTheDriverTheOthersGoOnAtOnce) {
  now("init_hang=1 power=1000");
  ::setenv("FAKE_NVML_CLOCKS", (folder_ / "calls").c_str(), 1);
  const auto library = std::make_shared<GpuLibrary>(BAKEOFF_FAKE_NVML);
  const Sensor first = gpu_sensor(library, 42, "0"), second = gpu_sensor(library, 43, "1");
  Reading held;
  std::thread thread([&] { held = of(first, "gpu_power_w"); });
  EXPECT_TRUE(testing::soon([&] { return fs::exists(folder_ / "calls"); })) << "it is in the driver";
  EXPECT_EQ(of(second, "gpu_power_w").reason(), "the driver does not answer");
  now("power=1000");
  thread.join();
  ::unsetenv("FAKE_NVML_CLOCKS");
  EXPECT_DOUBLE_EQ(*held, 1);
  EXPECT_DOUBLE_EQ(*of(second, "gpu_power_w"), 1) << "once it answers";
}

TEST_F(GpuSensorTest, ADriverThatHangsCostsTheGpuAndNothingElse) {
  now("hang=1 power=1000");
  auto library = std::make_shared<GpuLibrary>(BAKEOFF_FAKE_NVML);
  const std::weak_ptr<GpuLibrary> held = library;
  {
    Sampler sampler({.period_ns = 1'000'000, .patience_ns = 300'000'000});
    const std::vector<size_t> both = {sampler.add(gpu_sensor(std::move(library), 42, "0")),
                                      sampler.add(rss_sensor(::getpid()))};
    std::map<std::string, Series> seen;
    const auto look_until = [&](const auto& enough) {
      for (int i = 0; i < 2000; ++i) {
        sampler.begin(both);
        ::usleep(1000);
        seen = sampler.end();
        if (enough()) return true;
      }
      return false;
    };
    EXPECT_TRUE(look_until(
        [&] { return seen.at("gpu_power_w").absent.find("did not answer") != std::string::npos; }));
    EXPECT_TRUE(look_until([&] { return seen.at("rss_bytes").count > 0; }));
    now("power=1000");
  }
  EXPECT_TRUE(testing::soon([&] { return held.expired(); }))
      << "the thread that was left behind lets go when the driver answers";
}

}  // namespace
}  // namespace bakeoff::sample
