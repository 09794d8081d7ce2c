#include "table/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <set>

namespace bakeoff::table {
namespace {

struct Char {
  char32_t code = 0xFFFD;
  size_t bytes = 1;
  bool valid = false;
};

Char decode(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char head = byte(0);
  if (head < 0x80) return {head, 1, true};
  const size_t size = head >= 0xF0 ? 4 : head >= 0xE0 ? 3 : 2;
  if (head < 0xC2 || head > 0xF4 || at + size > text.size()) return {};
  char32_t code = head & (0x7F >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = (code << 6) | (byte(i) & 0x3F);
  }
  static constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[size] || code > 0x10FFFF || surrogate) return {};
  return {code, size, true};
}

struct Range {
  char32_t first, last;
};

template <size_t N>
bool in(const std::array<Range, N>& ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& r) { return code >= r.first && code <= r.last; });
}

constexpr std::array<Range, 8> kZero = {{{0x0300, 0x036F},
                                         {0x0483, 0x0489},
                                         {0x0591, 0x05BD},
                                         {0x1AB0, 0x1AFF},
                                         {0x1DC0, 0x1DFF},
                                         {0x200B, 0x200F},
                                         {0x20D0, 0x20FF},
                                         {0xFE00, 0xFE0F}}};
constexpr std::array<Range, 12> kWide = {{{0x1100, 0x115F},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0x4DBF},
                                          {0x4E00, 0xA4CF},
                                          {0xA960, 0xA97F},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0xFFE0, 0xFFE6},
                                          {0x1F300, 0x1FAFF},
                                          {0x20000, 0x3FFFD}}};
// C1 controls and characters that change the direction of text.
constexpr std::array<Range, 5> kHidden = {
    {{0x7F, 0x9F}, {0x200E, 0x200F}, {0x202A, 0x202E}, {0x2066, 0x2069}, {0xFEFF, 0xFEFF}}};

int columns(char32_t code) { return in(kZero, code) ? 0 : in(kWide, code) ? 2 : 1; }

// The end of the escape sequence that starts at `at`: CSI, OSC (ended by BEL or ESC \), or two characters. None goes on
// in the next line: one that does not end hides the rest of its own.
size_t after_escape(std::string_view text, size_t at) {
  size_t i = at + 1;
  const auto ends_line = [&] { return i >= text.size() || text[i] == '\n'; };
  if (ends_line()) return i;
  const char kind = text[i++];
  if (kind == '[') {
    while (!ends_line() && (text[i] < '@' || text[i] > '~')) ++i;
  } else if (kind == ']') {
    while (!ends_line() && text[i] != '\a' && text[i] != '\x1b') ++i;
    if (!ends_line() && text[i] == '\x1b') ++i;
  } else {
    return i;
  }
  return ends_line() ? i : i + 1;
}

void carriage_return(std::string& out) {
  out.resize(out.rfind('\n') == std::string::npos ? 0 : out.rfind('\n') + 1);
}

// Escape sequences of layout.cc's paint().
const std::set<std::string_view> kInks = {"\x1b[0m",  "\x1b[1m",  "\x1b[2m",
                                          "\x1b[31m", "\x1b[32m", "\x1b[33m"};

// The text without what a terminal would obey: escape sequences but for those that are `kept`, and what is neither
// shown nor a tab or newline. `on_return`: what a "\r" does, told the character after it ('\0' at the end).
template <typename Kept, typename OnReturn>
std::string cleaned(std::string_view text, Kept kept, OnReturn on_return) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\x1b') {
      const size_t end = after_escape(text, at);
      if (kept(text.substr(at, end - at))) out.append(text.substr(at, end - at));
      at = end;
      continue;
    }
    const Char c = decode(text, at);
    if (!c.valid)
      out += "\xEF\xBF\xBD";
    else if (c.code == '\r')
      on_return(out, at + 1 < text.size() ? text[at + 1] : '\0');
    else if (c.code >= 0x20 ? !in(kHidden, c.code) : c.code == '\n' || c.code == '\t')
      out.append(text.substr(at, c.bytes));
    at += c.bytes;
  }
  return out;
}

// The bytes of the longest start of `text` that is at most `width` columns wide: at least one character.
size_t prefix(std::string_view text, int width) {
  size_t at = 0;
  int used = 0;
  while (at < text.size()) {
    const Char c = decode(text, at);
    used += columns(c.code);
    if (used > width && at > 0) break;
    at += c.bytes;
  }
  return at;
}

// Where a long word breaks that must break within `cut` bytes: after the last "," or "[" of its second half,
// else after another sign, else at `cut`.
size_t nice_cut(std::string_view word, size_t cut) {
  for (const std::string_view signs : {",[", "/=-_]"}) {
    for (size_t at = cut; at > cut / 3; --at) {
      if (signs.find(word[at - 1]) != std::string_view::npos) return at;
    }
  }
  return cut;
}

void wrap_word(std::string_view word, int width, std::vector<std::string>& lines) {
  const auto free = [&] { return width - display_width(lines.back()) - (lines.back().empty() ? 0 : 1); };
  if (display_width(word) <= free() || lines.back().empty()) {
    if (!lines.back().empty()) lines.back() += ' ';
  } else {
    lines.emplace_back();
  }
  while (display_width(word) > width) {
    const size_t cut = nice_cut(word, prefix(word, width));
    lines.back() += word.substr(0, cut);
    lines.emplace_back();
    word.remove_prefix(cut);
  }
  lines.back() += word;
}

}  // namespace

std::string clean(std::string_view text) {
  return cleaned(
      text, [](std::string_view) { return false; },
      [](std::string& out, char next) {
        if (next != '\n' && next != '\r' && next != '\0') carriage_return(out);
      });
}

std::string for_screen(std::string_view text, bool colour) {
  const auto own = [&](std::string_view escape) { return colour && kInks.contains(escape); };
  return cleaned(text, own, [](std::string& out, char next) {
    if (next == '\n') out += '\r';
  });
}

std::string csv_row(const std::vector<std::string>& fields) {
  std::string row;
  for (size_t i = 0; i < fields.size(); ++i) {
    std::string text = clean(fields[i]);
    char* end = nullptr;
    std::strtod(text.c_str(), &end);
    const bool formula = !text.empty() && std::string_view("=+-@\t").find(text[0]) != std::string_view::npos;
    if (formula && (*end != '\0' || end == text.c_str())) text.insert(0, 1, '\'');
    const bool quoted = text.find_first_of(",\"\n\r") != std::string::npos;
    if (i > 0) row += ',';
    if (quoted) row += '"';
    for (const char c : text) row += c == '"' ? "\"\"" : std::string(1, c);
    if (quoted) row += '"';
  }
  return row + "\r\n";
}

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : clean(text)) {
    const bool space = c == ' ' || c == '\n' || c == '\t';
    if (!space) out += c;
    if (space && !out.empty() && out.back() != ' ') out += ' ';
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

int display_width(std::string_view utf8) {
  int width = 0;
  for (size_t at = 0; at < utf8.size();) {
    const Char c = decode(utf8, at);
    width += columns(c.code);
    at += c.bytes;
  }
  return width;
}

std::string fit(std::string_view utf8, int width) {
  if (display_width(utf8) <= width) return std::string(utf8);
  if (width <= 0) return "";
  if (width == 1) return "…";
  std::string cut(utf8.substr(0, prefix(utf8, width - 1)));
  if (display_width(cut) > width - 1) cut.clear();  // one wide character in too narrow a cell
  return cut + "…";
}

std::string pad_right(std::string_view utf8, int width) {
  return std::string(utf8) + std::string(std::max(0, width - display_width(utf8)), ' ');
}

std::string pad_left(std::string_view utf8, int width) {
  return std::string(std::max(0, width - display_width(utf8)), ' ') + std::string(utf8);
}

std::vector<std::string> wrap(std::string_view utf8, int width) {
  width = std::max(width, 2);
  std::vector<std::string> lines(1);
  for (size_t at = 0; at < utf8.size();) {
    if (utf8[at] == '\n') {
      lines.emplace_back();
      ++at;
    } else if (utf8[at] == ' ') {
      ++at;
    } else {
      const size_t end = std::min(utf8.find_first_of(" \n", at), utf8.size());
      wrap_word(utf8.substr(at, end - at), width, lines);
      at = end;
    }
  }
  return lines;
}

std::string paragraph(std::string_view text, int width, std::string_view first, std::string_view next) {
  const int room = width - std::max(display_width(first), display_width(next));
  std::string out;
  for (const std::string& line : wrap(text, room)) {
    out += out.empty() ? std::string(first) + line : '\n' + std::string(next) + line;
  }
  return out;
}

std::vector<std::string> last_lines(std::string_view text, int count) {
  std::vector<std::string> lines;
  while (!text.empty() && static_cast<int>(lines.size()) < count) {
    const size_t at = text.rfind('\n');
    const std::string_view line = at == std::string_view::npos ? text : text.substr(at + 1);
    if (line.find_first_not_of(" \t") != std::string_view::npos) lines.emplace_back(line);
    text = at == std::string_view::npos ? "" : text.substr(0, at);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace bakeoff::table
