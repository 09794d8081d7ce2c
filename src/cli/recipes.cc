// `bakeoff recipes` and `bakeoff init`: the recipes inside the program.

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/embedded.h"
#include "base/files.h"
#include "base/home.h"
#include "cli/command.h"
#include "cli/console.h"
#include "data/image_sets.h"
#include "recipe/recipe.h"
#include "recipe/shipped.h"
#include "table/text.h"

namespace bakeoff::embedded {
const std::vector<File>& first_recipe();
}

namespace bakeoff::cli {
namespace {

struct InitOptions {
  std::string name = {};  // of a recipe inside the program; empty: a first one, to edit
  bool force = false;     // replace what exists
};

constexpr const char* kFirstRecipe = "race";  // what `bakeoff init` calls it

// The data that have to be fetched before the recipe can be run; empty: none.
std::string wanting(const recipe::Recipe& recipe) {
  for (const ImageSet* set : image_sets())
    if (set->name == recipe.data.kind &&
        (!check_home() || !fs::exists(split_file(bakeoff_home() / "data", *set, "train"))))
      return set->name;
  return "";
}

struct NewFile {
  fs::path path;
  std::string text;
};

Result<std::vector<NewFile>> files_of(const std::string& name) {
  if (name.empty())
    return std::vector<NewFile>{
        {std::string(kFirstRecipe) + ".toml", std::string(embedded::first_recipe().at(0).text)}};
  TRY(const recipe::ShippedRecipe* shipped, recipe::shipped_named(name));
  std::vector<NewFile> files = {{shipped->name + ".toml", std::string(shipped->text)}};
  for (const std::string& named : recipe::shipped_files_of(shipped->text))
    files.push_back({named, std::string(*recipe::shipped_file(named))});
  files[0].text +=
      "\n# All keys: `bakeoff help recipe.md`; one of them: `bakeoff help batch`. One run with another value: "
      "`bakeoff run " +
      files[0].path.string() + " --set race.threads=1`\n";
  return files;
}

int recipes() {
  std::set<std::string> absent;
  size_t longest = 0;
  for (const recipe::ShippedRecipe& one : recipe::shipped_recipes())
    longest = std::max(longest, one.name.size());
  std::vector<recipe::ShippedRecipe> all = recipe::shipped_recipes();
  std::ranges::stable_sort(all, {}, [](const recipe::ShippedRecipe& one) {
    return std::ranges::find(recipe::kRecipeGroups, one.group) - std::begin(recipe::kRecipeGroups);
  });
  std::string group;
  for (const recipe::ShippedRecipe& one : all) {
    if (one.group != group)
      print((group.empty() ? "" : "\n") + table::paragraph(one.group, output_width()) + "\n\n");
    group = one.group;
    const auto read = recipe::parse(one.text, one.name + ".toml", true);
    if (!read) return fail(read.error());
    const std::string data = wanting(*read);
    if (!data.empty()) absent.insert(data);
    print(two_columns(one.name, static_cast<int>(longest) + 2,
                      one.doc + (data.empty() ? "" : fmt::format(" (needs {})", data))));
  }
  std::string below = "`bakeoff run NAME` runs one, `bakeoff init NAME` writes it into this folder.";
  for (const std::string& data : absent)
    below += fmt::format(
        "\n`bakeoff data {}` fetches the data of {}, which are not here yet; so does the first run.", data,
        data);
  print("\n" + table::paragraph(below, output_width()) + "\n");
  return 0;
}

int init(const InitOptions& options) {
  const auto files = files_of(options.name);
  if (!files) return fail(files.error());
  for (const NewFile& file : *files) {
    if (fs::exists(fs::symlink_status(file.path)) && !options.force)
      return fail({.message = fmt::format("'{}' exists already", file.path.string()),
                   .remedy = "move it away, or replace it with --force; nothing was written"});
  }
  for (const NewFile& file : *files) {
    if (const auto written = write_file(file.path, file.text); !written) return fail(written.error());
    print(fmt::format("wrote {}\n", file.path.string()));
  }
  print(fmt::format("next: bakeoff run {}\n", files->front().path.string()));
  return 0;
}

Action add_recipes(CLI::App&) {
  return [](const Invocation&) { return recipes(); };
}

Action add_init(CLI::App& sub) {
  const auto options = std::make_shared<InitOptions>();
  sub.add_option("name", options->name,
                 "one of `bakeoff recipes`; default: a first race with comments, race.toml");
  sub.add_flag("--force", options->force, "replace what exists");
  return [options](const Invocation&) { return init(*options); };
}

}  // namespace

const Command kRecipes = {"recipes", "List the recipes inside this program", "bakeoff recipes", add_recipes,
                          Home::kUnused};
const Command kInit = {"init", "Write a recipe into this folder, to edit", "bakeoff init mnist_cnn", add_init,
                       Home::kUnused};

}  // namespace bakeoff::cli
