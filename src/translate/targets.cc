#include "translate/targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/nearest.h"
#include "emit/all/frameworks.h"
#include "emit/code_writer.h"

namespace bakeoff {
namespace {

// "keras", "keras:jax"
std::string name_of(const emit::Framework& framework, const emit::Settings& variant) {
  std::string name = framework.name;
  for (const auto& [setting, value] : variant) name += ":" + value;
  return name;
}

// Folders for those that have an environment alone.
bool has_folders(const emit::Framework& framework) {
  return !framework.environment(emit::defaults_of(framework)).empty();
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const emit::Framework* framework : emit::frameworks()) {
    if (!has_folders(*framework)) continue;
    names.push_back(framework->name);
    for (const emit::Settings& variant : emit::named_variants(*framework)) {
      if (!variant.empty()) names.push_back(name_of(*framework, variant));
    }
  }
  return names;
}

emit::Settings with(const emit::Framework& framework, const emit::Settings& variant) {
  emit::Settings settings = emit::defaults_of(framework);
  for (const auto& [setting, value] : variant) settings[setting] = value;
  return settings;
}

bool installed(const emit::Framework& framework, const emit::Settings& settings,
               const Interpreters& interpreters) {
  const auto found = interpreters.find(framework.environment(settings));
  return found != interpreters.end() && found->second.why_not.empty();
}

Result<TranslationTarget> target_of(const std::string& name, const Interpreters& interpreters) {
  for (const emit::Framework* framework : emit::frameworks()) {
    if (!has_folders(*framework)) continue;
    const std::vector<emit::Settings> variants = emit::named_variants(*framework);
    for (const emit::Settings& variant : variants) {
      if (name == name_of(*framework, variant))
        return TranslationTarget{name, framework, with(*framework, variant)};
    }
    if (name != framework->name) continue;
    const auto ready = [&](const emit::Settings& variant) {
      return installed(*framework, with(*framework, variant), interpreters);
    };
    const auto found = std::find_if(variants.begin(), variants.end(), ready);
    return TranslationTarget{name, framework,
                             with(*framework, found == variants.end() ? variants.front() : *found)};
  }
  return Error{.message = fmt::format("--to '{}' is no framework", name),
               .remedy = suggest(name, known_names())};
}

}  // namespace

std::string TranslationTarget::folder() const { return emit::identifier(name); }

Result<std::vector<TranslationTarget>> translation_targets(const std::string& text,
                                                           const Interpreters& interpreters) {
  std::vector<TranslationTarget> targets;
  std::set<std::string> seen;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    TRY(TranslationTarget target, target_of(text.substr(begin, end - begin), interpreters));
    if (!seen.insert(target.name).second)
      return Error{.message = fmt::format("--to names '{}' twice", target.name), .remedy = "name it once"};
    targets.push_back(std::move(target));
    begin = end + 1;
  }
  return targets;
}

}  // namespace bakeoff
