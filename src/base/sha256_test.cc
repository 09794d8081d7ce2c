#include "base/sha256.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "base/sha256_file.h"

namespace bakeoff {
namespace {

// FIPS 180-2, appendix B, and the NIST vectors for short and long messages.
TEST(Sha256, StandardVectors) {
  const struct {
    std::string message;
    const char* digest;
  } cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopq"
       "rst"
       "nopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1000000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& [message, digest] : cases) EXPECT_EQ(sha256(message), digest) << message.size();
}

TEST(Sha256, PiecesOfAnySizeGiveTheSameDigest) {
  std::string message;
  for (int i = 0; i < 300; ++i) message.push_back(static_cast<char>(i * 7));
  for (size_t length = 0; length <= message.size(); ++length) {
    const std::string part = message.substr(0, length);
    Sha256 bytewise;
    for (const char& c : part) bytewise.add(std::string_view(&c, 1));
    Sha256 split;
    split.add(std::string_view(part).substr(0, length / 3));
    split.add(std::string_view(part).substr(length / 3));
    const std::string whole = sha256(part);
    ASSERT_EQ(bytewise.hex(), whole) << length;
    ASSERT_EQ(split.hex(), whole) << length;
  }
}

TEST(Sha256, OfAFile) {
  const testing::TestFolder folder;
  const fs::path path = folder / "file";
  const std::string text(3 << 20, 'x');
  ASSERT_TRUE(write_file(path, text));
  EXPECT_EQ(sha256_file(path).value(), sha256(text));
  fs::remove(path);
  const auto missing = sha256_file(path);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find(path.string()), std::string::npos);
}

}  // namespace
}  // namespace bakeoff
