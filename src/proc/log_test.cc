#include "proc/log.h"

#include <fcntl.h>

#include "base/files.h"
#include "proc/testing.h"

namespace bakeoff::proc {
namespace {

TEST(LogTail, KeepsTheLastBytesWhateverTheChunks) {
  for (const size_t chunk : {1, 3, 7, 64, 1000}) {
    SCOPED_TRACE(chunk);
    LogTail tail = LogTail::create(20).value();
    LogDrain drain(tail.fd(), -1, 0);
    std::string all;
    for (int i = 0; i < 40; ++i) all += "line " + std::to_string(i) + "\n";
    for (size_t at = 0; at < all.size(); at += chunk) drain.add(std::string_view(all).substr(at, chunk));
    EXPECT_EQ(tail.total_bytes(), static_cast<int64_t>(all.size()));
    EXPECT_EQ(tail.text(), "line 38\nline 39\n");
  }
}

TEST(LogTail, ShortLogIsWhole) {
  LogTail tail = LogTail::create(16).value();
  LogDrain drain(tail.fd(), -1, 0);
  EXPECT_EQ(tail.text(), "");
  drain.add("two\nlines");
  EXPECT_EQ(tail.text(), "two\nlines");
}

TEST(LogDrain, FileKeepsHeadAndTailAndTellsWhatItLeftOut) {
  const testing::TestFolder folder;
  const fs::path path = folder / "log";
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  LogTail tail = LogTail::create(10).value();
  LogDrain drain(tail.fd(), file.get(), 30);
  for (char c = 'a'; c <= 'z'; ++c) drain.add(std::string(4, c));
  drain.finish();
  EXPECT_EQ(read_file(path).value(), "aaaabbbbccccddddeeee\n[... 74 bytes left out ...]\nxxyyyyzzzz");
}

TEST(LogDrain, FileBelowTheCapIsWhole) {
  const testing::TestFolder folder;
  for (const size_t size : {15, 20, 21, 25, 30}) {
    SCOPED_TRACE(size);
    const fs::path path = folder / ("log" + std::to_string(size));
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    LogTail tail = LogTail::create(10).value();
    LogDrain drain(tail.fd(), file.get(), 30);
    const std::string all = std::string("abcdefghijklmnopqrstuvwxyz0123456789").substr(0, size);
    drain.add(all.substr(0, 7));
    drain.add(all.substr(7));
    drain.finish();
    EXPECT_EQ(read_file(path).value(), all);
  }
}

TEST(ValidUtf8, ReplacesWhatIsNot) {
  const std::string bad = "\xEF\xBF\xBD";
  const struct {
    std::string in;
    std::string out;
  } cases[] = {
      {"plain", "plain"},
      {"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x8D\xAA", "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x8D\xAA"},
      {"\xC3", bad},
      {"\x80z", bad + "z"},
      {std::string("a\0b", 3), "a" + bad + "b"},
      {"\xC0\xAF", bad + bad},
      {"\xED\xA0\x80", bad + bad + bad},
      {"\xF5\x80\x80\x80", bad + bad + bad + bad},
  };
  for (const auto& c : cases) EXPECT_EQ(valid_utf8(c.in), c.out);
}

}  // namespace
}  // namespace bakeoff::proc
