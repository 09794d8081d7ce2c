#include "sample/temperature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"

namespace bakeoff::sample {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TemperatureTest : public ::testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) {
    ASSERT_TRUE(write_file(root_ / "sys/class" / file, text));
  }
  Reading now() const {
    std::vector<Reading> readings(1);
    temperature_sensor(root_).read(readings);
    return readings[0];
  }
  testing::TestFolder root_;
};

TEST_F(TemperatureTest, IsThatOfTheHottestPackage) {
  put("hwmon/hwmon0/name", "nvme\n");
  put("hwmon/hwmon0/temp1_input", "99000\n");
  put("hwmon/hwmon1/name", "coretemp\n");
  put("hwmon/hwmon1/temp1_input", "61000\n");
  put("hwmon/hwmon1/temp2_input", "60000\n");
  put("hwmon/hwmon2/name", "coretemp\n");
  put("hwmon/hwmon2/temp1_input", "64500\n");
  EXPECT_THAT(*find_temperatures(root_), ElementsAre(root_ / "sys/class/hwmon/hwmon1/temp1_input",
                                                     root_ / "sys/class/hwmon/hwmon2/temp1_input"));
  EXPECT_DOUBLE_EQ(*now(), 64.5);
  put("hwmon/hwmon2/temp1_input", "hot\n");
  EXPECT_DOUBLE_EQ(*now(), 61) << "the other one's";
}

TEST_F(TemperatureTest, AThermalZoneOfTheProcessorWillDo) {
  put("hwmon/hwmon0/name", "nvme\n");
  put("thermal/thermal_zone0/type", "acpitz\n");
  put("thermal/thermal_zone0/temp", "20000\n");
  EXPECT_EQ(now().reason(), "/sys/class/hwmon has no sensor of a processor");
  put("thermal/thermal_zone1/type", "x86_pkg_temp\n");
  put("thermal/thermal_zone1/temp", "55000\n");
  EXPECT_DOUBLE_EQ(*now(), 55);
}

TEST_F(TemperatureTest, AbsenceAndGarbageHaveTheirReason) {
  EXPECT_THAT(now().reason(), HasSubstr("there is no /sys/class/hwmon"));
  put("hwmon/hwmon0/name", "k10temp\n");
  EXPECT_THAT(now().reason(), HasSubstr("no sensor of a processor")) << "a chip without an input";
  for (const char* garbage : {"", "warm\n", "61000 m\n", "-273000\n", "999000\n"}) {
    put("hwmon/hwmon0/temp1_input", garbage);
    EXPECT_THAT(now().reason(), HasSubstr("not as expected")) << garbage;
  }
}

}  // namespace
}  // namespace bakeoff::sample
