// The report's check of itself: it passes what the renderers write, and names whatever digit is changed afterwards.

#include "report/self_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <functional>

#include "base/testing.h"
#include "report/figures.h"
#include "report/read_back.h"
#include "report/sample_summary_testing.h"

namespace bakeoff::report {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

Summary against_a_baseline() {
  Summary s = sample_summary(6);
  s.baseline = s.ranked[2].contender.id;
  return s;
}

Summary refused() {
  Summary s = sample_summary(6);
  s.refusal = "this host was busy throughout";
  s.outlooks.clear();
  for (Row& row : s.ranked) row.verdict = RowVerdict::kRefused;
  return s;
}

Summary not_timed() {
  Summary s = sample_summary(6);
  Row& row = s.ranked.back();
  row.at_least = 10;
  row.ratio = {10, 10, std::numeric_limits<double>::infinity()};
  row.ms_per_step = {756, 756, std::numeric_limits<double>::infinity()};
  return s;
}

// Two precisions, and every sensor that a machine may have.
Summary everything() {
  Summary s = sample_summary(6);
  s.outlooks.clear();
  s.scenario = ir::Scenario::kPredict;
  s.cost = {.raced_s = 201.4, .uniform_s = 388.2, .heats = 9};
  s.notes.push_back(
      "Racing took 3 min 21 s; timing every contender in all 9 heats would have taken 6 min 28 s.");
  double more = 1;
  for (Row& row : s.ranked) {
    more += 0.137;
    row.usage.joules = 2.34 * more;
    row.usage.major_faults = 0.25 * more;
    row.usage.instructions = 12.3e9 * more;
    row.usage.per_cycle = 1.234 * more;
    row.epoch.samples_per_joule = 104.7 * more;
    row.epoch.grams_co2 = 0.123 * more;
    row.transfer = Transfer{.of = "batch", .ns = 1'234'567, .bytes = 802'816};
    row.gpu.on_gpu = true;
    row.gpu.busy = 0.873;
    row.gpu.power_w = 123.4 * more;
    row.gpu.sm_clock_hz = 1.4e9;
    row.limit = Limit{"memory", "its ops move bytes at 97% of the bandwidth"};
  }
  for (size_t i = 5; i < s.ranked.size(); ++i) {
    Row& row = s.ranked[i];
    row.group = "bfloat16";
    row.loss_distance = 0.00123;
    row.gradient_distance = 0.0456;
    row.ratio = i == 5 ? Estimate{1, 1, 1} : Estimate{1.2 * static_cast<double>(i), 7, 8.5};
  }
  return s;
}

TEST(SelfCheck, EveryFormatOfTheSamplesAgrees) {
  for (const Summary& s : {sample_summary(), single_summary(), empty_summary(), against_a_baseline(),
                           refused(), not_timed(), everything()}) {
    const SelfCheck check = self_check(s, render_formats(s));
    EXPECT_THAT(check.findings, IsEmpty());
    EXPECT_GT(check.figures, s.ranked.size() * 20);
  }
}

// What reports once said, in every format alike: only the JSON's own numbers tell that it is wrong.
TEST(SelfCheck, ASecondValueOfOneQuantityIsNamed) {
  Summary s = everything();
  s.notes = {"Racing took 2.9 minutes.", "The worker had 705 MiB at most."};
  s.sentence = "jax[jit=true] takes 1.890 times as long.";
  EXPECT_THAT(
      self_check(s, render_formats(s)).findings,
      IsSupersetOf({"JSON: \"2.9 minutes\" in \"Racing took 2.9 minutes\" is no figure of this run",
                    "JSON: \"705 MiB\" in \"The worker had 705 MiB at most\" is no figure of this run",
                    "JSON: \"1.890 times\" in \"jax[jit=true] takes 1.890 times as long\" is no figure "
                    "of this run"}));
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Places of the digits between `begin` and `end` that are figures: not of a contender's name or a mark.
std::vector<size_t> digits_of(const std::string& text, size_t begin, size_t end) {
  std::vector<size_t> places;
  for (size_t at = begin; at < std::min(end, text.size()); ++at) {
    const char before = at > 0 ? text[at - 1] : ' ';
    if (is_digit(text[at]) && before != '=' && std::isalpha(static_cast<unsigned char>(before)) == 0)
      places.push_back(at);
  }
  return places;
}

void append(std::vector<size_t>& to, const std::vector<size_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Of the rows between a table's rule and the blank line or the note that ends it.
std::vector<size_t> digits_in_terminal_tables(const std::string& text) {
  std::vector<size_t> places;
  for (size_t rule = 0; (rule = text.find("\n─", rule)) != std::string::npos;) {
    const size_t begin = text.find('\n', rule + 1);
    rule = std::min(text.find("\n\n", begin), text.find("\n  · ", begin));
    append(places, digits_of(text, begin, rule));
  }
  return places;
}

std::vector<size_t> digits_in_markdown_tables(const std::string& text) {
  std::vector<size_t> places;
  bool head = true;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (text.compare(at, 2, "| ") != 0) head = text.compare(at, 4, "|---") != 0;
    if (text.compare(at, 2, "| ") == 0 && !head) append(places, digits_of(text, at, end));
    at = end + 1;
  }
  return places;
}

// Of the cells that hold numbers; a tag's own text is none.
std::vector<size_t> digits_in_html_tables(const std::string& text) {
  std::vector<size_t> places;
  const std::string cell = "<td class=\"num\" data-label=";
  for (size_t at = 0; (at = text.find(cell, at)) != std::string::npos;) {
    const size_t end = text.find("</td>", at);
    while (at < end) {
      const size_t begin = text.find('>', at) + 1;
      at = text.find('<', begin);
      append(places, digits_of(text, begin, at));
      if (text.compare(at, 5, "</td>") == 0) break;
    }
  }
  return places;
}

// Changes one digit at a time, about `most` of them spread over the places; returns what stands around those that are
// not found.
std::vector<std::string> unseen(const Summary& s, std::string& text, const Formats& formats,
                                const std::vector<size_t>& places, size_t most) {
  std::vector<std::string> out;
  const size_t step = std::max<size_t>(1, places.size() / most);
  EXPECT_GT(places.size(), 10U);
  for (size_t i = 0; i < places.size(); i += step) {
    char& digit = text[places[i]];
    const char was = digit;
    digit = was == '9' ? '1' : static_cast<char>(was + 1);
    if (self_check(s, formats).findings.empty())
      out.push_back(text.substr(places[i] - std::min<size_t>(places[i], 40), 60));
    digit = was;
  }
  return out;
}

size_t tries() { return bakeoff::testing::full_tier() ? 60 : 4; }

TEST(SelfCheck, AChangedDigitInATableIsFoundInEveryFormat) {
  const Summary s = sample_summary(6);
  Formats formats = render_formats(s);
  for (auto& [width, text] : formats.terminals) {
    SCOPED_TRACE(width);
    EXPECT_THAT(unseen(s, text, formats, digits_in_terminal_tables(text), tries() / 2), IsEmpty());
  }
  EXPECT_THAT(unseen(s, formats.markdown, formats, digits_in_markdown_tables(formats.markdown), tries()),
              IsEmpty());
  EXPECT_THAT(unseen(s, formats.html, formats, digits_in_html_tables(formats.html), tries()), IsEmpty());
  const size_t records = formats.csv.find("\r\n");
  EXPECT_THAT(unseen(s, formats.csv, formats, digits_of(formats.csv, records, formats.csv.size()), tries()),
              IsEmpty());
  const size_t ranked = formats.json.find("\"ms_per_step\"");
  const auto numbers = digits_of(formats.json, ranked, formats.json.find("\"remarks\""));
  EXPECT_THAT(unseen(s, formats.json, formats, numbers, tries()), IsEmpty());
}

TEST(SelfCheck, AFindingNamesPlaceAndBothFigures) {
  const Summary s = sample_summary(6);
  Formats formats = render_formats(s);
  const size_t cell = formats.markdown.find("625 MiB |");
  ASSERT_NE(cell, std::string::npos);
  formats.markdown[cell] = '7';
  EXPECT_THAT(self_check(s, formats).findings,
              ElementsAre("Markdown: the ranking, PyTorch · channels_last, peak memory: \"725 MiB\" and not "
                          "\"625 MiB\""));
}

// The last digit of every figure with a unit in the lines of a format.
std::vector<size_t> digits_in_lines(const std::string& text, const ReadBack& back) {
  std::vector<size_t> places;
  for (const std::string& line : back.lines) {
    const size_t begin = text.find(line);
    if (begin == std::string::npos) continue;  // its markup stands between
    for (const Figure& figure : figures_in(line)) {
      if (figure.unit == Unit::kNone) continue;
      const size_t at = text.find(figure.text, begin);
      places.push_back(text.find_last_of("0123456789", at + figure.text.size() - 1));
    }
  }
  return places;
}

// Terminal and Markdown hold nearly all sentences of each other, so that a change is found by comparison. A page writes
// names of contenders otherwise, and its headings of lists stand apart: of what it alone says only that is found which
// is no number of the JSON, and a share of two digits usually is one by chance. Of all 105 figures here 101 are found;
// the others are shares: two of the error rate and two deviations.
TEST(SelfCheck, AChangedFigureInASentenceIsFound) {
  const Summary s = sample_summary(6);
  Formats formats = render_formats(s);
  const auto few = [&](std::string& text, const ReadBack& back) {
    const size_t tried = bakeoff::testing::full_tier() ? 1000 : 12;
    return unseen(s, text, formats, digits_in_lines(text, back), tried).size() <= 2;
  };
  std::string& terminal = formats.terminals.back().second;
  EXPECT_TRUE(few(terminal, read_terminal(terminal)));
  EXPECT_TRUE(few(formats.markdown, read_markdown(formats.markdown)));
  EXPECT_TRUE(few(formats.html, read_html(formats.html)));
}

TEST(Figures, AreReadWithTheirUnits) {
  const auto all =
      figures_in("conv2 of 2026-11-21: 9 heats, 4 min 12 s, 1.15 times (3.1 to 16 minutes), 0.98 GiB");
  ASSERT_EQ(all.size(), 7U);
  EXPECT_EQ(all[1].text, "9 heats");
  EXPECT_EQ(all[2].value, 252);
  EXPECT_EQ(all[2].step, 1);
  EXPECT_EQ(all[3].unit, Unit::kFactor);
  EXPECT_DOUBLE_EQ(all[4].value, 186) << "a range has one unit";
  EXPECT_TRUE(all[4].rough);
  EXPECT_EQ(all[6].unit, Unit::kBytes);
}

TEST(Figures, AreNumbersOfTheJsonWithinTheirRounding) {
  const Numbers numbers(
      table::Json{{"ms_per_step", {{"value", 75.5631}}}, {"share", 0.12}, {"pss_bytes", 1048576}});
  for (const char* held : {"75.6 ms", "0.0756 s", "12%", "88%", "1.00 MiB"})
    EXPECT_TRUE(numbers.hold(figures_in(held).at(0))) << held;
  for (const char* other : {"75.5 ms", "75.6 s", "13%", "1.01 MiB", "12.0 ms"})
    EXPECT_FALSE(numbers.hold(figures_in(other).at(0))) << other;
}

TEST(ReadBack, TakesTablesAndLinesApart) {
  const auto text =
      read_terminal("One\n\nname    a b  c\n────────────────\nlong[   1.5  x y\n x=1]\n  · note\n");
  ASSERT_EQ(text.tables.size(), 1U);
  EXPECT_THAT(text.tables[0].heads, ElementsAre("name", "a b", "c"));
  EXPECT_THAT(text.tables[0].rows[0], ElementsAre("long[x=1]", "1.5", "x y"));
  const auto markdown = read_markdown("**A** \\*\n\n| `a\\|b` | c |\n|---|---:|\n| `x` | 1 [2, 3] |\n");
  EXPECT_THAT(markdown.lines, Contains("A *"));
  EXPECT_THAT(markdown.tables.at(0).heads, ElementsAre("a|b", "c"));
  const auto page = read_html(
      "<style>9</style><p>a &lt; b</p><table><thead><tr><th>h</th></tr></thead><tbody><tr><td><b>1</b><span>[2, "
      "3]</span></td></tr></tbody></table><td>loose</td>");
  EXPECT_THAT(page.lines, Contains("a < b"));
  EXPECT_THAT(page.tables.at(0).rows.at(0), ElementsAre("1 [2, 3]"));
  const auto cut = read_html("<table><tr><th>h</th><th>i</th></tr><tbody><tr><td>1</td>");
  EXPECT_THAT(cut.tables.at(0).rows.at(0), ElementsAre("1", "")) << "a page that ends within a table";
}

}  // namespace
}  // namespace bakeoff::report
