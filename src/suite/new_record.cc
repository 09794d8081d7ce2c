#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "base/nearest.h"
#include "proc/interrupt.h"
#include "recipe/shipped.h"
#include "recipe/suite_file.h"
#include "suite/suite_run.h"

namespace bakeoff::suite {
namespace {

namespace fs = std::filesystem;

// A folder where a recipe or a suite file is expected.
Error folder_as_recipe(const fs::path& folder) {
  std::error_code ignored;
  const std::string name = folder.string();
  if (fs::exists(folder / "suite.json", ignored))
    return {.message = fmt::format("'{}' is the folder of a suite, not a recipe", name),
            .remedy = fmt::format(
                "`bakeoff suite --report {0}` shows it, `bakeoff suite --resume {0}` continues it", name)};
  if (fs::exists(folder / "run.json", ignored))
    return {.message = fmt::format("'{}' is the folder of a run, not a recipe", name),
            .remedy = fmt::format("`bakeoff report {}` shows it", name)};
  return {.message = fmt::format("'{}' is a folder, not a recipe", name),
          .remedy = "name recipes, or a suite: `bakeoff suite quick` is inside the program"};
}

// The suite that the command line names: a suite file, or recipes.
Result<recipe::SuiteFile> named_suite(const std::vector<fs::path>& what) {
  recipe::SuiteFile found{.name = kNamedByRecipes};
  for (const fs::path& file : what) {
    if (std::error_code ignored; fs::is_directory(file, ignored)) return folder_as_recipe(file);
    const auto text = read_file(file);
    if (text && recipe::is_suite(*text)) {
      if (what.size() == 1) return recipe::parse_suite(*text, file);
      return Error{
          .message = fmt::format("'{}' is a suite, and {} files are named", file.string(), what.size()),
          .remedy = "name one suite alone, or recipes alone"};
    }
    if (const auto shipped = recipe::find_shipped_suite(file); what.size() == 1 && !text && shipped)
      return recipe::parse_suite(shipped->text, shipped->file, true);
    if (what.size() == 1 && !text && !recipe::find_shipped(file)) {
      std::vector<std::string> known = recipe::shipped_suite_names();
      for (const recipe::ShippedRecipe& one : recipe::shipped_recipes()) known.push_back(one.name);
      const std::string near = nearest(file.string(), known);
      return Error{.message = text.error().message,
                   .remedy = (near.empty() ? "" : fmt::format("did you mean '{}'? ", near)) +
                             "Name recipes, or a suite: `bakeoff suite quick` is inside the program"};
    }
    found.recipes.push_back(file);
  }
  return found;
}

// Names of rows are unique.
std::string row_name(const std::string& name, const fs::path& file, std::set<std::string>& taken) {
  std::string unique = taken.contains(name) ? fmt::format("{} ({})", name, file.filename().string()) : name;
  for (int i = 2; taken.contains(unique); ++i) unique = fmt::format("{} ({})", name, i);
  taken.insert(unique);
  return unique;
}

// What is to be raced. It is an error if no recipe can be read.
Result<Record> record_of(const Request& request, std::vector<std::string>& contenders) {
  TRY(const recipe::SuiteFile file, named_suite(request.what));
  Record record{.name = file.name,
                .file = file.file.string(),
                .started = utc_now(),
                .minutes = request.minutes > 0 ? request.minutes : file.minutes,
                .baseline = request.baseline.empty() ? file.baseline : request.baseline,
                .every = file.every};
  CHECK_OK(check_count(file.recipes.size(), record.file));
  std::set<std::string> taken;
  std::optional<Error> first;
  for (const fs::path& path : file.recipes) {
    if (proc::interrupted()) return Error{.message = "interrupted"};
    const auto recipe = add_entry(record, path);
    std::string& name = record.entries.back().name;
    name = row_name(name, path, taken);
    if (recipe) {
      for (const recipe::Contender& contender : recipe->contenders) contenders.push_back(contender.id);
    } else if (!first) {
      first = recipe.error();
    }
  }
  if (contenders.empty() && first) return *first;
  return record;
}

}  // namespace

Result<recipe::Recipe> add_entry(Record& record, const fs::path& path, const std::string& name,
                                 const std::string& with) {
  auto recipe = recipe_of_suite(path, record.every, with);
  const fs::path found = recipe ? recipe->file : path;
  Entry entry{.name = !name.empty() ? name
                      : recipe      ? recipe->name
                                    : path.stem().string(),
              .recipe = recipe && recipe->shipped ? found.string()
                                                  : fs::weakly_canonical(fs::absolute(found)).string(),
              .with = with};
  entry.folder = folder_name(record.entries.size(), entry.name);
  if (!recipe) {
    entry.state = EntryState::kFailed;
    entry.failure = recipe.error().line();
  }
  record.entries.push_back(std::move(entry));
  return recipe;
}

Status check_baseline(const std::string& baseline, std::vector<std::string> contenders) {
  std::sort(contenders.begin(), contenders.end());
  contenders.erase(std::unique(contenders.begin(), contenders.end()), contenders.end());
  if (baseline.empty() || std::find(contenders.begin(), contenders.end(), baseline) != contenders.end())
    return Done{};
  return Error{
      .message = fmt::format("the baseline '{}' is no contender of any recipe of the suite", baseline),
      .remedy = suggest(baseline, contenders)};
}

Result<Record> new_record(const Request& request) {
  std::vector<std::string> contenders;
  TRY(Record record, record_of(request, contenders));
  CHECK_OK(check_baseline(record.baseline, contenders));
  return record;
}

}  // namespace bakeoff::suite
