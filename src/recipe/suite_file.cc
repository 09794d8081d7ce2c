#include "recipe/suite_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/nearest.h"
#include "recipe/reader.h"

namespace bakeoff::recipe {
namespace {

const std::vector<std::string>& suite_keys() {
  static const std::vector<std::string> keys = {"name", "recipes", "minutes", "baseline", "every"};
  return keys;
}

// Reads a suite's keys; the first error stays.
class SuiteReader {
 public:
  SuiteReader(const toml::table& root, const std::filesystem::path& file, bool shipped)
      : root_(root), file_(file), shipped_(shipped) {}

  Error error(const toml::source_region& at, std::string message, std::string remedy) const {
    return {std::move(message), fmt::format("{}:{}", file_.string(), at.begin.line), std::move(remedy)};
  }

  Status check_names() const {
    for (const auto& [key, node] : root_) {
      const std::string name(key.str());
      if (std::find(suite_keys().begin(), suite_keys().end(), name) == suite_keys().end())
        return error(key.source(), fmt::format("a suite has no key '{}'", name), suggest(name, suite_keys()));
    }
    return Done{};
  }

  Result<std::string> word(const char* name, std::string fallback) const {
    const toml::node* node = root_.get(name);
    if (node == nullptr) return fallback;
    const auto text = node->value<std::string>();
    if (!node->is_string() || text->empty())
      return error(node->source(), fmt::format("'{}' must be a text", name),
                   fmt::format("{} = \"...\"", name));
    return *text;
  }

  Result<double> minutes() const {
    const toml::node* node = root_.get("minutes");
    if (node == nullptr) return 0.0;
    const double value = node->is_number() ? real_in(*node) : 0;
    if (!(value > 0) || !std::isfinite(value) || value > 1e6)
      return error(node->source(), "'minutes' must be a number above 0",
                   "the minutes of all races together, for example minutes = 20");
    return value;
  }

  Result<std::vector<std::filesystem::path>> recipes() const {
    const toml::node* node = root_.get("recipes");
    constexpr const char* kExample = "name their files, for example recipes = [\"../mlp_small.toml\"]";
    if (node == nullptr)
      return Error{.message = "'recipes' is missing", .where = file_.string(), .remedy = kExample};
    const toml::array* list = node->as_array();
    if (list == nullptr || list->empty())
      return error(node->source(), "'recipes' must be a list of files", kExample);
    std::vector<std::filesystem::path> found;
    for (const toml::node& each : *list) {
      const auto text = each.is_string() ? each.value<std::string>() : std::nullopt;
      if (!text || text->empty()) return error(each.source(), "'recipes' must be a list of files", kExample);
      found.push_back(shipped_ ? (file_.parent_path() / *text).lexically_normal()
                               : std::filesystem::weakly_canonical(
                                     std::filesystem::absolute(file_).parent_path() / *text));
    }
    return found;
  }

  Result<std::string> every() const {
    const toml::node* node = root_.get("every");
    if (node == nullptr) return std::string();
    const toml::table* table = node->as_table();
    if (table == nullptr)
      return error(node->source(), "'every' must be a table",
                   "[every] holds keys of recipes, which replace those of every recipe of the suite");
    std::ostringstream out;
    out << *table << "\n";
    return out.str();
  }

 private:
  const toml::table& root_;
  const std::filesystem::path& file_;
  bool shipped_;
};

// `from` over `to`, table by table.
void lay_over(const toml::table& from, toml::table& to) {
  for (const auto& [key, node] : from) {
    toml::table* below = to[key.str()].as_table();
    if (const toml::table* above = node.as_table(); above != nullptr && below != nullptr)
      lay_over(*above, *below);
    else
      to.insert_or_assign(key.str(), node);
  }
}

}  // namespace

bool is_suite(std::string_view text) {
  const auto parsed = parse_toml(text);
  return parsed && parsed->contains("recipes");
}

Result<SuiteFile> parse_suite(std::string_view text, const std::filesystem::path& file, bool shipped) {
  TRY(const toml::table root, parse_toml(text, file, "docs/suites.md"));
  const SuiteReader reader(root, file, shipped);
  CHECK_OK(reader.check_names());
  SuiteFile suite{.file = file};
  TRY(suite.name, reader.word("name", file.stem().string()));
  TRY(suite.baseline, reader.word("baseline", ""));
  TRY(suite.minutes, reader.minutes());
  TRY(suite.recipes, reader.recipes());
  TRY(suite.every, reader.every());
  return suite;
}

Result<Recipe> with_every(const Recipe& recipe, const std::string& every, const std::string& whose) {
  if (every.empty()) return recipe;
  TRY(toml::table merged, parse_toml(recipe.text, recipe.file));
  TRY(const toml::table over, parse_toml(every, recipe.file));
  lay_over(over, merged);
  std::ostringstream text;
  text << merged << "\n";
  auto both = parse(text.str(), recipe.file, recipe.shipped);
  if (both) return both;
  return Error{.message = fmt::format("with {}: {}", whose, both.error().message),
               .where = recipe.file.string(),
               .remedy = both.error().remedy};
}

}  // namespace bakeoff::recipe
