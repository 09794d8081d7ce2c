#include "base/file_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;

class FileLockTest : public ::testing::Test {
 protected:
  const testing::TestFolder folder_;
  const fs::path path_ = folder_ / "deeper" / "lock";
};

TEST_F(FileLockTest, SecondHolderIsRefusedAndToldWhoHoldsIt) {
  {
    const auto first = FileLock::attempt(path_);
    ASSERT_TRUE(first) << first.error().text();
    const auto second = FileLock::attempt(path_);
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(::getpid())));
    EXPECT_THAT(second.error().message, HasSubstr(path_.string()));
  }
  EXPECT_TRUE(FileLock::attempt(path_));
}

TEST_F(FileLockTest, AKilledHolderFreesIt) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = FileLock::wait(path_);
    const char ok = held ? 'y' : 'n';
    if (::write(ready[1], &ok, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char ok = 0;
  ASSERT_EQ(::read(ready[0], &ok, 1), 1);
  EXPECT_EQ(ok, 'y');
  EXPECT_FALSE(FileLock::attempt(path_));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(FileLock::wait(path_));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(FileLockTest, AFolderThatCannotBeMadeIsAnError) {
  ASSERT_TRUE(write_file(folder_ / "file", "x"));
  const auto lock = FileLock::attempt(folder_ / "file" / "lock");
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message, HasSubstr("file"));
}

}  // namespace
}  // namespace bakeoff
