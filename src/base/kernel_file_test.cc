#include "base/kernel_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/testing.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

class KernelFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0); }
  testing::TestFolder root_;
};

TEST_F(KernelFileTest, IsReadWhole) {
  const std::string text(10'000, 'a');
  ASSERT_TRUE(write_file(root_ / "file", text + "\nmore\n"));
  EXPECT_EQ(*read_kernel_file(root_ / "file"), text + "\nmore\n");
  EXPECT_EQ(*read_kernel_file_in_time(root_ / "file"), text + "\nmore\n");
  EXPECT_EQ(kernel_line(root_ / "file"), text);
  EXPECT_FALSE(kernel_line("/proc/self/stat").empty()) << "its size is 0";
}

TEST_F(KernelFileTest, WhatIsNotThereHasItsReason) {
  EXPECT_EQ(read_kernel_file(root_ / "none").error().message, "none: No such file or directory");
  EXPECT_EQ(read_kernel_file_in_time(root_ / "none").error().message, "none: No such file or directory");
  EXPECT_EQ(kernel_line(root_ / "none"), "");
}

TEST_F(KernelFileTest, APipeIsRefusedAtOnce) {
  EXPECT_EQ(read_kernel_file(root_ / "pipe").error().message, "pipe: it is not a regular file");
  EXPECT_EQ(kernel_line(root_ / "pipe"), "");
}

TEST_F(KernelFileTest, AFileThatHangsIsGivenUpUntilItAnswers) {
  int asked = 0;
  const auto read = [&](int64_t patience_ns) {
    // Opens the pipe the usual way: until somebody writes.
    return read_kernel_file_in_time(root_ / "pipe", patience_ns,
                                    [&asked](const fs::path& path) -> Result<std::string> {
                                      ++asked;
                                      std::string line;
                                      std::getline(std::ifstream(path), line);
                                      return line;
                                    });
  };
  EXPECT_EQ(read(20 * kMs).error().message, "pipe: it did not answer within 0.02 s");
  EXPECT_THAT(read(3'600'000 * kMs).error().message, HasSubstr("did not answer"))
      << "and not waited for again";
  const int writer = ::open((root_ / "pipe").c_str(), O_WRONLY | O_CLOEXEC);  // lets the thread go
  ASSERT_EQ(::write(writer, "1\n", 2), 2);
  ::close(writer);
  // The next one that asks finds nobody waiting, and the pipe without a writer again.
  const auto now = [&] { return read_kernel_file_in_time(root_ / "pipe").error().message; };
  EXPECT_TRUE(testing::soon([&] { return now().find("not a regular file") != std::string::npos; }));
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace bakeoff
