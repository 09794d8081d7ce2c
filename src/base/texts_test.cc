#include "base/texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_text.h"

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Texts, AreSplit) {
  EXPECT_THAT(split("a,,b", ","), ElementsAre("a", "", "b"));
  EXPECT_THAT(split("a, b,", ", "), ElementsAre("a", "b,"));
  EXPECT_THAT(split("", ","), ElementsAre(""));
  EXPECT_THAT(split("f32\t1024\t5e9", "\t"), ElementsAre("f32", "1024", "5e9"));
  EXPECT_THAT(split_trimmed(" a , b\t,", ","), ElementsAre("a", "b", ""));
}

TEST(Texts, HaveLines) {
  EXPECT_THAT(lines_of("a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(lines_of("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
  EXPECT_THAT(lines_of(""), IsEmpty());
}

TEST(Texts, NamesOfOthersLeadNowhere) {
  EXPECT_EQ(plain_name("../../etc/x y"), ".._.._etc_x_y");
  EXPECT_EQ(plain_name("a-b_c.1"), "a-b_c.1");
  EXPECT_EQ(plain_name(std::string(500, 'x')).size(), 80u);
}

TEST(Texts, AreJoined) {
  EXPECT_EQ(join(std::vector<std::string>{"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(join(std::vector<double>{0.1, 2, 1e300}, " "), "0.1 2 1e+300");
  const std::vector<const char*> words = {"x", "y", "z"};
  EXPECT_EQ(join(words.begin() + 1, words.end(), "/"), "y/z");
}

TEST(Json, TextThatIsNoneIsDiscardedAndBytesThatAreNoTextAreReplaced) {
  EXPECT_TRUE(parse_json<nlohmann::json>("{\"a\": ").is_discarded());
  const auto json = parse_json<nlohmann::ordered_json>("{\"b\": 1, \"a\": [true, null]}");
  EXPECT_EQ(dump(json), "{\"b\":1,\"a\":[true,null]}");
  EXPECT_EQ(dump(nlohmann::json("\xff"), 2), "\"\xef\xbf\xbd\"");
}

TEST(Texts, NumbersAreGrouped) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(60'000), "60,000");
  EXPECT_EQ(grouped(-1'234'567), "-1,234,567");
}

TEST(Texts, AreLowered) { EXPECT_EQ(lowered("Out Of MEMORY 1\xc3\x84"), "out of memory 1\xc3\x84"); }

}  // namespace
}  // namespace bakeoff
