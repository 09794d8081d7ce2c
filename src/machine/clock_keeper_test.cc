#include "machine/clock_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/testing.h"

namespace bakeoff {
namespace {

using ::testing::StartsWith;

// The stand-in for the driver's library writes down what is asked of its two devices.
class ClockKeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("FAKE_NVML_CLOCKS", (folder_ / "calls").c_str(), 1);
    now("");
  }
  void TearDown() override {
    ::unsetenv("FAKE_NVML_CLOCKS");
    ::unsetenv("FAKE_NVML");
  }
  static void now(const char* numbers) { ::setenv("FAKE_NVML", numbers, 1); }
  std::string written() const {
    const auto text = read_file(folder_ / "calls");
    return text ? *text : "";
  }

  static constexpr const char* kLibrary = BAKEOFF_FAKE_NVML;
  static constexpr const char* kBoth = "0: 1200 to 1200\n1: 1200 to 1200\n";
  static constexpr const char* kBack = "0: reset\n1: reset\n";
  testing::TestFolder folder_;
};

TEST_F(ClockKeeperTest, LocksEveryDeviceAndGivesThemBack) {
  {
    const ClockKeeper keeper(1200, kLibrary);
    EXPECT_EQ(keeper.status(), "1200 MHz");
    EXPECT_EQ(written(), kBoth);
  }
  EXPECT_EQ(written(), std::string(kBoth) + kBack);
}

TEST_F(ClockKeeperTest, GivesThemBackWhenItsOwnerIsKilled) {
  const pid_t owner = ::fork();
  if (owner == 0) {
    const ClockKeeper keeper(1200, kLibrary);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(owner, &status, 0), owner);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(testing::soon([&] { return written() == std::string(kBoth) + kBack; })) << written();
}

TEST_F(ClockKeeperTest, WithoutTheRightNothingIsLockedNorReset) {
  now("may_lock=4");
  EXPECT_EQ(ClockKeeper(1200, kLibrary).status(), "not locked: Insufficient Permissions");
  EXPECT_EQ(written(), "");
}

TEST_F(ClockKeeperTest, ADeviceThatIsLostIsNamedAndTheOtherLocked) {
  now("lost=1");
  EXPECT_EQ(ClockKeeper(900, kLibrary).status(), "900 MHz, but not GPU 1: GPU is lost");
  EXPECT_EQ(written(), "0: 900 to 900\n0: reset\n");
}

TEST_F(ClockKeeperTest, WithoutADriverThereIsAReason) {
  EXPECT_THAT(ClockKeeper(900, "no-such-library.so").status(),
              StartsWith("not locked: no-such-library.so: cannot open shared object"));
}

}  // namespace
}  // namespace bakeoff
