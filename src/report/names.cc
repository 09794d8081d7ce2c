#include "report/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "report/svg.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

void add_settings_of(const emit::Framework& framework, const Contender& contender, ShownName& shown) {
  std::set<std::string> known;
  for (const emit::Setting& setting : framework.settings) {
    known.insert(setting.name);
    const auto at = contender.settings.find(setting.name);
    if (at == contender.settings.end()) continue;
    const emit::Framework* backend = setting.always_named ? emit::find_framework(at->second) : nullptr;
    if (backend)
      shown.name += " on " + backend->title;
    else if (at->second != setting.fallback)
      shown.settings.emplace_back(one_line(setting.name), one_line(at->second));
  }
  for (const auto& [other, value] : contender.settings) {
    if (!known.contains(other)) shown.settings.emplace_back(one_line(other), one_line(value));
  }
}

}  // namespace

std::string ShownName::settings_text() const {
  std::vector<std::string> parts;
  for (const auto& [setting, value] : settings)
    parts.push_back(value == "true" ? setting : fmt::format("{} = {}", setting, value));
  return join(parts, ", ");
}

std::string ShownName::whole() const {
  const std::string text = settings_text();
  return text.empty() ? name : name + " · " + text;
}

ShownName shown_name(const Contender& contender) {
  const emit::Framework* framework = emit::find_framework(contender.framework);
  if (!framework || !contender.own_script.empty()) return {one_line(contender.id), {}};
  ShownName shown{framework->title, {}};
  add_settings_of(*framework, contender, shown);
  for (const auto& [control, value] : contender.stated)
    shown.settings.emplace_back(one_line(control), one_line(value));
  return shown;
}

std::string label(const Contender& contender) { return shown_name(contender).whole(); }

std::string spoken(const Contender& contender) {
  const ShownName shown = shown_name(contender);
  const std::string settings = shown.settings_text();
  return settings.empty() ? shown.name : fmt::format("{} ({})", shown.name, settings);
}

std::string breakable(std::string_view name) {
  std::string markup;
  while (!name.empty()) {
    const size_t end = std::min(name.find_first_of("[,"), name.size() - 1) + 1;
    markup += (markup.empty() ? "" : "<wbr>") + escape_markup(name.substr(0, end));
    name.remove_prefix(end);
  }
  return markup;
}

std::vector<std::string> framework_versions(const std::vector<const Texts*>& versions) {
  std::vector<std::string> out;
  std::set<std::string> seen;  // one package may be that of several frameworks
  for (const emit::Framework* framework : emit::frameworks()) {
    const std::string& package = framework->packages.framework;
    const std::string& name = package.empty() ? framework->module : package;
    if (!seen.insert(name).second) continue;
    std::set<std::string> found;
    for (const Texts* texts : versions) {
      const auto at = texts->find(name);
      // A local build's mark ("2.13.0+cpu") says nothing here.
      if (at != texts->end()) found.insert(one_line(at->second.substr(0, at->second.find('+'))));
    }
    for (const std::string& version : found) out.push_back(framework->title + ' ' + version);
  }
  return out;
}

}  // namespace bakeoff::report
