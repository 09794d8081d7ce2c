#pragma once

// Reads a TOML table through the schema (recipe/schema.h) and remembers the line of each value. Internal to
// this room: code outside src/recipe does not see TOML.

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/toml_text.h"
#include "recipe/schema.h"

namespace bakeoff::recipe {

class Reader {
 public:
  // `recorded`: the recipe comes from a run's record; no file that it names is read. `shipped`: it is one inside
  // the program.
  Reader(const toml::table& root, std::filesystem::path file, bool recorded, bool shipped)
      : root_(root), file_(std::move(file)), recorded_(recorded), shipped_(shipped) {}

  Error error(const toml::source_region& at, std::string message, std::string remedy = {}) const {
    return {std::move(message), fmt::format("{}:{}", file_.string(), at.begin.line), std::move(remedy)};
  }

  // Errors: unknown sections and keys, wrong types, values out of range.
  Status check() const;

  const toml::node* find(std::string_view section, std::string_view name) const {
    const toml::table* home = &root_;
    if (!section.empty()) home = root_[section].as_table();
    return home == nullptr ? nullptr : home->get(name);
  }

  // The value of a key that check() has accepted, or `fallback`.
  std::string word(std::string_view section, std::string_view name, std::string fallback) const {
    const toml::node* node = find(section, name);
    return node == nullptr ? fallback : node->value<std::string>().value();
  }
  int64_t integer(std::string_view section, std::string_view name, int64_t fallback) const {
    const toml::node* node = find(section, name);
    return node == nullptr ? fallback : node->value<int64_t>().value();
  }
  double real(std::string_view section, std::string_view name, double fallback) const {
    const toml::node* node = find(section, name);
    return node == nullptr ? fallback : real_in(*node);
  }
  // The texts of a key that may be a list; one text is a list of one.
  std::vector<std::string> words(std::string_view section, std::string_view name) const;
  // The lists of texts of a table.
  std::map<std::string, std::vector<std::string>> word_table(std::string_view section,
                                                             std::string_view name) const;
  // The values of a key that may be a list; one number is a list of one.
  std::vector<double> reals(std::string_view section, std::string_view name,
                            std::vector<double> fallback) const;
  bool flag(std::string_view section, std::string_view name, bool fallback) const {
    const toml::node* node = find(section, name);
    return node == nullptr ? fallback : node->value<bool>().value();
  }
  // A file that the recipe names: relative to its folder, of a recipe inside the program to the working directory.
  std::filesystem::path path(const std::string& text) const {
    if (shipped_) return shipped_path(text);
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file_).parent_path() / text);
  }
  // Where relative paths begin, as a remedy.
  const char* at_home() const {
    return shipped_ ? "paths that a recipe inside the program is given are relative to the working directory"
                    : "paths are relative to the recipe's folder";
  }
  // The contents of such a file; of a recipe inside the program that of the file there.
  Result<std::string> read(const std::string& text) const;
  const std::filesystem::path& file() const { return file_; }
  bool recorded() const { return recorded_; }

 private:
  Status check_names(const toml::table& table, const std::string& section) const;
  Status check_key(const Key& key) const;
  static std::filesystem::path shipped_path(const std::string& text);
  bool predicts() const;  // whether the scenario is another than "train"
  Status check_kind(const Key& key, const toml::node& node) const;
  Status check_range(const Key& key, const toml::node& node) const;

  const toml::table& root_;
  std::filesystem::path file_;
  bool recorded_, shipped_;
};

}  // namespace bakeoff::recipe
