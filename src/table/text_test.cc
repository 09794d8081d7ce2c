#include "table/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace bakeoff::table {
namespace {

using ::testing::ElementsAre;

TEST(Clean, KeepsGoodTextAndReplacesBadBytes) {
  struct Case {
    const char* name;
    std::string in, out;
  };
  const Case cases[] = {
      {"plain", "a b\tc\nd", "a b\tc\nd"},
      {"UTF-8", "Grüße 模型 🙂", "Grüße 模型 🙂"},
      {"lone continuation byte", "a\x80z", "a\xEF\xBF\xBDz"},
      {"cut short", "a\xE6\xA8", "a\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"overlong slash", "\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"surrogate", "\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"colour", "\x1b[1;31mred\x1b[0m", "red"},
      {"terminal title", "\x1b]0;evil\ax\x1b]8;;u\x1b\\y", "xy"},
      {"unfinished escape", "x\x1b[31", "x"},
      {"controls", std::string("a\0b\bc\x7f", 6), "abc"},
      {"text reordering", "a\u202Eb\u2066c", "abc"},
      {"Windows line ends", "a\r\nb\r\n", "a\nb\n"},
      {"progress bar", "x\n 10%\r 90%\r100%\ny", "x\n100%\ny"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(clean(c.in), c.out);
  }
}

TEST(Clean, IsIdempotentOnAnyBytes) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    const std::string once = clean(bytes);
    RC_ASSERT(clean(once) == once);
  }));
}

TEST(Clean, AnEscapeThatDoesNotEndHidesNoOtherLine) {
  EXPECT_EQ(clean("a\x1b]0;title\nb"), "a\nb");
  EXPECT_EQ(clean("a\x1b[38;5\nb"), "a\nb");
  EXPECT_EQ(clean("a\x1b\nb"), "a\nb");
  EXPECT_EQ(clean("a\x1b]0;title\x1b\nb"), "a\nb");
}

TEST(ForScreen, LetsTheReportsOwnColoursThroughAndNothingElse) {
  const std::string own = "\x1b[1mbold\x1b[0m \x1b[31mred\x1b[0m\n";
  EXPECT_EQ(for_screen(own, true), own);
  EXPECT_EQ(for_screen(own, false), "bold red\n");
  for (const char* hostile : {"\x1b[8m", "\x1b[2J", "\x1b]0;title\a", "\x1b]8;;http://x\x1b\\", "\x1b[31;8m",
                              "\u009b", "\u202e", "\u2066", "\b", "\r", "\x07", "\x1b"}) {
    for (const bool colour : {false, true})
      EXPECT_EQ(for_screen(std::string("a") + hostile + "\nb", colour),
                std::string_view(hostile) == "\r" ? "a\r\nb" : "a\nb");
    EXPECT_FALSE(for_screen(std::string("safe") + hostile + "x", true).find("safe") != 0)
        << "what stands before is hidden";
  }
  EXPECT_EQ(for_screen("a,b\r\nc\r", false), "a,b\r\nc") << "lines of CSV end as they do";
}

TEST(ForScreen, LetsNothingThroughThatATerminalObeys) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    const std::string shown = for_screen(bytes, false);
    RC_ASSERT(shown.find('\x1b') == std::string::npos);
    RC_ASSERT(for_screen(shown, false) == shown);
  }));
}

TEST(CsvRow, QuotesAndDisarms) {
  EXPECT_EQ(csv_row({"a", "b,c", "say \"x\"", ""}), "a,\"b,c\",\"say \"\"x\"\"\",\r\n");
  EXPECT_EQ(csv_row({"=1+1", "+b", "@x", "-cmd|' /C calc'!A0", "\t=1"}),
            "'=1+1,'+b,'@x,'-cmd|' /C calc'!A0,'\t=1\r\n");
  EXPECT_EQ(csv_row({"-0.5", "+1e-3", "-inf", "-"}), "-0.5,+1e-3,-inf,'-\r\n");
  EXPECT_EQ(csv_row({""}), "\r\n");
}

TEST(OneLine, MakesEveryRunOfSpaceOne) { EXPECT_EQ(one_line("  a \n\t b\r\nc  "), "a b c"); }

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("Grüße"), 5);
  EXPECT_EQ(display_width("模型"), 4);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("🙂"), 2);
  EXPECT_EQ(display_width("│ ✓ –"), 5);
}

TEST(Fit, CutsWholeCharactersAndMarksTheCut) {
  EXPECT_EQ(fit("abcdef", 6), "abcdef");
  EXPECT_EQ(fit("abcdef", 4), "abc…");
  EXPECT_EQ(fit("模型模型", 6), "模型…");
  EXPECT_EQ(fit("模型", 2), "…");
  EXPECT_EQ(fit("ab", 1), "…");
  EXPECT_EQ(fit("ab", 0), "");
}

TEST(Pad, FillsToColumns) {
  EXPECT_EQ(pad_right("ü", 3), "ü  ");
  EXPECT_EQ(pad_left("模", 3), " 模");
  EXPECT_EQ(pad_left("long", 2), "long");
}

TEST(Wrap, BreaksAtSpacesThenWithinLongWords) {
  EXPECT_THAT(wrap("one two three", 8), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap("a\n\nb", 8), ElementsAre("a", "", "b"));
  EXPECT_THAT(wrap("torch[compile=none,amp=off]", 20), ElementsAre("torch[compile=none,", "amp=off]"));
  EXPECT_THAT(wrap("abcdefgh", 3), ElementsAre("abc", "def", "gh"));
  EXPECT_THAT(wrap("", 8), ElementsAre(""));
}

TEST(Wrap, NeverExceedsTheWidthAndLosesNothing) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    const std::string text = one_line(bytes);
    const int width = *rc::gen::inRange(2, 40);
    std::string joined;
    for (const std::string& line : wrap(text, width)) {
      RC_ASSERT(display_width(line) <= width);
      joined += line;
    }
    const auto solid = [](std::string s) {
      std::erase(s, ' ');
      return s;
    };
    RC_ASSERT(solid(joined) == solid(text));
    RC_ASSERT(display_width(fit(text, width)) <= width);
  }));
}

TEST(Paragraph, HangsUnderItsFirstPrefix) {
  EXPECT_EQ(paragraph("one two three", 10, "✗ ", "  "), "✗ one two\n  three");
}

TEST(LastLines, SkipsBlankLines) {
  EXPECT_THAT(last_lines("a\nb\n\n  \nc\n", 2), ElementsAre("b", "c"));
  EXPECT_THAT(last_lines("a", 5), ElementsAre("a"));
  EXPECT_TRUE(last_lines("\n \n", 3).empty());
}

}  // namespace
}  // namespace bakeoff::table
