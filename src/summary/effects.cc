#include "summary/effects.h"

#include <algorithm>
#include <tuple>

#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "emit/emit.h"
#include "recipe/contender.h"
#include "records/names.h"
#include "summary/pair_ratios.h"

namespace bakeoff {
namespace {

using Values = std::map<std::string, std::string>;

// All settings of a contender's framework and process, by name.
Values values_of(const Contender& contender) {
  Values all = contender.settings;
  all.insert(contender.controls.begin(), contender.controls.end());
  return all;
}

// The one name whose values differ; empty: none does, or several do.
std::string only_difference(const Values& a, const Values& b) {
  if (a.size() != b.size()) return "";
  std::string found;
  for (auto x = a.begin(), y = b.begin(); x != a.end(); ++x, ++y) {
    if (x->first != y->first) return "";
    if (x->second == y->second) continue;
    if (!found.empty()) return "";
    found = x->first;
  }
  return found;
}

const emit::Setting* setting_of(const Contender& contender, const std::string& name) {
  const emit::Framework* framework = emit::find_framework(contender.framework);
  if (framework == nullptr) return nullptr;
  const auto found = std::find_if(framework->settings.begin(), framework->settings.end(),
                                  [&](const emit::Setting& setting) { return setting.name == name; });
  return found == framework->settings.end() ? nullptr : &*found;
}

// The value that a contender has if its recipe states none.
std::string default_of(const Manifest& manifest, const Contender& contender, const std::string& name) {
  if (const emit::Setting* setting = setting_of(contender, name)) return setting->fallback;
  const auto shared = manifest.controls.find(name);
  return shared == manifest.controls.end() ? "" : shared->second;
}

// The framework, with what always belongs to its name; a script of the user's own by its file.
Contender place_of(const Contender& contender, const std::string& but) {
  if (!contender.own_script.empty()) return {.id = contender.own_script};
  Contender place{.framework = contender.framework};
  std::vector<std::string> parts;
  for (const auto& [name, value] : contender.settings) {
    const emit::Setting* setting = setting_of(contender, name);
    if (name == but || setting == nullptr || !setting->always_named) continue;
    place.settings.emplace(name, value);
    parts.push_back(name + "=" + value);
  }
  place.id = contender.framework + (parts.empty() ? "" : "[" + join(parts, ",") + "]");
  return place;
}

using Ends = std::tuple<std::string, std::string, std::string, std::string>;  // where, setting, two values

struct Found {
  const Contender* before = nullptr;
  const Contender* after = nullptr;
};

// What the two of each pair share that is worth saying: what differs from pair to pair, and what is no default.
void fill_with(const Manifest& manifest, const std::vector<Found>& found, SettingEffect& effect) {
  for (size_t i = 0; i < found.size(); ++i) {
    const Values own = values_of(*found[i].before);
    for (const auto& [name, value] : own) {
      const emit::Setting* setting = setting_of(*found[i].before, name);
      if (name == effect.setting || (setting != nullptr && setting->always_named)) continue;
      const bool varies = std::any_of(found.begin(), found.end(), [&](const Found& other) {
        const Values theirs = values_of(*other.before);
        const auto at = theirs.find(name);
        return at != theirs.end() && at->second != value;
      });
      if (varies || value != default_of(manifest, *found[i].before, name)) effect.pairs[i].with[name] = value;
    }
  }
}

SettingEffect effect_of(const Summary& s, const PairRatios& ratios, const Ends& ends,
                        const std::vector<Found>& found) {
  SettingEffect effect;
  std::tie(effect.where, effect.setting, effect.from, effect.to) = ends;
  effect.place = spoken(place_of(*found.front().before, effect.setting));
  for (const Found& one : found) {
    EffectPair pair{.before = one.before->id, .after = one.after->id};
    pair.ratio = ratios.between(pair.after, pair.before);
    if (pair.ratio) {
      pair.speed = inverse(pair.ratio->ratio);
      pair.verdict = compared(pair.ratio->ratio, s.margin);
    }
    effect.pairs.push_back(std::move(pair));
  }
  fill_with(s.manifest, found, effect);
  return effect;
}

// The ranked contenders in the recipe's order, which is that of the manifest.
std::vector<const Row*> rows_in_order(const Summary& s) {
  std::vector<const Row*> rows;
  for (const Contender& contender : s.manifest.contenders) {
    for (const Row& row : s.ranked) {
      if (row.contender.id == contender.id) rows.push_back(&row);
    }
  }
  return rows;
}

}  // namespace

std::string differing_setting(const Contender& a, const Contender& b) {
  if (a.framework != b.framework || a.own_script != b.own_script) return "";
  return only_difference(values_of(a), values_of(b));
}

std::string value_of(const Contender& contender, const std::string& setting) {
  return values_of(contender).at(setting);
}

std::vector<SettingEffect> effects_of(const Summary& s) {
  if (!s.refusal.empty()) return {};
  const std::vector<const Row*> rows = rows_in_order(s);
  std::vector<Ends> order;
  std::map<Ends, std::vector<Found>> found;
  for (size_t j = 0; j < rows.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      const Contender &a = rows[i]->contender, &b = rows[j]->contender;
      const std::string name = differing_setting(a, b);
      if (name.empty() || rows[i]->group != rows[j]->group) continue;
      const std::string first = value_of(a, name), second = value_of(b, name);
      const Ends ends = {place_of(a, name).id, name, first, second},
                 turned = {place_of(a, name).id, name, second, first};
      const bool turn =
          found.contains(turned) || (!found.contains(ends) && second == default_of(s.manifest, a, name));
      const Ends& key = turn ? turned : ends;
      if (!found.contains(key)) order.push_back(key);
      found[key].push_back(turn ? Found{&b, &a} : Found{&a, &b});
    }
  }
  const PairRatios ratios(s);
  std::vector<SettingEffect> effects;
  for (const Ends& ends : order) effects.push_back(effect_of(s, ratios, ends, found[ends]));
  return effects;
}

}  // namespace bakeoff
