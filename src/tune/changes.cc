#include "tune/changes.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "emit/all/frameworks.h"
#include "recipe/schema.h"
#include "sample/machine_limits.h"
#include "worker/grants.h"

namespace bakeoff::tune {

const emit::Framework& framework_of(const recipe::Contender& contender) {
  return *emit::find_framework(contender.framework);
}

std::string value_of(const recipe::Contender& c, const std::string& setting) {
  const auto& stated = c.controls.contains(setting) ? c.controls : c.settings;
  const auto found = stated.find(setting);
  return found == stated.end() ? "" : found->second;
}

std::string words(const Change& change) { return change.setting + "=" + change.value; }

std::vector<Change> changes(const recipe::Contender& base, ir::Scenario scenario, const Machine& machine) {
  std::vector<Change> all;
  const auto add = [&](const std::string& setting, const std::string& value, bool control) {
    if (value_of(base, setting) != value) all.push_back({setting, value, control});
  };
  for (const emit::Setting& setting : framework_of(base).settings) {
    if (!emit::concerns(setting, scenario)) continue;
    for (const std::string& value : setting.tuned) add(setting.name, value, false);
    if (machine.gpu)
      for (const std::string& value : setting.tuned_on_gpus) add(setting.name, value, false);
  }
  for (const std::string& allocator : machine.allocators) add("allocator", allocator, true);
  std::set<int64_t> threads;
  for (int64_t n = machine.processors / 2; n >= 1; n /= 2)
    if (threads.size() < 2) threads.insert(n);
  for (const int64_t n : threads)
    if (n != machine.processors) add("threads", std::to_string(n), true);
  add("pin", "none", true);
  return all;
}

recipe::Contender with(const recipe::Contender& base, ir::Scenario scenario, const std::vector<Change>& all) {
  auto settings = base.settings, controls = base.controls;
  for (const Change& change : all) (change.control ? controls : settings)[change.setting] = change.value;
  return recipe::emitted_contender(scenario, framework_of(base), settings, controls);
}

recipe::Recipe with_half_precision(recipe::Recipe recipe) {
  const ir::Scenario scenario = recipe.training.scenario;
  const Change half{.setting = "precision", .value = "bfloat16"};
  const std::vector<recipe::Contender> as_stated = recipe.contenders;
  for (const recipe::Contender& c : as_stated) {
    const auto& settings = framework_of(c).settings;
    const bool can = std::ranges::any_of(settings, [&](const emit::Setting& s) {
      return s.name == half.setting && emit::concerns(s, scenario);
    });
    if (!can || !c.script.empty()) continue;
    recipe::Contender added = with(c, scenario, {half});
    if (std::ranges::count(recipe.contenders, added.id, &recipe::Contender::id) == 0)
      recipe.contenders.push_back(std::move(added));
  }
  return recipe;
}

Machine this_machine() {
  Machine machine;
  machine.processors = static_cast<int64_t>(sample::allowed_cpus().size());
  machine.gpu = std::filesystem::exists("/dev/nvidia0");
  for (const emit::Setting& setting : recipe::common_settings()) {
    if (setting.name != "allocator") continue;
    for (const std::string& name : setting.values)
      if (name == "tuned" || (name != "default" && allocator_library(name)))
        machine.allocators.push_back(name);
  }
  return machine;
}

}  // namespace bakeoff::tune
