#include "emit/cpp.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/namer.h"
#include "emit/windows.h"

namespace bakeoff::emit::cpp {
namespace {

bool opens(char c) { return c == '(' || c == '{' || c == '['; }
bool closes(char c) { return c == ')' || c == '}' || c == ']'; }

// Position after `at` of the bracket that closes the one there; text.size() where none does.
size_t closing(const std::string& text, size_t at) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) continue;
    depth += opens(text[i]) ? 1 : closes(text[i]) ? -1 : 0;
    if (depth == 0) return i;
  }
  return text.size();
}

// "a, b(c, d), e" -> {"a,", "b(c, d),", "e"}.
std::vector<std::string> at_commas(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (opens(text[i])) i = closing(text, i);
    if (i >= text.size() || text[i] != ',') continue;
    parts.push_back(text.substr(begin, i + 1 - begin));
    begin = std::min(text.find_first_not_of(' ', i + 1), text.size());
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// `text` starting at `column`, as lines; all but the first with their own indentation.
std::vector<std::string> broken(const std::string& text, size_t column) {
  if (column + text.size() <= kColumns) return {text};
  for (size_t open = 0; open < text.size(); ++open) {
    if (!opens(text[open])) continue;
    const size_t close = closing(text, open);
    const std::vector<std::string> parts = at_commas(text.substr(open + 1, close - open - 1));
    if (parts.size() < 2 && open + 1 < close) continue;  // break further inside
    if (parts.size() < 2) continue;
    std::vector<std::string> lines = {text.substr(0, open + 1)};
    const size_t aligned = column + open + 1;
    bool first = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string tail = i + 1 == parts.size() ? text.substr(close) : "";
      const size_t used = lines.size() == 1 ? column + lines[0].size() : lines.back().size();
      if (!first && used + 1 + parts[i].size() + tail.size() > kColumns) {
        lines.push_back(std::string(aligned, ' '));
        first = true;
      }
      const size_t at = lines.size() == 1 ? column + lines[0].size() : lines.back().size();
      const std::vector<std::string> inner = broken(parts[i] + tail, at + (first ? 0 : 1));
      lines.back() += (first ? "" : " ") + inner[0];
      lines.insert(lines.end(), inner.begin() + 1, inner.end());
      first = false;
    }
    return lines;
  }
  return {text};
}

}  // namespace

void statement(CodeWriter& out, const std::string& text) {
  const auto column = static_cast<size_t>(out.column());
  if (out.wide()) return out.line(text);
  // A module is made on a line of its own where that does not fit.
  if (const size_t at = text.find(" = "); text.starts_with("auto ") && column + text.size() > kColumns) {
    out.line(text.substr(0, at + 2));
    return out.line("    " + text.substr(at + 3));
  }
  // So are a member's options.
  if (const size_t at = text.find("{nn::"); at != std::string::npos && column + text.size() > kColumns &&
                                            column + 5 + text.size() - at <= kColumns) {
    const size_t indent = text.find_first_not_of(' ');
    out.line(text.substr(0, at + 1));
    return out.line(std::string(indent + 4, ' ') + text.substr(at + 1));
  }
  const std::vector<std::string> lines = broken(text, column);
  out.line(lines[0]);
  for (size_t i = 1; i < lines.size(); ++i) out.line(lines[i].substr(std::min(column, lines[i].size())));
}

void call(CodeWriter& out, const std::string& head, const std::vector<std::string>& arguments,
          const std::string& tail) {
  statement(out, fmt::format("{}({}){}", head, join(arguments, ", "), tail));
}

std::string braces(const std::vector<int64_t>& values) { return fmt::format("{{{}}}", join(values, ", ")); }

std::string per_axis(const std::vector<int64_t>& values) {
  return all_are(values, values[0]) ? std::to_string(values[0]) : braces(values);
}

std::string quote(std::string_view text) { return fmt::format("\"{}\"", text); }

const std::set<std::string>& cpp_words() {
  static const std::set<std::string> all = words(
      "alignas alignof and_eq asm auto bitand bitor bool case catch char char8_t char16_t char32_t "
      "compl concept const consteval constexpr constinit co_await co_return co_yield const_cast "
      "decltype default delete do double dynamic_cast enum explicit export extern false friend goto "
      "inline long mutable namespace new noexcept not_eq nullptr operator or_eq private protected "
      "public register requires short signed sizeof static static_cast static_assert struct switch "
      "template this thread_local throw true typedef typeid typename union unsigned using virtual "
      "void volatile wchar_t xor xor_eq reinterpret_cast");
  return all;
}

}  // namespace bakeoff::emit::cpp
