// One reader for all keys of all sections: the schema says name, kind, range and unit, and the reader finds
// the value, checks it and keeps its line, so that every message names file, line and key without a word at
// the place that uses the value. Unknown names are refused before any value is read, with the nearest known
// one: a key that is misspelt must not leave a default in silence.

#include "recipe/reader.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/files.h"
#include "base/nearest.h"
#include "recipe/shipped.h"
#include "table/text.h"

namespace bakeoff::recipe {
namespace {

bool is_text(const toml::node& node) { return node.is_string(); }
// A text, or a list of one or more.
bool is_text_list(const toml::node& node) {
  const toml::array* list = node.as_array();
  return is_text(node) ||
         (list != nullptr && !list->empty() && std::all_of(list->begin(), list->end(), is_text));
}
std::vector<std::string> texts_of(const toml::node& node) {
  if (!node.is_array()) return {node.value<std::string>().value()};
  std::vector<std::string> texts;
  for (const toml::node& one : *node.as_array()) texts.push_back(one.value<std::string>().value());
  return texts;
}

std::string dotted(const Key& key) { return key.section.empty() ? key.name : key.section + "." + key.name; }

}  // namespace

std::filesystem::path Reader::shipped_path(const std::string& text) {
  if (shipped_file(text)) return std::filesystem::path("recipes") / text;
  return std::filesystem::weakly_canonical(std::filesystem::current_path() / text);
}

Result<std::string> Reader::read(const std::string& text) const {
  const auto inside = shipped_ ? shipped_file(text) : std::nullopt;
  return inside ? std::string(*inside) : read_file(path(text));
}

Status Reader::check() const {
  CHECK_OK(check_names(root_, ""));
  for (const Key& key : keys()) CHECK_OK(check_key(key));
  return Done{};
}

Status Reader::check_names(const toml::table& table, const std::string& section) const {
  std::vector<std::string> known = names_in(section);
  if (section.empty()) {
    for (const std::string& s : sections()) {
      if (!s.empty()) known.push_back(s);
    }
    known.push_back("contenders");
  }
  for (const auto& [name, node] : table) {
    const std::string text(name.str());
    if (std::find(known.begin(), known.end(), text) == known.end()) {
      const std::string seen = table::clean(text);
      const bool hidden = std::ranges::find(known, seen) != known.end();
      return error(
          name.source(),
          fmt::format("unknown key '{}'{}", text, section.empty() ? "" : fmt::format(" in [{}]", section)),
          hidden ? fmt::format("it holds characters that cannot be seen: write '{}' anew", seen)
                 : suggest(text, known));
    }
    const std::vector<std::string> all = sections();
    const bool is_section = section.empty() && std::find(all.begin(), all.end(), text) != all.end();
    if (is_section) {
      if (!node.is_table())
        return error(node.source(), fmt::format("'{}' must be a table", text),
                     fmt::format("write [{}] on a line of its own", text));
      CHECK_OK(check_names(*node.as_table(), text));
    }
  }
  return Done{};
}

Status Reader::check_key(const Key& key) const {
  const toml::node* node = find(key.section, key.name);
  if (node == nullptr) {
    if (!key.required || (key.section == "optimizer" && predicts())) return Done{};
    const bool always = key.section.empty() || key.section == "optimizer";
    if (!always && !root_.contains(key.section)) return Done{};
    return Error{
        .message = fmt::format("'{}' is missing", dotted(key)),
        .where = file_.string() + ":1",
        .remedy = fmt::format("add `{} = ...`{}: {}", key.name,
                              key.section.empty() ? "" : fmt::format(" under [{}]", key.section), key.doc)};
  }
  CHECK_OK(check_kind(key, *node));
  if (key.kind == Kind::kInt || key.kind == Kind::kReal) {
    if (node->is_array()) {
      for (const toml::node& one : *node->as_array()) CHECK_OK(check_range(key, one));
    } else {
      CHECK_OK(check_range(key, *node));
    }
  }
  if (!key.words.empty()) {
    const std::string text = node->value<std::string>().value();
    if (std::find(key.words.begin(), key.words.end(), text) == key.words.end()) {
      return error(node->source(), fmt::format("'{}' cannot be '{}'", dotted(key), text),
                   suggest(text, key.words));
    }
  }
  return Done{};
}

Status Reader::check_range(const Key& key, const toml::node& node) const {
  const double value = real_in(node);
  // NaN and infinity are outside every range.
  if (std::isfinite(value) && value >= key.least && value <= key.most &&
      !(key.least_excluded && value == key.least))
    return Done{};
  return error(node.source(), fmt::format("'{}' is {}, outside its range", dotted(key), value),
               fmt::format("it must be {} {}{}", key.least_excluded ? "above" : "at least", key.least,
                           std::isfinite(key.most) ? fmt::format(" and at most {}", key.most) : ""));
}

std::vector<double> Reader::reals(std::string_view section, std::string_view name,
                                  std::vector<double> fallback) const {
  const toml::node* node = find(section, name);
  if (node == nullptr) return fallback;
  if (!node->is_array()) return {real_in(*node)};
  std::vector<double> all;
  for (const toml::node& one : *node->as_array()) all.push_back(real_in(one));
  return all;
}

std::vector<std::string> Reader::words(std::string_view section, std::string_view name) const {
  const toml::node* node = find(section, name);
  return node == nullptr ? std::vector<std::string>() : texts_of(*node);
}

std::map<std::string, std::vector<std::string>> Reader::word_table(std::string_view section,
                                                                   std::string_view name) const {
  std::map<std::string, std::vector<std::string>> lists;
  if (const toml::node* node = find(section, name)) {
    for (const auto& [key, value] : *node->as_table()) lists[std::string(key.str())] = texts_of(value);
  }
  return lists;
}

bool Reader::predicts() const {
  const toml::node* scenario = find("", "scenario");
  return scenario != nullptr && scenario->value<std::string>() != "train";
}

Status Reader::check_kind(const Key& key, const toml::node& node) const {
  const auto wrong = [&](std::string_view wanted) {
    return error(node.source(), fmt::format("'{}' must be {}", dotted(key), wanted),
                 fmt::format("for example {} = {}", key.name, example_of(key)));
  };
  const auto numbers = [&](auto fits, std::string_view one, std::string_view several) -> Status {
    if (fits(node)) return Done{};
    if (!key.list) return wrong(one);
    const toml::array* all = node.as_array();
    if (all == nullptr || all->empty() || !std::all_of(all->begin(), all->end(), fits)) return wrong(several);
    return Done{};
  };
  switch (key.kind) {
    case Kind::kWord:
    case Kind::kPath:
      if (key.list && is_text_list(node)) return Done{};
      return is_text(node) ? Status(Done{}) : wrong(key.list ? "text or a list of texts" : "text");
    case Kind::kTable: {
      const toml::table* table = node.as_table();
      const bool sound = table != nullptr && !table->empty() &&
                         std::all_of(table->begin(), table->end(),
                                     [](const auto& entry) { return is_text_list(entry.second); });
      return sound ? Status(Done{}) : wrong("a table of texts or lists of texts");
    }
    case Kind::kInt:
      return numbers([](const toml::node& n) { return n.is_integer(); }, "an integer",
                     "an integer or a list of integers");
    case Kind::kReal:
      return numbers([](const toml::node& n) { return n.is_number(); }, "a number",
                     "a number or a list of numbers");
    case Kind::kFlag:
      return node.is_boolean() ? Status(Done{}) : wrong("true or false");
  }
  return Done{};
}

}  // namespace bakeoff::recipe
