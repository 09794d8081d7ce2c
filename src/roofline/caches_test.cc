#include "roofline/caches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing.h"

namespace bakeoff::roofline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Root {
 public:
  void add(int index, const std::string& type, const std::string& level, const std::string& size,
           const std::string& shared) const {
    const fs::path folder = path_ / ("sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index));
    ASSERT_TRUE(write_file(folder / "type", type + "\n"));
    ASSERT_TRUE(write_file(folder / "level", level + "\n"));
    ASSERT_TRUE(write_file(folder / "size", size + "\n"));
    ASSERT_TRUE(write_file(folder / "shared_cpu_list", shared + "\n"));
  }
  const fs::path& path() const { return path_.path(); }

 private:
  testing::TestFolder path_;
};

TEST(ReadCaches, DataAndUnifiedAscending) {
  const Root root;
  root.add(3, "Unified", "3", "32M", "0-7,16-17");
  root.add(0, "Data", "1", "32K", "0");
  root.add(1, "Instruction", "1", "64K", "0");
  root.add(2, "Unified", "2", "512K", "0,16");
  const auto caches = read_caches(root.path(), 0);
  ASSERT_EQ(caches.size(), 3u);
  EXPECT_EQ(caches[0], (Cache{"L1", 32768, {0}}));
  EXPECT_EQ(caches[1], (Cache{"L2", 524288, {0, 16}}));
  EXPECT_EQ(caches[2].bytes, 32 << 20);
  EXPECT_THAT(caches[2].shared, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 16, 17));
}

TEST(ReadCaches, NonsenseIsLeftOut) {
  const Root root;
  root.add(0, "Data", "1", "many", "0");
  root.add(1, "Unified", "two", "512K", "0");
  root.add(2, "Unified", "3", "-4K", "0");
  EXPECT_THAT(read_caches(root.path(), 0), IsEmpty());
  EXPECT_THAT(read_caches(root.path() / "missing", 0), IsEmpty());
}

TEST(ReadCaches, WaitsForNoPipe) {
  const Root root;
  root.add(0, "Data", "1", "32K", "0");
  const std::filesystem::path size = root.path() / "sys/devices/system/cpu/cpu0/cache/index1/size";
  root.add(1, "Unified", "2", "512K", "0");
  std::filesystem::remove(size);
  ASSERT_EQ(::mkfifo(size.c_str(), 0600), 0);
  EXPECT_THAT(read_caches(root.path(), 0), ElementsAre(Cache{"L1", 32768, {0}}));
}

TEST(ParseCpuList, ListsAndRanges) {
  EXPECT_THAT(parse_cpu_list("0-2,5"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(parse_cpu_list("7\n"), ElementsAre(7));
  for (const char* bad : {"", "a", "3-1", "1,,2", "1-", "-1", "0-99999999", "1 2"})
    EXPECT_THAT(parse_cpu_list(bad), IsEmpty()) << bad;
}

TEST(ParseSize, Units) {
  EXPECT_EQ(parse_size("32K"), 32 << 10);
  EXPECT_EQ(parse_size("1G"), 1 << 30);
  EXPECT_EQ(parse_size("100"), 100);
  for (const char* bad : {"", "K", "-1K", "1KB", "1.5M", "99999999999999999999G"})
    EXPECT_EQ(parse_size(bad), 0) << bad;
}

}  // namespace
}  // namespace bakeoff::roofline
