#include "sample/sensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/clock.h"
#include "base/files.h"
#include "base/testing.h"

namespace bakeoff::sample {
namespace {

using ::testing::HasSubstr;
using testing::SetClock;

class SensorFileTest : public ::testing::Test {
 protected:
  // Another file under the same name.
  void replace(const std::string& text) { ASSERT_TRUE(write_file(root_ / "file", text)); }

  testing::TestFolder root_;
  SetClock clock_;
};

TEST_F(SensorFileTest, TheSameFileIsReadAnewAtEveryLook) {
  replace("1\n");
  SensorFile file(root_ / "file", clock_);
  EXPECT_EQ(file.read().value(), "1");
  std::ofstream(root_ / "file") << "22\nmore\n";
  EXPECT_EQ(file.read().value(), "22");
}

TEST_F(SensorFileTest, AnotherFileInItsPlaceIsSeenWithinASecond) {
  replace("1\n");
  SensorFile file(root_ / "file", clock_);
  EXPECT_EQ(file.read().value(), "1");
  replace("2\n");
  clock_.ns += kSecond - 1;
  EXPECT_EQ(file.read().value(), "1") << "it is kept open";
  ++clock_.ns;
  EXPECT_EQ(file.read().value(), "2");
  replace("3\n");
  clock_.ns += kSecond;
  EXPECT_EQ(file.read().value(), "3") << "again and again";
}

TEST_F(SensorFileTest, AFileThatGoesAndComesBack) {
  replace("1\n");
  SensorFile file(root_ / "file", clock_);
  EXPECT_EQ(file.read().value(), "1");
  fs::remove(root_ / "file");
  clock_.ns += kSecond;
  EXPECT_THAT(file.read().error().message, HasSubstr("file cannot be read: No such file"));
  replace("2\n");
  EXPECT_EQ(file.read().value(), "2") << "without another second";
}

TEST_F(SensorFileTest, APipeThatTakesItsPlaceIsNotWaitedFor) {
  replace("1\n");
  SensorFile file(root_ / "file", clock_);
  EXPECT_EQ(file.read().value(), "1");
  fs::remove(root_ / "file");
  ASSERT_EQ(::mkfifo((root_ / "file").c_str(), 0600), 0);
  clock_.ns += kSecond;
  EXPECT_THAT(file.read().error().message, HasSubstr("cannot be read"));
}

TEST_F(SensorFileTest, AProcessThatEndsIsNoticedAtOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) ::pause();
  }
  ASSERT_GT(child, 0);
  SensorFile file(fs::path("/proc") / std::to_string(child) / "statm", clock_);
  EXPECT_TRUE(file.read());
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_THAT(file.read().error().message, HasSubstr("statm cannot be read: No such process"));
  EXPECT_THAT(file.read().error().message, HasSubstr("statm cannot be read: No such file"));
}

}  // namespace
}  // namespace bakeoff::sample
