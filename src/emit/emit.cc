#include "emit/emit.h"

#include <algorithm>
#include <cstdlib>

#include "ir/op_table.h"

namespace bakeoff::emit {

std::string setting_or(const Settings& settings, const std::string& name, const std::string& otherwise) {
  const auto found = settings.find(name);
  return found == settings.end() ? otherwise : found->second;
}

Settings defaults_of(const Framework& framework) {
  Settings settings;
  for (const Setting& setting : framework.settings) settings[setting.name] = setting.fallback;
  return settings;
}

std::vector<Settings> named_variants(const Framework& framework) {
  std::vector<Settings> all = {{}};
  for (const Setting& setting : framework.settings) {
    if (!setting.always_named) continue;
    std::vector<Settings> crossed;
    for (const Settings& one : all) {
      for (const std::string& value : setting.values) {
        crossed.push_back(one);
        crossed.back()[setting.name] = value;
      }
    }
    all = std::move(crossed);
  }
  return all;
}

bool concerns(const Setting& setting, ir::Scenario scenario) {
  return setting.scenarios.empty() ||
         std::ranges::find(setting.scenarios, scenario) != setting.scenarios.end();
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

int64_t steps_per_call(const Framework& framework, const Settings& settings) {
  int64_t steps = 1;
  for (const Setting& setting : framework.settings) {
    if (!setting.steps_per_call) continue;
    steps = std::max<int64_t>(steps, std::atoll(setting_or(settings, setting.name, "1").c_str()));
  }
  return steps;
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
