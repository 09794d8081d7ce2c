#include "recipe/toml_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/nearest.h"

namespace bakeoff::recipe {

Error TomlFields::error(const toml::node* at, std::string message, std::string remedy) const {
  const auto line = (at == nullptr ? table_.source() : at->source()).begin.line;
  return {std::move(message), line > 0 ? fmt::format("{}:{}", file_, line) : file_, std::move(remedy)};
}

Status TomlFields::check_names(const std::vector<std::string>& known) const {
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (std::ranges::find(known, name) == known.end())
      return Error{fmt::format("{} has no key '{}'", whose_, name),
                   fmt::format("{}:{}", file_, key.source().begin.line), suggest(name, known)};
  }
  return Done{};
}

Result<std::string> TomlFields::text(const char* key, const char* fallback) const {
  const toml::node* node = get(key);
  const std::string remedy = fmt::format("{} = \"...\"", key);
  if (node == nullptr && fallback == nullptr)
    return error(nullptr, fmt::format("{} lacks '{}'", whose_, key), remedy);
  if (node == nullptr) return std::string(fallback);
  if (!node->is_string() || node->value<std::string>()->empty())
    return error(node, fmt::format("'{}' must be a text", key), remedy);
  return *node->value<std::string>();
}

Result<std::vector<std::string>> TomlFields::texts(const char* key) const {
  std::vector<std::string> found;
  const toml::node* node = get(key);
  if (node == nullptr) return found;
  bool all = node->is_array();
  if (all) {
    for (const toml::node& each : *node->as_array()) {
      all = all && each.is_string() && !each.value<std::string>()->empty();
      if (all) found.push_back(*each.value<std::string>());
    }
  }
  if (all) return found;
  return error(node, fmt::format("'{}' must be a list of texts", key), fmt::format("{} = [\"...\"]", key));
}

Result<double> TomlFields::minutes() const {
  const toml::node* node = get("minutes");
  if (node == nullptr) return 0.0;
  const double value = node->is_number() ? real_in(*node) : 0;
  if (value > 0 && value <= 1e6) return value;
  return error(node, "'minutes' must be a number above 0",
               "the minutes of all races together, for example minutes = 20");
}

Result<std::string> TomlFields::keys(const char* key, const char* holds) const {
  const toml::node* node = get(key);
  if (node == nullptr) return std::string();
  if (!node->is_table()) return error(node, fmt::format("'{}' must be a table", key), holds);
  toml::table table = *node->as_table();
  table.is_inline(false);  // else it is printed between braces, which is no file
  std::ostringstream out;
  out << table << "\n";
  return out.str();
}

Result<std::vector<TomlFields>> TomlFields::tables(const char* key, const char* whose) const {
  std::vector<TomlFields> found;
  const toml::node* node = get(key);
  if (node == nullptr) return found;
  if (!node->is_array() || !node->as_array()->is_homogeneous(toml::node_type::table))
    return error(node, fmt::format("'{}' must be a list of tables", key),
                 fmt::format("write [[{}]] above its keys", key));
  for (const toml::node& each : *node->as_array()) found.emplace_back(*each.as_table(), file_, whose);
  return found;
}

}  // namespace bakeoff::recipe
