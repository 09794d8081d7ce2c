#include "cli/script_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "emit/all/frameworks.h"
#include "plan/plan.h"

namespace bakeoff::cli {

Result<recipe::Contender> contender_of(const std::filesystem::path& script, const std::string& framework) {
  const std::string text = fmt::format(
      "workload = \"mlp_small\"\ncontenders = [{{ script = {}, framework = \"{}\" }}]\n[optimizer]\nkind = "
      "\"sgd\"\nlr = 0.1\n",
      nlohmann::json(std::filesystem::absolute(script).string()).dump(), framework);
  TRY(const recipe::Recipe made, recipe::parse(text, script));
  return made.contenders[0];
}

Result<Environment> environment_of(const recipe::Contender& contender, const std::filesystem::path& config) {
  TRY(const auto loaded, load_config(config, bakeoff_home(), environment_names()));
  const EnvironmentStore store{.home = bakeoff_home(), .config = loaded};
  const std::string name = emit::find_framework(contender.framework)->environment(contender.settings);
  const auto found = std::ranges::find(store.requirements, name, &Requirements::name);
  return inspect_environment(store, *found);
}

}  // namespace bakeoff::cli
