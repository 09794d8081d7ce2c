#include "base/temporary_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>

#include "base/testing.h"

namespace bakeoff {
namespace {

namespace fs = std::filesystem;

// A process that has a folder, until it is killed.
struct Other {
  explicit Other(const fs::path& parent, const std::string& prefix) {
    std::array<int, 2> ends = {};
    EXPECT_EQ(::pipe(ends.data()), 0);
    process = ::fork();
    if (process == 0) {
      const auto made = TemporaryFolder::in(parent, prefix);
      const std::string name = made ? made->path().string() : "";
      if (::write(ends[1], name.data(), name.size()) > 0) ::pause();
      ::_exit(1);
    }
    ::close(ends[1]);
    std::array<char, 4096> text = {};
    const ssize_t n = ::read(ends[0], text.data(), text.size());
    path = std::string(text.data(), n > 0 ? static_cast<size_t>(n) : 0);
    ::close(ends[0]);
  }
  void kill() {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }
  pid_t process = -1;
  fs::path path;
};

TEST(TemporaryFolders, OfKilledProcessesAreRemovedByTheNext) {
  const testing::TestFolder parent;
  Other one(parent.path(), "kind_");
  ASSERT_TRUE(fs::exists(one.path));
  fs::create_directories(one.path / "a/b");
  fs::create_directories(parent / "kind_of_the_user's");
  const auto mine = TemporaryFolder::in(parent.path(), "kind_");
  EXPECT_TRUE(fs::exists(one.path)) << "it lives";
  one.kill();
  ASSERT_TRUE(TemporaryFolder::in(parent.path(), "other_"));
  EXPECT_TRUE(fs::exists(one.path)) << "of another kind";
  ASSERT_TRUE(TemporaryFolder::in(parent.path(), "kind_"));
  EXPECT_FALSE(fs::exists(one.path));
  EXPECT_TRUE(fs::exists(mine->path()));
  EXPECT_TRUE(fs::exists(parent / "kind_of_the_user's"));
}

TEST(TemporaryFolders, AForkedProcessRemovesNothing) {
  const testing::TestFolder parent;
  auto mine = std::make_unique<TemporaryFolder>(TemporaryFolder::in(parent.path(), "kind_").value());
  const fs::path path = mine->path();
  const pid_t child = ::fork();
  if (child == 0) {
    mine.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(path));
  mine.reset();
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace bakeoff
