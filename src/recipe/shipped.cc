#include "recipe/shipped.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/embedded.h"
#include "base/nearest.h"
#include "base/texts.h"

namespace bakeoff::embedded {
const std::vector<File>& recipes();
}

namespace bakeoff::recipe {
namespace {

namespace fs = std::filesystem;

// "# One line\n# and more. A second sentence." is "One line and more."
std::string first_sentence(std::string_view text) {
  std::string all;
  while (text.starts_with("#")) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(1, end - 1);
    if (line.starts_with("  ")) break;  // a command
    all += (all.empty() ? "" : " ") + std::string(trimmed(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  for (size_t at = 0; (at = all.find(' ', at)) != std::string::npos; ++at)
    if (at > 0 && (all[at - 1] == '.' || all[at - 1] == '?')) return all.substr(0, at);
  return all;
}

std::string group_of(std::string_view text) {
  constexpr std::string_view kKey = "\n# Group: ";
  const size_t at = text.find(kKey);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = text.substr(at + kKey.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

std::vector<ShippedRecipe> read_shipped() {
  std::vector<ShippedRecipe> all;
  for (const embedded::File& file : embedded::recipes()) {
    const fs::path path = file.path;
    if (path.extension() != ".toml" || path.has_parent_path()) continue;  // in a folder: a suite
    all.push_back({path.stem().string(), first_sentence(file.text), group_of(file.text), file.text});
  }
  std::ranges::sort(all, {}, &ShippedRecipe::name);
  return all;
}

// "did you mean 'x'? " of the recipe with the nearest name; empty if no name is near.
std::string nearest_recipe(const fs::path& name) {
  std::vector<std::string> names;
  for (const ShippedRecipe& one : shipped_recipes()) names.push_back(one.name);
  const std::string near = nearest(name.stem().string(), names);
  return near.empty() ? "" : fmt::format("did you mean '{}'? ", near);
}

Error no_recipe(const fs::path& name) {
  return {.message = fmt::format(
              "cannot open '{}': there is no such file, and no recipe of this name inside the program",
              name.string()),
          .remedy = nearest_recipe(name) +
                    "`bakeoff recipes` lists those inside, `bakeoff init` writes one to edit"};
}

}  // namespace

const std::vector<ShippedRecipe>& shipped_recipes() {
  static const std::vector<ShippedRecipe> all = read_shipped();
  return all;
}

const ShippedRecipe* find_shipped(const fs::path& name) {
  const fs::path plain = name.lexically_normal();
  const fs::path folder = plain.parent_path();
  if (!folder.empty() && folder != "recipes") return nullptr;
  if (!folder.empty() && plain.extension() != ".toml") return nullptr;
  for (const ShippedRecipe& one : shipped_recipes())
    if (plain.filename() == one.name || plain.filename() == one.name + ".toml") return &one;
  return nullptr;
}

Result<const ShippedRecipe*> shipped_named(const fs::path& name) {
  if (const ShippedRecipe* found = find_shipped(name)) return found;
  return Error{.message = fmt::format("no recipe '{}' is inside the program", name.string()),
               .remedy = nearest_recipe(name) + "`bakeoff recipes` lists them"};
}

std::optional<std::string_view> shipped_file(std::string_view path) {
  for (const embedded::File& file : embedded::recipes())
    if (file.path == path) return file.text;
  return std::nullopt;
}

std::vector<std::string> shipped_suite_names() {
  std::vector<std::string> names;
  for (const embedded::File& file : embedded::recipes()) {
    const fs::path path = file.path;
    if (path.parent_path() == "suites" && path.extension() == ".toml") names.push_back(path.stem().string());
  }
  return names;
}

std::optional<ShippedSuite> find_shipped_suite(const fs::path& name) {
  const fs::path plain = name.lexically_normal();
  const fs::path folder = plain.parent_path();
  if (!folder.empty() && folder != "recipes/suites") return std::nullopt;
  const fs::path file = fs::path("suites") / (plain.stem().string() + ".toml");
  if (const auto text = shipped_file(file.string())) return ShippedSuite{fs::path("recipes") / file, *text};
  return std::nullopt;
}

std::vector<std::string> shipped_files_of(std::string_view text) {
  std::vector<std::string> named;
  for (const embedded::File& file : embedded::recipes())
    if (!file.path.ends_with(".toml") &&
        text.find(fmt::format("\"{}\"", file.path)) != std::string_view::npos)
      named.emplace_back(file.path);
  return named;
}

Result<FoundRecipe> find_recipe(const fs::path& name) {
  std::error_code code;
  if (fs::exists(name, code) && !fs::is_directory(name, code)) return FoundRecipe{.file = name};
  if (fs::path file = name.string() + ".toml";
      !name.empty() && name.extension() != ".toml" && fs::is_regular_file(file, code))
    return FoundRecipe{.file = file};
  if (const ShippedRecipe* shipped = find_shipped(name))
    return FoundRecipe{.file = fs::path("recipes") / (shipped->name + ".toml"), .shipped = shipped};
  if (fs::is_directory(name, code))
    return Error{.message = fmt::format("'{}' is a folder, not a recipe", name.string()),
                 .remedy = "name a recipe (TOML) in it, or one of `bakeoff recipes`"};
  return no_recipe(name);
}

}  // namespace bakeoff::recipe
