#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "base/sha256_file.h"
#include "base/testing.h"

namespace bakeoff {
namespace {

class FilesTest : public ::testing::Test {
 protected:
  testing::TestFolder dir_;
};

TEST_F(FilesTest, WriteThenReadGivesTheSameBytes) {
  const std::string text("a\0b\n", 4);
  ASSERT_TRUE(write_file(dir_ / "deep/er/file", text));
  EXPECT_EQ(*read_file(dir_ / "deep/er/file"), text);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ / "deep/er"), {}), 1);
}

TEST_F(FilesTest, AppendKeepsEarlierLines) {
  ASSERT_TRUE(append_line(dir_ / "log", "one"));
  ASSERT_TRUE(append_line(dir_ / "log", "two"));
  EXPECT_EQ(*read_file(dir_ / "log"), "one\ntwo\n");
}

TEST_F(FilesTest, ErrorsNamePathAndReason) {
  const auto missing = read_file(dir_ / "missing");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("missing': No such file"), std::string::npos);
  ASSERT_TRUE(write_file(dir_ / "file", "x"));
  EXPECT_FALSE(make_folder(dir_ / "file"));
  EXPECT_FALSE(write_file(dir_ / "file/below", "x"));
}

// Each would be read for ever, or waited for.
TEST_F(FilesTest, WhatIsNoRegularFileIsNotRead) {
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink(dir_ / "pipe", dir_ / "link");
  for (const fs::path& path : {dir_ / "pipe", dir_ / "link", fs::path("/dev/zero")}) {
    for (const Error& error : {read_file(path).error(), sha256_file(path).error()})
      EXPECT_NE(error.message.find("it is no regular file"), std::string::npos) << error.message;
  }
  EXPECT_NE(read_file(dir_).error().message.find("directory"), std::string::npos);
  fs::create_symlink("/proc/self/status", dir_ / "kernel's");
  EXPECT_TRUE(read_file(dir_ / "kernel's"));
}

TEST_F(FilesTest, AFileThatGrowsHasAnEnd) {
  const fs::path file = dir_ / "grows";
  ASSERT_TRUE(write_file(file, std::string(1 << 20, 'a')));
  std::atomic<bool> read = false;
  std::thread writer([&] {
    const std::string more(1 << 20, 'b');
    while (!read) ASSERT_TRUE(append_line(file, more));
  });
  const auto text = read_file(file);
  read = true;
  writer.join();
  ASSERT_TRUE(text);
  EXPECT_LE(text->size(), fs::file_size(file));
}

TEST_F(FilesTest, AFullDiskKeepsTheOldFileAndSaysSo) {
  const auto full = append_line("/dev/full", "x");
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("No space left"), std::string::npos);
}

TEST_F(FilesTest, TheHomeIsItsOwnersAlone) {
  const auto mode = [](const fs::path& path) { return static_cast<int>(fs::status(path).permissions()); };
  const char* const was = std::getenv("BAKEOFF_HOME");
  const std::string before = was != nullptr ? was : "";
  for (const char* slash : {"", "/"}) {
    const fs::path home = dir_ / (std::string("deep/home") + (*slash != 0 ? "2" : ""));
    ::setenv("BAKEOFF_HOME", (home.string() + slash).c_str(), 1);
    ASSERT_TRUE(write_file(home / "data" / "x", "x"));
    EXPECT_EQ(mode(home), 0700);
    EXPECT_EQ(mode(home / "data" / "x"), 0600);
    EXPECT_NE(mode(home.parent_path()), 0700);
    ASSERT_TRUE(write_file(home.string() + "_beside", "x"));
    EXPECT_NE(mode(home.string() + "_beside"), 0600);
    fs::permissions(home, fs::perms(0755));
    ASSERT_TRUE(make_folder(home / "more"));
    EXPECT_EQ(mode(home), 0755) << "shared on purpose";
  }
  was != nullptr ? ::setenv("BAKEOFF_HOME", before.c_str(), 1) : ::unsetenv("BAKEOFF_HOME");
}

}  // namespace
}  // namespace bakeoff
