#include "recipe/published_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "base/embedded.h"
#include "base/files.h"
#include "base/nearest.h"
#include "base/toml_text.h"
#include "recipe/shipped.h"

namespace bakeoff::embedded {
const std::vector<File>& recipes();
}

namespace bakeoff::recipe {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// Reads one table of a study; `whose` names it in errors: "a row".
class StudyTable {
 public:
  StudyTable(const toml::table& table, std::string file, std::string whose)
      : table_(table), file_(std::move(file)), whose_(std::move(whose)) {}

  Error error(const toml::source_region& at, std::string message, std::string remedy) const {
    return {std::move(message), fmt::format("{}:{}", file_, at.begin.line), std::move(remedy)};
  }
  Error error(std::string message, std::string remedy) const {
    return error(table_.source(), std::move(message), std::move(remedy));
  }
  Error error_at(const char* key, std::string message, std::string remedy) const {
    return error(table_.get(key)->source(), std::move(message), std::move(remedy));
  }
  bool has(const char* key) const { return table_.contains(key); }

  Status check_names(const Names& known) const {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (std::ranges::find(known, name) == known.end())
        return error(key.source(), fmt::format("{} has no key '{}'", whose_, name), suggest(name, known));
    }
    return Done{};
  }

  Result<std::string> text(const char* key, bool needed = false) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr && !needed) return std::string();
    const auto value = node == nullptr ? std::nullopt : node->value<std::string>();
    const std::string remedy = fmt::format("{} = \"...\"; docs/reproduce.md describes the format", key);
    if (node == nullptr) return error(fmt::format("{} lacks '{}'", whose_, key), remedy);
    if (!node->is_string() || value->empty())
      return error(node->source(), fmt::format("'{}' must be a text", key), remedy);
    return *value;
  }

  Result<Names> texts(const char* key) const {
    Names found;
    const toml::node* node = table_.get(key);
    if (node == nullptr) return found;
    const toml::array* list = node->as_array();
    const auto wrong = [&] {
      return error(node->source(), fmt::format("'{}' must be a list of texts", key),
                   fmt::format("{} = [\"...\"]", key));
    };
    if (list == nullptr) return wrong();
    for (const toml::node& each : *list) {
      if (!each.is_string() || each.value<std::string>()->empty()) return wrong();
      found.push_back(*each.value<std::string>());
    }
    return found;
  }

  // Numbers above 0, or nan; `key` is there.
  Result<std::vector<double>> figures(const char* key) const {
    const toml::node& node = *table_.get(key);
    std::vector<double> found;
    const auto wrong = [&](const toml::node& at) {
      return error(at.source(), fmt::format("'{}' must be a list of numbers above 0", key),
                   "one for each column; nan where the table has none");
    };
    if (!node.is_array()) return wrong(node);
    for (const toml::node& each : *node.as_array()) {
      if (!each.is_number()) return wrong(each);
      found.push_back(real_in(each));
      if (!std::isnan(found.back()) && !(found.back() > 0 && std::isfinite(found.back()))) return wrong(each);
    }
    return found;
  }

  Result<double> minutes() const {
    const toml::node* node = table_.get("minutes");
    if (node == nullptr) return 0.0;
    const double value = node->is_number() ? real_in(*node) : 0;
    if (!(value > 0 && value <= 1e6))
      return error(node->source(), "'minutes' must be a number above 0", "minutes = 20");
    return value;
  }

  Result<bool> flag(const char* key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return false;
    if (!node->is_boolean())
      return error(node->source(), fmt::format("'{}' must be true or false", key), fmt::format("{} = true", key));
    return *node->value<bool>();
  }

  // The TOML of a table of recipe keys.
  Result<std::string> keys(const char* key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return std::string();
    if (!node->is_table())
      return error(node->source(), fmt::format("'{}' must be a table", key),
                   "it holds keys of recipes (docs/recipe.md), which replace those of the recipe");
    std::ostringstream out;
    out << *node->as_table() << "\n";
    return out.str();
  }

  // The tables of [[key]].
  Result<std::vector<StudyTable>> tables(const char* key, const std::string& whose) const {
    std::vector<StudyTable> found;
    const toml::node* node = table_.get(key);
    if (node == nullptr) return found;
    const toml::array* list = node->as_array();
    if (list == nullptr || !list->is_homogeneous(toml::node_type::table))
      return error(node->source(), fmt::format("'{}' must be a list of tables", key),
                   fmt::format("write [[{}]] above its keys", key));
    for (const toml::node& each : *list) found.emplace_back(*each.as_table(), file_, whose);
    return found;
  }

 private:
  const toml::table& table_;
  std::string file_, whose_;
};

// A file beside the study, else a recipe inside the program.
fs::path recipe_of_row(const std::string& name, const fs::path& study, bool shipped) {
  if (const ShippedRecipe* inside = shipped ? find_shipped(name) : nullptr)
    return fs::path("recipes") / (inside->name + ".toml");
  const fs::path beside = fs::absolute(study).parent_path() / name;
  std::error_code ignored;
  for (const fs::path& file : {beside, fs::path(beside.string() + ".toml")})
    if (fs::is_regular_file(file, ignored)) return fs::weakly_canonical(file);
  return find_shipped(name) != nullptr ? fs::path(name) : beside;
}

Result<StudyRow> study_row(const StudyTable& table, const PublishedStudy& study, Names columns, Names references,
                        bool shipped) {
  CHECK_OK(table.check_names(
      {"name", "recipe", "why_not", "instead", "figures", "columns", "references", "with"}));
  StudyRow row;
  TRY(row.name, table.text("name", true));
  TRY(row.why_not, table.text("why_not"));
  TRY(row.instead, table.text("instead"));
  TRY(row.with, table.keys("with"));
  if (table.has("recipe") == table.has("why_not"))
    return table.error(fmt::format("row '{}' needs either 'recipe' or 'why_not'", row.name),
                       "name the recipe that replays it, or say why there is none");
  TRY(const std::string recipe, table.text("recipe"));
  if (!recipe.empty()) row.recipe = recipe_of_row(recipe, study.file, shipped);
  if (table.has("columns")) {
    TRY(columns, table.texts("columns"));
  }
  row.references = std::move(references);
  if (table.has("references")) {
    TRY(row.references, table.texts("references"));
  }
  if (columns.size() < 2 || row.references.empty())
    return table.error(fmt::format("row '{}' compares nothing", row.name),
                       "name at least two contenders in 'columns', and one of them in 'references'");
  for (const std::string& reference : row.references) {
    if (std::ranges::find(columns, reference) == columns.end())
      return table.error(fmt::format("row '{}': the reference '{}' is no column", row.name, reference),
                         suggest(reference, columns));
  }
  std::vector<double> figures(columns.size(), std::numeric_limits<double>::quiet_NaN());
  if (table.has("figures")) {
    TRY(figures, table.figures("figures"));
  }
  if (figures.size() != columns.size())
    return table.error_at("figures", fmt::format("{} figures for {} columns", figures.size(), columns.size()),
                          "one figure for each column; nan where the table has none");
  for (size_t i = 0; i < columns.size(); ++i) row.figures.push_back({columns[i], figures[i]});
  return row;
}

Result<Confound> confound_of(const StudyTable& table) {
  CHECK_OK(table.check_names({"name", "what", "settings", "why_not"}));
  Confound confound;
  TRY(confound.name, table.text("name", true));
  TRY(confound.what, table.text("what", true));
  TRY(confound.settings, table.texts("settings"));
  TRY(confound.why_not, table.text("why_not"));
  if (confound.settings.empty() == confound.why_not.empty())
    return table.error(fmt::format("confound '{}' needs either 'settings' or 'why_not'", confound.name),
                       "name the settings of contenders that switch it, or say why nothing does");
  return confound;
}

}  // namespace

Result<PublishedStudy> parse_study(std::string_view text, const fs::path& file, bool shipped) {
  TRY(const toml::table root, parse_toml(text, file, "docs/reproduce.md"));
  const StudyTable table(root, file.string(), "a study");
  CHECK_OK(table.check_names({"title", "source", "machine", "unit", "gpu", "compared", "columns", "references",
                              "minutes", "every", "row", "confound"}));
  PublishedStudy study{.name = file.stem().string(), .file = file};
  TRY(study.title, table.text("title", true));
  TRY(study.source, table.text("source", true));
  TRY(study.machine, table.text("machine"));
  TRY(study.unit, table.text("unit", true));
  TRY(study.gpu, table.flag("gpu"));
  TRY(study.compared, table.texts("compared"));
  TRY(study.minutes, table.minutes());
  TRY(study.every, table.keys("every"));
  TRY(const Names columns, table.texts("columns"));
  TRY(const Names references, table.texts("references"));
  TRY(const std::vector<StudyTable> rows, table.tables("row", "a row"));
  TRY(const std::vector<StudyTable> confounds, table.tables("confound", "a confound"));
  if (rows.empty()) return table.error("a study lacks rows", "write [[row]] for each row of its table");
  std::set<std::string> names;
  for (const StudyTable& each : rows) {
    TRY(StudyRow row, study_row(each, study, columns, references, shipped));
    if (!names.insert(row.name).second)
      return each.error_at("name", fmt::format("two rows have the name '{}'", row.name), "names are unique");
    study.rows.push_back(std::move(row));
  }
  for (const StudyTable& each : confounds) {
    TRY(Confound confound, confound_of(each));
    study.confounds.push_back(std::move(confound));
  }
  return study;
}

std::vector<StudyText> shipped_studies() {
  std::vector<StudyText> all;
  for (const embedded::File& file : embedded::recipes()) {
    const fs::path path = file.path;
    if (path.parent_path() == "published" && path.extension() == ".toml")
      all.push_back({fs::path("recipes") / path, std::string(file.text), true});
  }
  std::ranges::sort(all, {}, &StudyText::file);
  return all;
}

Result<StudyText> find_study(const fs::path& name) {
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored)) {
    TRY(std::string text, read_file(name));
    return StudyText{name, std::move(text), false};
  }
  Names known;
  for (StudyText& one : shipped_studies()) {
    known.push_back(one.file.stem().string());
    if (name == known.back() || name == known.back() + ".toml" || name == one.file) return std::move(one);
  }
  return Error{.message = fmt::format("no study '{}' is inside the program, and no such file", name.string()),
               .remedy = suggest(name.stem().string(), known) + "; `bakeoff reproduce` lists them"};
}

}  // namespace bakeoff::recipe
