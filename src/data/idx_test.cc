#include "data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kTwoPictures = idx_header({2, 2, 3}) + "abcdefghijkl";

TEST(Idx, ReadsShapeAndData) {
  const auto idx = parse_idx(kTwoPictures, "pictures");
  ASSERT_TRUE(idx) << idx.error().text();
  EXPECT_THAT(idx->shape, ElementsAre(2, 2, 3));
  EXPECT_EQ(idx->data, "abcdefghijkl");
}

TEST(Idx, HeaderIsBigEndian) { EXPECT_EQ(idx_header({60000}), std::string("\0\0\x08\x01\0\0\xea\x60", 8)); }

TEST(Idx, EveryTruncationIsRefusedByName) {
  for (size_t length = 0; length < kTwoPictures.size(); ++length) {
    const auto idx = parse_idx(std::string_view(kTwoPictures).substr(0, length), "some/file");
    ASSERT_FALSE(idx) << length;
    EXPECT_THAT(idx.error().message, HasSubstr("some/file"));
    EXPECT_FALSE(idx.error().remedy.empty());
  }
}

TEST(Idx, CorruptInputSaysWhatIsWrong) {
  auto with = [](size_t at, char byte) {
    std::string bytes = kTwoPictures;
    bytes[at] = byte;
    return bytes;
  };
  const struct {
    std::string bytes;
    const char* message;
  } cases[] = {
      {kTwoPictures + "x", "too long: its header promises 28 bytes, it has 29"},
      {kTwoPictures.substr(0, 20), "truncated: its header promises 28 bytes, it has 20"},
      {std::string("\x1f\x8b\x08\x00\0\0\0\0", 8), "does not start with two zero bytes"},  // gzip
      {with(2, 0x0d), "element type 0x0d"},
      {with(3, 0), "0 axes"},
      {with(3, 9), "9 axes"},
      {with(7, 0), "axis 0 has size 0"},
      {std::string("\0\0\x08\x04", 4) + std::string(16, '\xff'), "overflows"},
  };
  for (const auto& [bytes, message] : cases) {
    const auto idx = parse_idx(bytes, "file");
    ASSERT_FALSE(idx) << message;
    EXPECT_THAT(idx.error().message, HasSubstr(message));
  }
}

}  // namespace
}  // namespace bakeoff
