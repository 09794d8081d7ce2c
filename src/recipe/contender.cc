#include "recipe/contender.h"

#include <fmt/format.h>

#include <charconv>
#include <set>

#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "emit/code_writer.h"
#include "recipe/schema.h"

namespace bakeoff::recipe {

Result<std::vector<int>> parse_cpus(std::string_view text) {
  constexpr int kMostCpus = 4096;
  std::set<int> cpus;
  const auto bad = [&] { return Error{.message = fmt::format("'{}' is not a list of CPUs", text)}; };
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const char* last = text.data() + end;
    int low = 0, high = 0;
    auto [at, code] = std::from_chars(text.data() + begin, last, low);
    if (code != std::errc()) return bad();
    high = low;
    if (at != last && *at == '-') {
      const auto range_end = std::from_chars(at + 1, last, high);
      at = range_end.ptr;
      code = range_end.ec;
    }
    if (code != std::errc() || at != last || low < 0 || high < low || high >= kMostCpus) return bad();
    for (int cpu = low; cpu <= high; ++cpu) cpus.insert(cpu);
    begin = end + 1;
  }
  return std::vector<int>(cpus.begin(), cpus.end());
}

std::string contender_id(const std::string& framework, const std::map<std::string, std::string>& settings,
                         const std::map<std::string, std::string>& controls) {
  const emit::Framework* info = emit::find_framework(framework);
  std::vector<std::string> parts;
  for (const emit::Setting& setting : info->settings) {
    const std::string& value = settings.at(setting.name);
    if (value == setting.fallback && !setting.always_named) continue;
    parts.push_back(value == "true" ? setting.name : setting.name + "=" + value);
  }
  for (const emit::Setting& setting : common_settings()) {
    if (const auto stated = controls.find(setting.name); stated != controls.end())
      parts.push_back(setting.name + "=" + stated->second);
  }
  return parts.empty() ? framework : fmt::format("{}[{}]", framework, join(parts, ","));
}

namespace {

std::string script_file(ir::Scenario scenario, const emit::Framework& framework,
                        const std::map<std::string, std::string>& settings,
                        const std::map<std::string, std::string>& controls) {
  std::string name = ir::name(scenario) + "_" + framework.name;
  for (const emit::Setting& setting : framework.settings) {
    const std::string& value = settings.at(setting.name);
    if (value == setting.fallback && !setting.always_named) continue;
    name += "_" + (setting.always_named ? value
                   : value == "true"    ? setting.name
                                        : setting.name + "_" + value);
  }
  for (const auto& [control, value] : controls) name += "_" + control + "_" + value;
  return emit::identifier(name) + framework.extension;
}

}  // namespace

Contender emitted_contender(ir::Scenario scenario, const emit::Framework& framework,
                            const std::map<std::string, std::string>& settings,
                            const std::map<std::string, std::string>& controls) {
  return {.framework = framework.name,
          .settings = settings,
          .controls = controls,
          .environment = framework.environment(settings),
          .id = contender_id(framework.name, settings, controls),
          .file = script_file(scenario, framework, settings, controls)};
}

}  // namespace bakeoff::recipe
