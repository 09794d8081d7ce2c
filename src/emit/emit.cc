#include "emit/emit.h"

#include <algorithm>

#include "ir/op_table.h"

namespace bakeoff::emit {

std::string setting_or(const Settings& settings, const std::string& name, const std::string& otherwise) {
  const auto found = settings.find(name);
  return found == settings.end() ? otherwise : found->second;
}

std::string precision_group(const Settings& settings) {
  const std::string precision = setting_or(settings, "precision", kFullPrecision);
  return setting_or(settings, "tf32", "false") == "true" ? precision + "+tf32" : precision;
}

Settings float32_twin(Settings settings) {
  for (const auto& [name, value] :
       Settings{{"precision", kFullPrecision}, {"tf32", "false"}, {"scaler", "false"}}) {
    if (settings.contains(name)) settings[name] = value;
  }
  return settings;
}

bool can(const Framework& framework, ir::Scenario scenario) {
  return std::find(framework.scenarios.begin(), framework.scenarios.end(), scenario) !=
         framework.scenarios.end();
}

Status check_supported(const Framework& framework, const ir::Workload& workload) {
  for (const ir::Node& node : workload.nodes) {
    if (!framework.supports(node.op)) {
      return Error{.message = framework.title + " has no emitter for op '" + ir::info(node.op).name +
                              "' (value '" + node.output + "' of workload '" + workload.name + "')"};
    }
  }
  return Done{};
}

}  // namespace bakeoff::emit
