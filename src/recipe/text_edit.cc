#include "recipe/text_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/texts.h"

namespace bakeoff::recipe {
namespace {

// Where a line and a column of TOML++ are in the text: columns count characters, not bytes.
size_t offset_of(std::string_view text, const toml::source_position& at) {
  size_t offset = 0;
  for (uint32_t line = 1; line < at.line && offset < text.size(); ++line)
    offset = std::min(text.find('\n', offset), text.size() - 1) + 1;
  for (uint32_t column = 1; column < at.column && offset < text.size(); ++column) {
    ++offset;
    while (offset < text.size() && (static_cast<unsigned char>(text[offset]) & 0xc0) == 0x80) ++offset;
  }
  return offset;
}

// As people write it: "0.05", not the 17 digits of a double; a table a line in a list of tables.
std::string written(const toml::node& node) {
  if (const auto* real = node.as_floating_point()) {
    std::string text = fmt::format("{}", real->get());
    return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
  }
  if (const toml::array* list = node.as_array();
      list != nullptr && !list->empty() && list->is_homogeneous<toml::table>()) {
    std::string text = "[\n";
    for (const toml::node& one : *list) text += "  " + written(one) + ",\n";
    return text + "]";
  }
  std::ostringstream out;
  if (const toml::table* table = node.as_table()) {
    toml::table inlined = *table;
    inlined.is_inline(true);
    out << toml::toml_formatter(inlined,
                                toml::toml_formatter::default_flags & ~toml::format_flags::indentation);
  } else {
    node.visit([&](const auto& one) { out << one; });
  }
  return out.str();
}

// The line of "[section]" ends here; nullopt if absent.
std::optional<size_t> end_of_header(std::string_view text, std::string_view section) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trimmed(text.substr(begin, end - begin));
    if (line.substr(0, line.find(']') + 1) == fmt::format("[{}]", section))
      return std::min(end + 1, text.size());
    begin = end + 1;
  }
  return std::nullopt;
}

// The first line that is neither blank nor a comment.
size_t first_statement(std::string_view text) {
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trimmed(text.substr(begin, end - begin));
    if (!line.empty() && line[0] != '#') break;
    begin = std::min(end + 1, text.size());
  }
  return begin;
}

std::string inserted(std::string text, std::string_view section, const std::string& line) {
  if (section.empty()) return text.insert(first_statement(text), line);
  if (const auto at = end_of_header(text, section)) return text.insert(*at, line);
  return text + (text.ends_with('\n') ? "" : "\n") + fmt::format("\n[{}]\n", section) + line;
}

// Without the lines of a value.
std::string without(std::string text, size_t begin, size_t end) {
  const size_t before = begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
  const size_t first = before == std::string::npos ? 0 : before + 1;
  return text.erase(first, std::min(text.find('\n', end), text.size() - 1) + 1 - first);
}

const toml::node* node_of(const toml::table& root, std::string_view section, std::string_view name) {
  const toml::table* home = section.empty() ? &root : root[section].as_table();
  return home == nullptr ? nullptr : home->get(name);
}

}  // namespace

std::string edited(std::string_view text, const toml::table& wanted, std::string_view section,
                   std::string_view name) {
  const auto parsed = parse_toml(text);
  const toml::node* now = parsed ? node_of(*parsed, section, name) : nullptr;
  const toml::node* then = node_of(wanted, section, name);
  std::string made(text);
  if (now != nullptr) {
    const size_t begin = offset_of(text, now->source().begin), end = offset_of(text, now->source().end);
    made = then == nullptr ? without(made, begin, end) : made.replace(begin, end - begin, written(*then));
  } else if (then != nullptr) {
    made = inserted(made, section, fmt::format("{} = {}\n", name, written(*then)));
  }
  if (const auto again = parse_toml(made); again && *again == wanted) return made;
  std::ostringstream out;
  out << wanted << "\n";
  return out.str();
}

}  // namespace bakeoff::recipe
