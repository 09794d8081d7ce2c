#include "summary/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "summary/row_checks.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

Row row(const std::string& id, const std::string& devices, const std::string& parallel = "data",
        const std::string& compile = "off") {
  Row row{.contender = {.id = id, .framework = "torch"}};
  row.contender.settings = {{"devices", devices}, {"parallel", parallel}, {"compile", compile}};
  row.ms_per_step = {20, 19, 21};
  row.samples_per_second = 3200;
  return row;
}

// Four devices take `share` of the time of one.
Summary race(double share) {
  Summary s{.batch = 64};
  s.ranked = {row("four", "4"), row("one", "1"), row("other", "2", "data", "default")};
  s.pairs = {{.a = "four", .b = "one", .heats = 8, .ratio = {share, 0.9 * share, 1.1 * share}}};
  s.manifest.contenders = {s.ranked[0].contender, s.ranked[1].contender};
  return s;
}

TEST(OnDevices, AreHeldAgainstTheSameOnOne) {
  const auto found = against_one_device(race(0.4));
  ASSERT_THAT(found, SizeIs(1)) << "the other one has no counterpart";
  EXPECT_EQ(found[0].devices, 4);
  EXPECT_NEAR(found[0].speed.value, 2.5, 1e-9);
  EXPECT_NEAR(found[0].speed.low, 1 / 0.44, 1e-9);
  EXPECT_NEAR(found[0].efficiency.value, 0.625, 1e-9);
  EXPECT_NEAR(found[0].efficiency.high, 1 / 0.36 / 4, 1e-9);
  Summary s = race(0.4);
  s.ranked[0].contender.settings["parallel"] = "fsdp";
  EXPECT_THAT(against_one_device(s), SizeIs(1)) << "one device has nothing to share";
  for (const char* setting : {"compile", "new"}) {
    s = race(0.4);
    s.ranked[0].contender.settings[setting] = "default";
    EXPECT_THAT(against_one_device(s), SizeIs(0)) << setting;
  }
  s = race(0.4);
  s.ranked[0].contender.stated = {{"allocator", "jemalloc"}};
  EXPECT_THAT(against_one_device(s), SizeIs(0)) << "controls differ, too";
  s = race(0.4);
  s.pairs.clear();
  EXPECT_FALSE(against_one_device(s)[0].ratio);
  EXPECT_THAT(against_one_device(s)[0].note, HasSubstr("no heat"));
}

TEST(OnDevices, ASectionSaysThatTheBatchIsFixed) {
  const auto section = devices_section(race(0.4));
  ASSERT_TRUE(section);
  EXPECT_THAT(section->legend, HasSubstr("64 rows of all devices together (strong scaling)"));
  ASSERT_THAT(section->sentences, SizeIs(1));
  EXPECT_THAT(section->sentences[0],
              HasSubstr("2.50x as fast as on one device [2.27, 2.78]: an efficiency of 0.62"));
  EXPECT_NEAR(section->json["rows"][0]["efficiency"]["value"].get<double>(), 0.625, 1e-9);
  Summary s = race(0.4);
  s.ranked.erase(s.ranked.begin() + 1);
  EXPECT_FALSE(devices_section(s));
}

TEST(OnDevices, NoneIsMoreTimesAsFastThanItHasDevices) {
  for (const double share : {0.4, 0.26, 0.25, 0.24, 0.22})
    EXPECT_TRUE(check_devices(race(share)).empty()) << share;
  Summary liar = race(0.2);  // 5 times, 4.5 to 5.6
  const auto broken = check_devices(liar);
  ASSERT_EQ(broken.count("four"), 1u);
  EXPECT_EQ(broken.at("four").text(), "N ranks <= N x one rank: 4.545 times one against 4 times one");
  take_out_broken(liar, 0);
  EXPECT_THAT(liar.ranked, SizeIs(2));
  ASSERT_THAT(liar.unranked, SizeIs(1));
  EXPECT_THAT(liar.unranked[0].failure->reason, HasSubstr("N ranks <= N x one rank"));
}

}  // namespace
}  // namespace bakeoff
