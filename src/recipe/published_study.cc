#include "recipe/published_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/embedded.h"
#include "base/files.h"
#include "base/nearest.h"
#include "recipe/shipped.h"
#include "recipe/toml_fields.h"

namespace bakeoff::embedded {
const std::vector<File>& recipes();
}

namespace bakeoff::recipe {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

constexpr const char* kKeys = "it holds keys of recipes (docs/recipe.md), which replace those of the recipe";

// Numbers above 0, or nan.
Result<std::vector<double>> figures_of(const TomlFields& row, size_t columns) {
  std::vector<double> found;
  const toml::node* node = row.get("figures");
  if (node == nullptr) return std::vector<double>(columns, std::numeric_limits<double>::quiet_NaN());
  bool all = node->is_array();
  if (all) {
    for (const toml::node& each : *node->as_array()) {
      found.push_back(each.is_number() ? real_in(each) : 0);
      all = all && (std::isnan(found.back()) || (found.back() > 0 && std::isfinite(found.back())));
    }
  }
  constexpr const char* kRemedy = "one figure for each column; nan where the table has none";
  if (!all) return row.error(node, "'figures' must be a list of numbers above 0", kRemedy);
  if (found.size() == columns) return found;
  return row.error(node, fmt::format("{} figures for {} columns", found.size(), columns), kRemedy);
}

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

// Exactly one of `key` and why_not.
Status check_either(const TomlFields& fields, const char* key, const char* remedy) {
  if ((fields.get(key) == nullptr) != (fields.get("why_not") == nullptr)) return Done{};
  return fields.error(nullptr, fmt::format("there must be either '{}' or 'why_not'", key), remedy);
}

Result<StudyRow> study_row(const TomlFields& fields, const PublishedStudy& study, Names columns,
                           const Names& references, bool shipped) {
  CHECK_OK(fields.check_names(
      {"name", "recipe", "why_not", "instead", "figures", "columns", "references", "with"}));
  CHECK_OK(check_either(fields, "recipe", "name the recipe that replays the row, or say why there is none"));
  StudyRow row;
  TRY(row.name, fields.text("name"));
  TRY(row.why_not, fields.text("why_not", ""));
  TRY(row.instead, fields.text("instead", ""));
  TRY(row.with, fields.keys("with", kKeys));
  TRY(const std::string recipe, fields.text("recipe", ""));
  if (!recipe.empty()) row.recipe = recipe_of_row(recipe, study.file, shipped);
  TRY(const Names own, fields.texts("columns"));
  if (!own.empty()) columns = own;
  TRY(row.references, fields.texts("references"));
  if (row.references.empty()) row.references = references;
  if (std::set<std::string>(columns.begin(), columns.end()).size() < columns.size())
    return fields.error(fields.get("columns"), "a contender is named twice in 'columns'", "name each once");
  if (columns.size() < 2 || row.references.empty())
    return fields.error(nullptr, "the row compares nothing",
                        "name at least two contenders in 'columns', and one of them in 'references'");
  for (const std::string& reference : row.references) {
    if (std::ranges::find(columns, reference) == columns.end())
      return fields.error(nullptr, fmt::format("the reference '{}' is no column", reference),
                          suggest(reference, columns));
  }
  TRY(const std::vector<double> figures, figures_of(fields, columns.size()));
  for (size_t i = 0; i < columns.size(); ++i) row.figures.push_back({columns[i], figures[i]});
  return row;
}

Result<Confound> confound_of(const TomlFields& fields) {
  CHECK_OK(fields.check_names({"name", "what", "settings", "why_not"}));
  CHECK_OK(check_either(fields, "settings", "name the settings that switch it, or say why nothing does"));
  Confound confound;
  TRY(confound.name, fields.text("name"));
  TRY(confound.what, fields.text("what"));
  TRY(confound.settings, fields.texts("settings"));
  TRY(confound.why_not, fields.text("why_not", ""));
  return confound;
}

}  // namespace

Result<PublishedStudy> parse_study(std::string_view text, const fs::path& file, bool shipped) {
  TRY(const toml::table root, parse_toml(text, file, "docs/reproduce.md"));
  const TomlFields fields(root, file.string(), "a study");
  CHECK_OK(fields.check_names({"title", "source", "gpu", "unit", "compared", "columns", "references",
                               "minutes", "every", "row", "confound"}));
  PublishedStudy study{.name = file.stem().string(), .file = file};
  TRY(study.title, fields.text("title"));
  TRY(study.source, fields.text("source"));
  TRY(study.unit, fields.text("unit"));
  TRY(study.gpu, fields.text("gpu", ""));
  TRY(study.compared, fields.texts("compared"));
  TRY(study.minutes, fields.minutes());
  TRY(study.every, fields.keys("every", kKeys));
  TRY(const Names columns, fields.texts("columns"));
  TRY(const Names references, fields.texts("references"));
  TRY(const std::vector<TomlFields> rows, fields.tables("row", "a row"));
  TRY(const std::vector<TomlFields> confounds, fields.tables("confound", "a confound"));
  if (rows.empty())
    return fields.error(nullptr, "a study lacks rows", "write [[row]] for each row of its table");
  std::set<std::string> names;
  for (const TomlFields& each : rows) {
    TRY(StudyRow row, study_row(each, study, columns, references, shipped));
    if (!names.insert(row.name).second)
      return each.error(each.get("name"), fmt::format("two rows have the name '{}'", row.name),
                        "names are unique");
    study.rows.push_back(std::move(row));
  }
  for (const TomlFields& each : confounds) {
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
