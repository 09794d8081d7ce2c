// The schema as people and editors read it.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "recipe/schema.h"

namespace bakeoff::recipe {
namespace {

nlohmann::ordered_json schema_of(const Key& key) {
  nlohmann::ordered_json entry;
  switch (key.kind) {
    case Kind::kWord:
    case Kind::kPath:
      entry["type"] = "string";
      break;
    case Kind::kInt:
      entry["type"] = "integer";
      break;
    case Kind::kReal:
      entry["type"] = "number";
      break;
    case Kind::kFlag:
      entry["type"] = "boolean";
      break;
    case Kind::kTable: {
      const nlohmann::ordered_json text = {{"type", "string"}};
      entry["type"] = "object";
      entry["additionalProperties"] = {
          {"anyOf", {text, {{"type", "array"}, {"items", text}, {"minItems", 1}}}}};
      break;
    }
  }
  if (!key.words.empty()) entry["enum"] = key.words;
  if (std::isfinite(key.least)) entry[key.least_excluded ? "exclusiveMinimum" : "minimum"] = key.least;
  if (std::isfinite(key.most)) entry["maximum"] = key.most;
  if (key.list) entry = {{"anyOf", {entry, {{"type", "array"}, {"items", entry}, {"minItems", 1}}}}};
  entry["description"] = key.doc;
  return entry;
}

nlohmann::ordered_json schema_of(const emit::Setting& setting) {
  nlohmann::ordered_json one;
  if (setting.name == "pin") {
    one = {{"type", "string"}};
  } else if (setting.values.empty()) {
    one = {{"type", "integer"}, {"minimum", setting.least}};
  } else if (setting.values == std::vector<std::string>{"false", "true"} ||
             setting.values == std::vector<std::string>{"true", "false"}) {
    one = {{"type", "boolean"}};
  } else {
    // "true" and "false" may occur together with words; TOML writes them without quotes.
    one["enum"] = nlohmann::ordered_json::array();
    for (const std::string& value : setting.values) {
      if (value == "true" || value == "false")
        one["enum"].push_back(value == "true");
      else
        one["enum"].push_back(value);
    }
  }
  return {{"description", setting.doc}, {"anyOf", {one, {{"type", "array"}, {"items", one}}}}};
}

nlohmann::ordered_json contender_schema() {
  nlohmann::ordered_json alternatives = nlohmann::ordered_json::array();
  for (const emit::Framework* framework : emit::frameworks()) {
    nlohmann::ordered_json properties;
    properties["framework"] = {{"const", framework->name}};
    properties["script"] = {{"type", "string"},
                            {"description", "your own script: bakeoff check says what it lacks"}};
    for (const emit::Setting& setting : framework->settings) properties[setting.name] = schema_of(setting);
    for (const emit::Setting& setting : common_settings()) properties[setting.name] = schema_of(setting);
    alternatives.push_back({{"type", "object"},
                            {"title", framework->title},
                            {"properties", properties},
                            {"required", {"framework"}},
                            {"additionalProperties", false}});
  }
  alternatives.push_back({{"type", "object"},
                          {"title", "a script whose framework is read from its imports"},
                          {"properties", {{"script", {{"type", "string"}}}}},
                          {"required", {"script"}}});
  return {{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", alternatives}}}};
}

std::string limits(const Key& key) {
  if (!key.words.empty()) return fmt::format("`{}`", join(key.words, "`, `"));
  std::string text = key.kind == Kind::kInt     ? "integer"
                     : key.kind == Kind::kReal  ? "number"
                     : key.kind == Kind::kFlag  ? "true or false"
                     : key.kind == Kind::kTable ? "table of texts or lists of texts"
                                                : "text";
  if (key.list) text += std::isfinite(key.least) ? " or a list," : " or a list";
  if (std::isfinite(key.least)) text += fmt::format(" {} {}", key.least_excluded ? ">" : ">=", key.least);
  if (std::isfinite(key.most)) text += fmt::format(", <= {}", key.most);
  return text;
}

std::string settings_table(const std::vector<emit::Setting>& settings) {
  if (settings.empty()) return "";
  std::string text = "\n| setting | values | default | meaning |\n|---|---|---|---|\n";
  for (const emit::Setting& setting : settings) {
    const std::string values = setting.name == "pin" ? "text"
                               : setting.values.empty() && setting.least != 1
                                   ? fmt::format("integer >= {}", setting.least)
                               : setting.values.empty() ? "positive integer"
                                                        : fmt::format("`{}`", join(setting.values, "`, `"));
    std::vector<std::string> scenarios;
    for (const ir::Scenario scenario : setting.scenarios) scenarios.push_back(ir::name(scenario));
    text +=
        fmt::format("| `{}` | {} | {} | {} |\n", setting.name, values, setting.fallback,
                    scenarios.empty() ? setting.doc
                                      : fmt::format("{} (scenario {})", setting.doc, join(scenarios, ", ")));
  }
  return text;
}

}  // namespace

std::string json_schema() {
  nlohmann::ordered_json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                 {"title", "Bakeoff recipe"},
                                 {"type", "object"},
                                 {"additionalProperties", false}};
  nlohmann::ordered_json required = {"contenders"};
  for (const Key& key : keys()) {
    nlohmann::ordered_json& home = key.section.empty() ? root : root["properties"][key.section];
    if (!key.section.empty()) home["type"] = "object", home["additionalProperties"] = false;
    home["properties"][key.name] = schema_of(key);
    if (key.required && key.section.empty()) required.push_back(key.name);
    if (key.required && !key.section.empty()) home["required"].push_back(key.name);
  }
  root["properties"]["contenders"] = contender_schema();
  root["required"] = required;
  root["if"] = {{"properties", {{"scenario", {{"const", "predict"}}}}}, {"required", {"scenario"}}};
  root["else"] = {{"required", {"optimizer"}}};
  return dump(root, 2) + "\n";
}

std::vector<std::string> explained(const std::string& word) {
  std::vector<std::string> found;
  for (const Key& key : keys()) {
    const std::string full = key.section.empty() ? key.name : key.section + "." + key.name;
    if (word != key.name && word != full && (word != key.section || word.empty())) continue;
    std::string values = limits(key);
    std::erase(values, '`');
    found.push_back(fmt::format("{} (key of recipes; {}; {}): {}", full, values,
                                key.required           ? "required"
                                : key.fallback.empty() ? "no default"
                                                       : "default " + key.fallback,
                                key.doc));
  }
  const auto add = [&](const std::vector<emit::Setting>& settings, const std::string& of) {
    for (const emit::Setting& setting : settings) {
      if (setting.name == word)
        found.push_back(fmt::format("{} (setting of contenders of {}): {}", setting.name, of, setting.doc));
    }
  };
  for (const emit::Framework* framework : emit::frameworks()) add(framework->settings, framework->name);
  add(common_settings(), "any framework");
  return found;
}

std::string markdown() {
  std::string text =
      "# Recipes\n\nA recipe is a TOML file. This page is generated from the schema that the parser uses "
      "(`bakeoff recipe --markdown`; `--schema` prints it as JSON Schema). "
      "Commands take a file, or the name of a recipe inside the program (`bakeoff recipes`); `bakeoff init` writes one to "
      "edit. `--set race.threads=2` changes any key for one run, as do `--frameworks`, `--batch`, `--lr`, `--seed` and "
      "`--threads`; the run's record holds the changed recipe.\n";
  for (const std::string& section : sections()) {
    text += section.empty() ? "\n## Top level\n" : fmt::format("\n## [{}]\n", section);
    text += "\n| key | values | default | meaning |\n|---|---|---|---|\n";
    for (const Key& key : keys()) {
      if (key.section != section) continue;
      text += fmt::format("| `{}` | {} | {} | {} |\n", key.name, limits(key),
                          key.required && section == "optimizer" ? "required to train"
                          : key.required                         ? "required"
                          : key.fallback.empty()                 ? "none"
                                                                 : key.fallback,
                          key.doc);
    }
  }
  text += fmt::format(
      "\n## contenders\n\nA list of tables, `contenders = [{{ framework = \"{}\" }}, ...]` or "
      "`[[contenders]]`. ",
      emit::frameworks().front()->name);
  text +=
      "A setting may be a list: all combinations are raced. `script = \"mine.py\"` races your own file, which is "
      "written like the emitted one, or shorter (docs/own_scripts.md); if `framework` is not given, it is read from the imports, and "
      "`environment = \"NAME\"` runs it in another environment than its framework's (docs/environments.md).\n";
  for (const emit::Framework* framework : emit::frameworks()) {
    text += fmt::format("\n### framework = \"{}\" ({})\n", framework->name, framework->title);
    std::vector<std::string> can;
    for (const ir::Scenario scenario : framework->scenarios) can.push_back(ir::name(scenario));
    if (can.size() < 3)
      text += fmt::format("\nOnly scenario{} `{}`.\n", can.size() == 1 ? "" : "s", join(can, "`, `"));
    text += settings_table(framework->settings);
  }
  text +=
      "\n### Any framework\n\nThese settings change the process of a contender, not its source. A contender "
      "that does not state one has the value of [race]. A list of values races each of them, in either "
      "track.\n" +
      settings_table(common_settings());
  return text;
}

}  // namespace bakeoff::recipe
