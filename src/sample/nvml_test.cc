#include "sample/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace bakeoff::sample {
namespace {

using ::testing::HasSubstr;

class NvmlTest : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("FAKE_NVML"); }
  static void now(const char* numbers) { ::setenv("FAKE_NVML", numbers, 1); }
  static constexpr const char* kNew = BAKEOFF_FAKE_NVML;
  static constexpr const char* kOld = BAKEOFF_FAKE_OLD_NVML;
};

TEST_F(NvmlTest, TellsEveryDeviceInOurUnits) {
  now("busy=75 memory=8589934592 power=312500 energy=5000250 sm=1410 mem=1215 temperature=61 throttle=37 "
      "processes=2");
  const auto nvml = Nvml::load(kNew);
  ASSERT_TRUE(nvml) << nvml.error().text();
  const auto gpus = nvml->take();
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].name, "Fake 100");
  EXPECT_EQ(gpus[1].name, "Fake 200");
  EXPECT_DOUBLE_EQ(*gpus[0].busy, 0.75);
  EXPECT_DOUBLE_EQ(*gpus[0].memory_bytes, 8589934592.0);
  EXPECT_DOUBLE_EQ(*gpus[0].memory_total_bytes, 17179869184.0);
  EXPECT_DOUBLE_EQ(*gpus[0].power_w, 312.5);
  EXPECT_DOUBLE_EQ(*gpus[0].energy_j, 5000.25);
  EXPECT_DOUBLE_EQ(*gpus[0].sm_clock_hz, 1.41e9);
  EXPECT_DOUBLE_EQ(*gpus[0].memory_clock_hz, 1.215e9);
  EXPECT_DOUBLE_EQ(*gpus[0].temperature_c, 61);
  EXPECT_DOUBLE_EQ(*gpus[0].processes, 2);
  EXPECT_EQ(*gpus[0].throttled, 1);
  EXPECT_EQ(gpus[0].why_throttled, "power cap, heat") << "idling slows nothing down";
  now("throttle=1 processes=900");
  EXPECT_EQ(*nvml->take()[0].throttled, 0);
  EXPECT_EQ(*nvml->take()[0].processes, 900) << "more than there is room for";
}

TEST_F(NvmlTest, ADeviceThatDisappearsHasItsReasonAndTheOtherItsNumbers) {
  now("power=1000");
  const auto nvml = Nvml::load(kNew);
  ASSERT_TRUE(nvml);
  EXPECT_EQ(*nvml->take()[1].power_w, 1);
  now("power=1000 lost=1");
  const auto gpus = nvml->take();
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(*gpus[0].power_w, 1);
  for (const Reading& r :
       {gpus[1].power_w, gpus[1].energy_j, gpus[1].busy, gpus[1].throttled, gpus[1].processes})
    EXPECT_EQ(r.reason(), "GPU is lost");
}

TEST_F(NvmlTest, AnOlderDriverLacksWhatItLacks) {
  now("power=1000");
  const auto nvml = Nvml::load(kOld);
  ASSERT_TRUE(nvml) << nvml.error().text();
  const auto gpus = nvml->take();
  EXPECT_EQ(*gpus[0].power_w, 1);
  EXPECT_EQ(gpus[0].processes.reason(), "the driver is too old to report its processes");
}

TEST_F(NvmlTest, WithoutTheLibraryOrTheDriverThereIsAReason) {
  EXPECT_THAT(Nvml::load("libnvidia-ml-that-is-not-there.so").error().message,
              HasSubstr("cannot open shared object"));
  EXPECT_THAT(Nvml::load("libm.so.6").error().message, HasSubstr("no management library of NVIDIA"));
  now("init=9");
  EXPECT_EQ(Nvml::load(kNew).error().message, "Driver Not Loaded");
}

}  // namespace
}  // namespace bakeoff::sample
