#include "base/toml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace bakeoff {
namespace {

// toml++ makes a table of every part of a dotted key, each within the one before, and ends them by recursion: a
// hundred thousand parts end the stack. Values that are nested it counts itself.
constexpr int kMostParts = 32;

// The place of the last quote of the text that begins at `at`; of a text that does not end, that of the last character
// of its line. Two quotes more than the three that end it belong to a text of several lines.
size_t end_of_text(std::string_view toml, size_t at) {
  const char quote = toml[at];
  const bool lines = toml.substr(at, 3) == std::string(3, quote);
  const std::string end(lines ? 3 : 1, quote);
  for (size_t i = at + end.size(); i < toml.size(); ++i) {
    if (toml[i] == '\\' && quote == '"')
      ++i;
    else if (toml.substr(i, end.size()) == end) {
      i += end.size() - 1;
      for (int more = 0; lines && more < 2 && i + 1 < toml.size() && toml[i + 1] == quote; ++more) ++i;
      return i;
    } else if (toml[i] == '\n' && !lines)
      return i - 1;
  }
  return toml.size();
}

std::optional<size_t> line_of_deep_key(std::string_view toml) {
  int parts = 1;
  for (size_t i = 0; i < toml.size(); ++i) {
    const char c = toml[i];
    if (c == '"' || c == '\'')
      i = end_of_text(toml, i);
    else if (c == '#')
      i = std::min(toml.find('\n', i), toml.size()) - 1;
    else if (c == '.')
      ++parts;
    else if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos)
      parts = 1;
    if (parts > kMostParts) return 1 + std::count(toml.begin(), toml.begin() + static_cast<long>(i), '\n');
  }
  return std::nullopt;
}

}  // namespace

Result<toml::table> parse_toml(std::string_view text, const std::filesystem::path& file,
                               std::string_view example) {
  const std::string remedy = fmt::format("see {} for an example", example);
  if (const auto line = line_of_deep_key(text))
    return Error{.message = fmt::format("a key of more than {} dotted parts", kMostParts),
                 .where = fmt::format("{}:{}", file.string(), *line),
                 .remedy = remedy};
  toml::parse_result parsed = toml::parse(text, file.string());
  if (parsed) return std::move(parsed).table();
  const toml::parse_error& e = parsed.error();
  return Error{
      .message = fmt::format("not valid TOML: {}", std::string(e.description())),
      .where = fmt::format("{}:{}:{}", file.string(), e.source().begin.line, e.source().begin.column),
      .remedy = remedy};
}

double real_in(const toml::node& number) {
  if (const auto value = number.value<double>()) return *value;
  return static_cast<double>(number.value<int64_t>().value());
}

}  // namespace bakeoff
