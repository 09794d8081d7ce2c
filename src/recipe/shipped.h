#pragma once

// The recipes inside the program: the files of recipes/, with what they name.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bakeoff::recipe {

struct ShippedRecipe {
  std::string name = {};   // "mnist_cnn"
  std::string doc = {};    // the first sentence of its first comment
  std::string group = {};  // what it belongs to: "LoRA" of its line "# Group: LoRA"
  std::string_view text = {};
};

// The groups, in the order that people read them.
inline constexpr std::string_view kRecipeGroups[] = {
    "First steps",
    "The CNN of the MNIST studies",
    "Study: one small CNN on a GPU of a desktop, in many settings",
    "Study: two small networks of an article, 4 times apart",
    "Networks of papers",
    "Networks of published studies",
    "LoRA",
};
// By name.
const std::vector<ShippedRecipe>& shipped_recipes();
// "mnist_cnn", "mnist_cnn.toml" or "recipes/mnist_cnn.toml"; null if unknown.
const ShippedRecipe* find_shipped(const std::filesystem::path& name);
// The same; its error has the nearest name.
Result<const ShippedRecipe*> shipped_named(const std::filesystem::path& name);
// A file that recipes name, by its path below recipes/: "digits_cnn.ir".
std::optional<std::string_view> shipped_file(std::string_view path);
// A suite inside the program: "quick", "quick.toml" or "recipes/suites/quick.toml"; nullopt if unknown.
struct ShippedSuite {
  std::filesystem::path file = {};  // "recipes/suites/quick.toml"
  std::string_view text = {};
};
std::vector<std::string> shipped_suite_names();  // "quick", ...
std::optional<ShippedSuite> find_shipped_suite(const std::filesystem::path& name);
// The files that a text of a recipe names and the program holds.
std::vector<std::string> shipped_files_of(std::string_view text);

// Where a name leads. Error: it leads nowhere; it has the nearest name.
struct FoundRecipe {
  std::filesystem::path file = {};         // on disk; of a shipped one "recipes/mnist_cnn.toml"
  const ShippedRecipe* shipped = nullptr;  // null: on disk
};
Result<FoundRecipe> find_recipe(const std::filesystem::path& name);

}  // namespace bakeoff::recipe
