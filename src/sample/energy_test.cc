#include "sample/energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing.h"

namespace bakeoff::sample {
namespace {

using ::testing::HasSubstr;

class EnergyTest : public ::testing::Test {
 protected:
  void zone(const std::string& id, const std::string& name, const std::string& uj,
            const std::string& range = "1000000\n") {
    const fs::path folder = root_ / "sys/class/powercap" / id;
    ASSERT_TRUE(write_file(folder / "name", name + "\n"));
    if (!uj.empty()) {
      ASSERT_TRUE(write_file(folder / "energy_uj", uj));
    }
    if (!range.empty()) {
      ASSERT_TRUE(write_file(folder / "max_energy_range_uj", range));
    }
  }
  // A snapshot that is taken `ns` after the start.
  EnergySnapshot at(int64_t ns) const {
    EnergySnapshot snapshot = sample_energy(root_);
    snapshot.ns = ns;
    return snapshot;
  }
  testing::TestFolder root_;
};

TEST_F(EnergyTest, IsThatOfPackagesAndTheirMemoryEachCountedOnce) {
  zone("intel-rapl:0", "package-0", "100000\n");
  zone("intel-rapl:0:0", "core", "50000\n");
  zone("intel-rapl:0:1", "dram", "10000\n");
  zone("intel-rapl:1", "package-1", "0\n");
  zone("intel-rapl:2", "psys", "7\n");
  zone("intel-rapl-mmio:0", "package-0", "100000\n");
  const EnergySnapshot before = at(0);
  EXPECT_EQ(before.zones.size(), 3u);
  zone("intel-rapl:0", "package-0", "600000\n");
  zone("intel-rapl:0:0", "core", "400000\n");
  zone("intel-rapl:0:1", "dram", "30000\n");
  zone("intel-rapl:2", "psys", "900000\n");
  zone("intel-rapl-mmio:0", "package-0", "600000\n");
  const Reading joules = energy_between(before, at(kSecond));
  ASSERT_TRUE(joules) << joules.reason();
  EXPECT_DOUBLE_EQ(*joules, 0.52);
}

TEST_F(EnergyTest, ACounterMayWrapOnce) {
  zone("intel-rapl:0", "package-0", "900000\n");
  const EnergySnapshot before = at(0);
  zone("intel-rapl:0", "package-0", "100000\n");
  EXPECT_DOUBLE_EQ(*energy_between(before, at(kSecond)), 0.2);
  zone("intel-rapl:0", "package-0", "900000\n", "");
  fs::remove(root_ / "sys/class/powercap/intel-rapl:0/max_energy_range_uj");
  const EnergySnapshot unknown = at(0);
  zone("intel-rapl:0", "package-0", "100000\n", "");
  EXPECT_THAT(energy_between(unknown, at(kSecond)).reason(), HasSubstr("intel-rapl:0 went backwards"));
}

TEST_F(EnergyTest, ACounterThatWasSetBackDidNotWrap) {
  zone("intel-rapl:0", "package-0", "200000000000\n", "262143328850\n");
  const EnergySnapshot before = at(0);
  zone("intel-rapl:0", "package-0", "1000000\n", "262143328850\n");
  EXPECT_EQ(energy_between(before, at(kSecond)).reason(), "the energy counter intel-rapl:0 jumped")
      << "62 kJ in a second";
  EXPECT_NEAR(*energy_between(before, at(20 * kSecond)), 62144, 1) << "3.1 kW";
  zone("intel-rapl:0", "package-0", "262143000000\n", "262143328850\n");
  const EnergySnapshot late = at(0);
  zone("intel-rapl:0", "package-0", "1000000\n", "262143328850\n");
  EXPECT_NEAR(*energy_between(late, at(1000)), 1.33, 0.01)
      << "renewed within a moment: a millisecond's worth";
}

TEST_F(EnergyTest, APipeInACountersPlaceIsNotWaitedFor) {
  zone("intel-rapl:0", "package-0", "");
  ASSERT_EQ(::mkfifo((root_ / "sys/class/powercap/intel-rapl:0/energy_uj").c_str(), 0600), 0);
  EXPECT_EQ(sample_energy(root_).absent,
            "the energy counter cannot be read: energy_uj: it is not a regular file");
  fs::remove(root_ / "sys/class/powercap/intel-rapl:0/name");
  ASSERT_EQ(::mkfifo((root_ / "sys/class/powercap/intel-rapl:0/name").c_str(), 0600), 0);
  EXPECT_THAT(sample_energy(root_).absent, HasSubstr("has no energy counter"));
}

TEST_F(EnergyTest, WhatMeasuresNothingIsAbsentWithItsReason) {
  EXPECT_EQ(energy_between(at(0), at(kSecond)).reason(), "there is no /sys/class/powercap");
  ASSERT_TRUE(write_file(root_ / "sys/class/powercap/dtpm/name", "x\n"));
  EXPECT_THAT(energy_between(at(0), at(kSecond)).reason(), HasSubstr("no energy counter"));
  zone("intel-rapl:0", "package-0", "");
  EXPECT_THAT(energy_between(at(0), at(kSecond)).reason(), HasSubstr("cannot be read"));
  for (const char* garbage : {"", "many\n", "-5\n", "1e9\n", "99999999999999999999999\n"}) {
    ASSERT_TRUE(write_file(root_ / "sys/class/powercap/intel-rapl:0/energy_uj", garbage));
    EXPECT_THAT(sample_energy(root_).absent, HasSubstr("energy_uj is not as expected")) << garbage;
  }
  zone("intel-rapl:0", "package-0", "5\n");
  const EnergySnapshot still = at(0);
  EXPECT_EQ(energy_between(still, at(kSecond)).reason(), "the energy counters stand still");
  EXPECT_EQ(*energy_between(still, at(1000)), 0) << "too short a time to have moved";
  zone("intel-rapl:1", "package-1", "5\n");
  EXPECT_EQ(energy_between(still, at(kSecond)).reason(), "an energy counter appeared");
  EXPECT_EQ(energy_between(at(0), still).reason(), "the energy counter intel-rapl:1 went away");
}

}  // namespace
}  // namespace bakeoff::sample
