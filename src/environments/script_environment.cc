#include "environments/script_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "base/json_text.h"
#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "recipe/contenders.h"

namespace bakeoff {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostModules = 200;  // of the user's own that are read

// Files of a module, as it is imported in `importer`: beside it, or in the working directory.
std::vector<fs::path> files_of(std::string module, const fs::path& importer) {
  const size_t dots = std::min(module.find_first_not_of('.'), module.size());
  fs::path relative = importer.parent_path();
  for (size_t i = 1; i < dots; ++i) relative = relative.parent_path();
  module.erase(0, dots);
  std::ranges::replace(module, '.', '/');
  std::vector<fs::path> found;
  for (const fs::path& root : {relative, fs::current_path()}) {
    const fs::path place = module.empty() ? root : root / module;
    if (const fs::path file = place.string() + ".py"; fs::is_regular_file(file)) found.push_back(file);
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(place, failed))
      if (entry.path().extension() == ".py") found.push_back(entry.path());
  }
  return found;
}

}  // namespace

const emit::Framework* framework_of_script(const fs::path& script) {
  std::vector<fs::path> files = {fs::absolute(script)};
  for (size_t i = 0; i < files.size() && i < kMostModules; ++i) {
    const auto source = read_file(files[i]);
    if (!source) continue;
    if (const emit::Framework* framework = recipe::framework_of(*source)) return framework;
    std::istringstream lines(*source);
    for (std::string line; std::getline(lines, line);)
      for (const std::string& module : recipe::imported_modules(line))
        for (fs::path& file : files_of(module, files[i]))
          if (std::ranges::find(files, file) == files.end()) files.push_back(std::move(file));
  }
  return nullptr;
}

Result<recipe::Contender> contender_of(const std::filesystem::path& script, const std::string& framework) {
  const std::string text = fmt::format(
      "workload = \"mlp_small\"\ncontenders = [{{ script = {}, framework = \"{}\" }}]\n[optimizer]\nkind = "
      "\"sgd\"\nlr = 0.1\n",
      dump(nlohmann::json(std::filesystem::absolute(script).string())), framework);
  TRY(const recipe::Recipe made, recipe::parse(text, script));
  return made.contenders[0];
}

Result<Environment> environment_of(const recipe::Contender& contender, const std::filesystem::path& config) {
  TRY(const auto loaded, load_config(config, bakeoff_home(), environment_names()));
  const EnvironmentStore store{.home = bakeoff_home(), .config = loaded};
  const auto found = std::ranges::find(store.requirements, contender.environment, &Requirements::name);
  return inspect_environment(store, *found);
}

Result<std::optional<std::filesystem::path>> interpreter_of_script(const std::filesystem::path& script,
                                                                   const std::string& framework,
                                                                   const std::filesystem::path& config) {
  std::string name = framework;
  if (name.empty()) {
    const emit::Framework* imported = framework_of_script(script);
    if (imported == nullptr) return std::optional<std::filesystem::path>();
    name = imported->name;
  }
  if (emit::find_framework(name) == nullptr) {
    std::vector<std::string> names;
    for (const emit::Framework* known : emit::frameworks()) names.emplace_back(known->name);
    return Error{
        .message = fmt::format("there is no framework '{}'", name),
        .remedy = fmt::format("one of {}; or name an interpreter: --python FILE", join(names, ", "))};
  }
  TRY(const auto contender, contender_of(script, name));
  TRY(const auto environment, environment_of(contender, config));
  if (environment.ok()) return std::optional(environment.python);
  return Error{.message = environment.reason,
               .remedy = environment.remedy + ", or name an interpreter: --python FILE"};
}

}  // namespace bakeoff
