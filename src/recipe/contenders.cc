// A contender is a table with lists, and stands for all combinations of their values: so one line can be 12
// contenders, and two lines can be the same one twice, which is an error. Settings of a framework, which
// change the emitted source, and controls, which every contender may state and which change only its process,
// are crossed apart.
//
// A script of the user's own has no framework in its text but its imports. One framework may import another
// besides (Keras its backend), so the framework is the first import that no other one that was found explains
// (imports_besides). In a recorded run such a script is not read again: it may say something else by now, and
// the record knows its contender.

#include "recipe/contenders.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/files.h"
#include "base/nearest.h"
#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "emit/code_writer.h"

namespace bakeoff::recipe {
namespace {

namespace fs = std::filesystem;

// Whether the line imports the framework's module, or includes a header of its folder.
bool imports(std::string_view line, const emit::Framework& framework) {
  if (framework.extension == ".cc") return line.starts_with("#include <" + framework.module + "/");
  line = trimmed(line);
  if (line.starts_with("#")) return false;
  const auto means = [line](const std::string& text) { return line.find(text) != std::string_view::npos; };
  if (std::ranges::any_of(framework.also_imported, means)) return true;
  return std::ranges::any_of(imported_modules(line), [&](const std::string& module) {
    return module == framework.module || module.starts_with(framework.module + ".");
  });
}

}  // namespace

std::vector<std::string> imported_modules(std::string_view line) {
  std::vector<std::string> modules;
  for (const std::string& whole : split_trimmed(line, ";")) {
    std::string_view statement = whole;
    const bool from = statement.starts_with("from ");
    if (!from && !statement.starts_with("import ")) continue;
    statement = statement.substr(statement.find(' ') + 1);
    const std::string_view names = from ? statement.substr(0, statement.find(" import")) : statement;
    for (const std::string& name : split_trimmed(names, ","))
      modules.push_back(name.substr(0, name.find_first_of(" \t#")));
  }
  return modules;
}

const emit::Framework* framework_of(std::string_view source) {
  std::vector<const emit::Framework*> found;
  for (size_t begin = 0; begin < source.size();) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    for (const emit::Framework* framework : emit::frameworks()) {
      if (imports(source.substr(begin, end - begin), *framework)) found.push_back(framework);
    }
    begin = end + 1;
  }
  const auto is_besides = [&found](const emit::Framework* framework) {
    return std::any_of(found.begin(), found.end(), [framework](const emit::Framework* other) {
      return std::ranges::find(other->imports_besides, framework->name) != other->imports_besides.end();
    });
  };
  const auto decides = std::find_if_not(found.begin(), found.end(), is_besides);
  return decides == found.end() ? nullptr : *decides;
}

namespace {

std::string integers(const emit::Setting& setting) {
  return setting.least == 1 ? "a positive integer" : fmt::format("an integer of {} or more", setting.least);
}

// Text of a setting's value as TOML has it: "default", true, 8.
Result<std::string> setting_value(const Reader& reader, const emit::Framework& framework,
                                  const emit::Setting& setting, const toml::node& node) {
  std::string text;
  if (node.is_string())
    text = *node.value<std::string>();
  else if (node.is_boolean())
    text = *node.value<bool>() ? "true" : "false";
  else if (node.is_integer())
    text = std::to_string(*node.value<int64_t>());
  else
    return reader.error(node.source(),
                        fmt::format("setting '{}' must be text, a number, true or false", setting.name));
  if (setting.name == "pin") {
    CHECK_OK(check_pin(reader, node, text));
  } else if (setting.values.empty()) {
    int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || end != text.data() + text.size() || number < setting.least) {
      return reader.error(node.source(), fmt::format("setting '{}' of {} must be {}, is '{}'", setting.name,
                                                     framework.name, integers(setting), text));
    }
  } else if (std::find(setting.values.begin(), setting.values.end(), text) == setting.values.end()) {
    return reader.error(node.source(),
                        fmt::format("setting '{}' of {} cannot be '{}'", setting.name, framework.name, text),
                        suggest(text, setting.values));
  }
  return text;
}

Result<const emit::Framework*> read_framework(const Reader& reader, const toml::table& table,
                                              const std::string& source) {
  std::vector<std::string> names;
  for (const emit::Framework* f : emit::frameworks()) names.push_back(f->name);
  std::string name = table["framework"].value_or(std::string());
  if (const toml::node* node = table.get("framework"); node != nullptr && !node->is_string()) {
    return reader.error(node->source(), "'framework' must be text", suggest("", names));
  }
  if (name.empty() && table.get("script") == nullptr) {
    return reader.error(table.source(), "a contender needs a framework or a script",
                        fmt::format("for example {{ framework = \"{}\" }}", names.front()));
  }
  if (name.empty()) {
    if (const emit::Framework* framework = framework_of(source)) return framework;
    return reader.error(table.get("script")->source(), "no import in the script names a framework",
                        "add framework = \"...\"");
  }
  if (const emit::Framework* framework = emit::find_framework(name)) return framework;
  return reader.error(table.get("framework")->source(), fmt::format("unknown framework '{}'", name),
                      suggest(name, names));
}

using Combinations = std::vector<std::map<std::string, std::string>>;

// Every combination so far with every value of one setting; `node` null: with the one that is left open.
Status cross(const Reader& reader, const emit::Framework& framework, const emit::Setting& setting,
             const toml::node* node, const std::string& left_open, Combinations& combinations) {
  std::vector<std::string> values;
  if (node == nullptr) {
    values = {left_open};
  } else if (const toml::array* list = node->as_array()) {
    if (list->empty())
      return reader.error(node->source(), fmt::format("'{}' is an empty list", setting.name));
    for (const toml::node& element : *list) {
      TRY(std::string value, setting_value(reader, framework, setting, element));
      values.push_back(std::move(value));
    }
  } else {
    TRY(std::string value, setting_value(reader, framework, setting, *node));
    values.push_back(std::move(value));
  }
  Combinations crossed;
  for (const auto& base : combinations) {
    for (const std::string& value : values) {
      crossed.push_back(base);
      crossed.back()[setting.name] = value;
    }
  }
  combinations = std::move(crossed);
  return Done{};
}

// What a table says of a script of the user's own; all empty: it names none.
struct Own {
  fs::path script = {};
  std::string source = {}, layout = {}, environment = {};
};

Result<Own> read_own(const Reader& reader, const toml::table& table) {
  Own own;
  const toml::node* script = table.get("script");
  if (script == nullptr) return own;
  for (const char* key : {"script", "environment"})
    if (const toml::node* node = table.get(key); node != nullptr && !node->is_string())
      return reader.error(node->source(), fmt::format("'{}' must be text", key), "write it in quotes");
  own.environment = table["environment"].value_or("");
  const std::string name = *script->value<std::string>();
  own.script = reader.path(name);
  if (reader.recorded()) return own;
  auto source = reader.read(name);
  if (!source)
    return reader.error(script->source(), fmt::format("there is no script '{}'", own.script.string()),
                        reader.at_home());
  own.source = std::move(*source);
  if (auto layout = reader.read(fs::path(name).replace_extension(".layout.json"))) own.layout = *layout;
  return own;
}

void add_contender(ir::Scenario scenario, const emit::Framework& framework,
                   const std::map<std::string, std::string>& settings,
                   const std::map<std::string, std::string>& controls, const Own& own,
                   std::vector<Contender>& out) {
  Contender c = emitted_contender(scenario, framework, settings, controls);
  c.script = own.script;
  c.source = own.source;
  c.layout = own.layout;
  if (!own.environment.empty()) c.environment = own.environment;
  if (!c.script.empty()) {
    c.id += ":" + c.script.filename().string();
    c.file = "own_" + std::to_string(out.size() + 1) + "_" + emit::identifier(c.script.stem().string()) +
             framework.extension;
  }
  out.push_back(std::move(c));
}

// The scenario is one of the framework's, and no setting is of another.
Status check_scenario(const Reader& reader, const toml::table& table, const emit::Framework& framework,
                      ir::Scenario scenario) {
  const toml::node* named = table.get("framework");
  const toml::source_region& where = named != nullptr ? named->source() : table.source();
  if (!emit::can(framework, scenario)) {
    const bool trains = scenario == ir::Scenario::kTrain;
    return reader.error(
        where, fmt::format("{} has no scenario '{}'", framework.title, ir::name(scenario)),
        trains ? "set scenario = \"predict\" at the top, or remove the contender" : "remove the contender");
  }
  if (const toml::node* script = table.get("script");
      script != nullptr && scenario == ir::Scenario::kGenerate)
    return reader.error(script->source(), "a script of your own has no scenario 'generate'",
                        "remove the contender");
  for (const emit::Setting& setting : framework.settings) {
    const toml::node* node = table.get(setting.name);
    if (node == nullptr || emit::concerns(setting, scenario)) continue;
    return reader.error(node->source(),
                        fmt::format("setting '{}' of {} has no effect in scenario '{}'", setting.name,
                                    framework.name, ir::name(scenario)),
                        "remove it");
  }
  return Done{};
}

// What to do about a setting that a framework does not have.
std::string instead_of(const std::string& setting, const std::vector<std::string>& known) {
  std::vector<std::string> others;
  for (const emit::Framework* other : emit::frameworks()) {
    const auto is = [&](const emit::Setting& s) { return s.name == setting; };
    if (std::any_of(other->settings.begin(), other->settings.end(), is)) others.push_back(other->name);
  }
  if (others.empty()) return suggest(setting, known);
  return fmt::format("leave it out; {} has it", join(others, ", "));
}

// A setting's value where the table has none: what a script of the user's own gives to its variable before it
// imports the framework, else the fallback.
//   os.environ["KERAS_BACKEND"] = "jax"      os.environ.setdefault('KERAS_BACKEND', 'torch')
std::string value_left_open(const emit::Setting& setting, const std::string& script) {
  std::istringstream lines(script);
  for (std::string line; !setting.variable.empty() && std::getline(lines, line);) {
    const size_t first = line.find_first_not_of(" \t"), named = line.find(setting.variable);
    if (named == std::string::npos || line[first] == '#') continue;
    for (const std::string& value : setting.values) {
      for (const char* quote : {"\"", "'"}) {
        if (line.find(quote + value + quote, named) != std::string::npos) return value;
      }
    }
  }
  return setting.fallback;
}

// One table of `contenders`: all combinations of its lists.
Status expand(const Reader& reader, const toml::table& table, ir::Scenario scenario,
              std::vector<Contender>& out) {
  TRY(const Own own, read_own(reader, table));
  // A record has contenders of its own, and the script may say something else by now: it is not read.
  if (reader.recorded() && !own.script.empty()) {
    out.push_back({.script = own.script, .id = std::to_string(out.size()) + ":" + own.script.string()});
    return Done{};
  }
  TRY(const emit::Framework* framework, read_framework(reader, table, own.source));
  std::vector<std::string> known = {"framework", "script"};
  if (!own.script.empty()) known.emplace_back("environment");
  for (const emit::Setting& s : framework->settings) known.push_back(s.name);
  for (const emit::Setting& s : common_settings()) known.push_back(s.name);
  for (const auto& [key, node] : table) {
    const std::string text(key.str());
    if (std::find(known.begin(), known.end(), text) == known.end()) {
      const auto why = framework->lacks.find(text);
      return reader.error(key.source(),
                          fmt::format("{} has no setting '{}'{}", framework->name, text,
                                      why == framework->lacks.end() ? "" : ": " + why->second),
                          instead_of(text, known));
    }
  }
  CHECK_OK(check_scenario(reader, table, *framework, scenario));
  Combinations combinations = {{}};
  for (const emit::Setting& setting : framework->settings) {
    CHECK_OK(cross(reader, *framework, setting, table.get(setting.name), value_left_open(setting, own.source),
                   combinations));
  }
  Combinations controls = {{}};
  for (const emit::Setting& setting : common_settings()) {
    if (const toml::node* node = table.get(setting.name))
      CHECK_OK(cross(reader, *framework, setting, node, setting.fallback, controls));
  }
  for (const auto& settings : combinations) {
    for (const auto& under : controls) add_contender(scenario, *framework, settings, under, own, out);
  }
  return Done{};
}

}  // namespace

Result<std::vector<Contender>> read_contenders(const Reader& reader, const toml::table& root,
                                               ir::Scenario scenario) {
  const toml::node* node = root.get("contenders");
  const std::string example = fmt::format(R"(contenders = [{{ framework = "{}" }}, {{ framework = "{}" }}])",
                                          emit::frameworks()[0]->name, emit::frameworks()[1]->name);
  if (node == nullptr) {
    return Error{.message = "'contenders' is missing",
                 .where = reader.file().string() + ":1",
                 .remedy = "for example " + example};
  }
  const toml::array* list = node->as_array();
  if (list == nullptr || list->empty())
    return reader.error(node->source(), "'contenders' must be a list of tables", "for example " + example);
  std::vector<Contender> all;
  for (const toml::node& element : *list) {
    if (!element.is_table())
      return reader.error(element.source(), "a contender must be a table", "for example " + example);
    const size_t before = all.size();
    CHECK_OK(expand(reader, *element.as_table(), scenario, all));
    for (size_t i = before; i < all.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (all[j].id == all[i].id) {
          return reader.error(element.source(), fmt::format("contender '{}' is named twice", all[i].id),
                              "remove one");
        }
      }
    }
  }
  return all;
}

const toml::node* find_setting(const Reader& reader, const toml::table& root, ir::Scenario scenario,
                               const std::string& id, const std::string& setting) {
  const toml::array* list = root["contenders"].as_array();
  if (list == nullptr) return nullptr;
  for (const toml::node& element : *list) {
    std::vector<Contender> here;
    if (!element.is_table() || !expand(reader, *element.as_table(), scenario, here)) continue;
    if (std::none_of(here.begin(), here.end(), [&](const Contender& c) { return c.id == id; })) continue;
    const toml::node* node = element.as_table()->get(setting);
    return node != nullptr ? node : &element;
  }
  return nullptr;
}

Status check_pin(const Reader& reader, const toml::node& node, const std::string& pin) {
  if (pin == "auto" || pin == "none" || parse_cpus(pin)) return Done{};
  return reader.error(node.source(), fmt::format("'pin' cannot be '{}'", pin),
                      "auto, none, or CPUs such as \"0\" or \"0,2-3\"");
}

}  // namespace bakeoff::recipe
