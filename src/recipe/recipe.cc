#include "recipe/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/files.h"
#include "base/nearest.h"
#include "emit/all/frameworks.h"
#include "emit/code_writer.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "recipe/schema.h"
#include "zoo/zoo.h"

namespace bakeoff::recipe {
namespace {

namespace fs = std::filesystem;

std::string dotted(const Key& key) { return key.section.empty() ? key.name : key.section + "." + key.name; }

// Reads a checked TOML table through the schema; remembers where things stand.
class Reader {
 public:
  // `recorded`: files named by the recipe need not exist.
  Reader(const toml::table& root, fs::path file, bool recorded)
      : root_(root), file_(std::move(file)), recorded_(recorded) {}

  Error error(const toml::source_region& at, std::string message, std::string remedy = {}) const {
    return {std::move(message), fmt::format("{}:{}", file_.string(), at.begin.line), std::move(remedy)};
  }

  // Unknown sections and keys, wrong types, values out of range.
  Status check() const {
    CHECK_OK(check_names(root_, ""));
    for (const Key& key : keys()) CHECK_OK(check_key(key));
    return Done{};
  }

  const toml::node* find(std::string_view section, std::string_view name) const {
    const toml::table* home = &root_;
    if (!section.empty()) home = root_[section].as_table();
    return home == nullptr ? nullptr : home->get(name);
  }

  // Values of keys that `check` has accepted, or `fallback`.
  std::string word(std::string_view section, std::string_view name, std::string fallback) const {
    const toml::node* node = find(section, name);
    return node == nullptr ? fallback : node->value<std::string>().value();
  }
  int64_t integer(std::string_view section, std::string_view name, int64_t fallback) const {
    const toml::node* node = find(section, name);
    return node == nullptr ? fallback : node->value<int64_t>().value();
  }
  double real(std::string_view section, std::string_view name, double fallback) const {
    const toml::node* node = find(section, name);
    return node == nullptr ? fallback : node->value<double>().value();
  }
  bool flag(std::string_view section, std::string_view name, bool fallback) const {
    const toml::node* node = find(section, name);
    return node == nullptr ? fallback : node->value<bool>().value();
  }
  fs::path path(const std::string& text) const {
    return fs::weakly_canonical(fs::absolute(file_).parent_path() / text);
  }
  const fs::path& file() const { return file_; }
  bool recorded() const { return recorded_; }

 private:
  Status check_names(const toml::table& table, const std::string& section) const {
    std::vector<std::string> known = names_in(section);
    if (section.empty()) {
      for (const std::string& s : sections()) {
        if (!s.empty()) known.push_back(s);
      }
      known.push_back("contenders");
    }
    for (const auto& [name, node] : table) {
      const std::string text(name.str());
      if (std::find(known.begin(), known.end(), text) == known.end()) {
        return error(
            name.source(),
            fmt::format("unknown key '{}'{}", text, section.empty() ? "" : fmt::format(" in [{}]", section)),
            suggest(text, known));
      }
      const std::vector<std::string> all = sections();
      const bool is_section = section.empty() && std::find(all.begin(), all.end(), text) != all.end();
      if (is_section) {
        if (!node.is_table())
          return error(node.source(), fmt::format("'{}' must be a table", text),
                       fmt::format("write [{}] on a line of its own", text));
        CHECK_OK(check_names(*node.as_table(), text));
      }
    }
    return Done{};
  }

  Status check_key(const Key& key) const {
    const toml::node* node = find(key.section, key.name);
    if (node == nullptr) {
      if (!key.required) return Done{};
      return Error{
          .message = fmt::format("'{}' is missing", dotted(key)),
          .where = file_.string() + ":1",
          .remedy = fmt::format("add `{} = ...`{}: {}", key.name,
                                key.section.empty() ? "" : fmt::format(" under [{}]", key.section), key.doc)};
    }
    CHECK_OK(check_kind(key, *node));
    if (key.kind == Kind::kInt || key.kind == Kind::kReal) {
      const double value = node->value<double>().value();
      // Not (value in range), so that NaN is refused too.
      if (!(value >= key.least && value <= key.most) || (key.least_excluded && value == key.least)) {
        return error(node->source(), fmt::format("'{}' is {}, outside its range", dotted(key), value),
                     fmt::format("it must be {} {}{}", key.least_excluded ? "above" : "at least", key.least,
                                 key.most < 1e300 ? fmt::format(" and at most {}", key.most) : ""));
      }
    }
    if (!key.words.empty()) {
      const std::string text = node->value<std::string>().value();
      if (std::find(key.words.begin(), key.words.end(), text) == key.words.end()) {
        return error(node->source(), fmt::format("'{}' cannot be '{}'", dotted(key), text),
                     suggest(text, key.words));
      }
    }
    return Done{};
  }

  Status check_kind(const Key& key, const toml::node& node) const {
    const auto wrong = [&](std::string_view wanted) {
      return error(node.source(), fmt::format("'{}' must be {}", dotted(key), wanted),
                   fmt::format("for example {} = {}", key.name, wanted == "text" ? "\"...\"" : key.fallback));
    };
    switch (key.kind) {
      case Kind::kWord:
      case Kind::kPath:
        return node.is_string() ? Status(Done{}) : wrong("text");
      case Kind::kInt:
        return node.is_integer() ? Status(Done{}) : wrong("an integer");
      case Kind::kReal:
        return node.is_number() ? Status(Done{}) : wrong("a number");
      case Kind::kFlag:
        return node.is_boolean() ? Status(Done{}) : wrong("true or false");
    }
    return Done{};
  }

  const toml::table& root_;
  fs::path file_;
  bool recorded_;
};

Result<ir::Workload> read_workload(const Reader& reader) {
  const std::string name = reader.word("", "workload", "");
  const toml::node& node = *reader.find("", "workload");
  ir::Workload workload;
  if (name.ends_with(".ir")) {
    auto text = read_file(reader.path(name));
    if (!text)
      return reader.error(node.source(), text.error().message, "name an IR file or a workload that ships");
    TRY(workload, ir::parse(*text, reader.path(name).string()));
  } else {
    auto built = zoo::build(name);
    if (!built)
      return reader.error(node.source(), built.error().message,
                          built.error().remedy + " (or the path of a file ending in .ir)");
    workload = *built;
  }
  const std::string loss = ir::info(workload.nodes.back().op).name;
  if (const std::string wanted = reader.word("", "loss", loss); wanted != loss) {
    return reader.error(
        reader.find("", "loss")->source(),
        fmt::format("loss '{}' does not fit workload '{}', which ends in {}", wanted, workload.name, loss),
        "remove `loss` or write a workload that ends in it");
  }
  return workload;
}

struct Applies {
  const char* key;
  std::vector<ir::OptimizerKind> kinds;
};

Status check_optimizer_keys(const Reader& reader, const ir::Optimizer& optimizer) {
  using K = ir::OptimizerKind;
  const Applies rules[] = {{"momentum", {K::kSgd, K::kRmsprop}},
                           {"nesterov", {K::kSgd}},
                           {"rho", {K::kRmsprop}},
                           {"beta1", {K::kAdam, K::kAdamW}},
                           {"beta2", {K::kAdam, K::kAdamW}},
                           {"eps", {K::kRmsprop, K::kAdam, K::kAdamW}},
                           {"eps_form", {K::kRmsprop, K::kAdam, K::kAdamW}}};
  for (const Applies& rule : rules) {
    const toml::node* node = reader.find("optimizer", rule.key);
    if (node != nullptr &&
        std::find(rule.kinds.begin(), rule.kinds.end(), optimizer.kind) == rule.kinds.end()) {
      return reader.error(
          node->source(),
          fmt::format("'optimizer.{}' means nothing to {}", rule.key, ir::name(optimizer.kind)), "remove it");
    }
  }
  if (optimizer.kind == K::kRmsprop && optimizer.eps_form == ir::EpsForm::kHat) {
    return reader.error(reader.find("optimizer", "eps_form")->source(),
                        "eps_form 'hat' belongs to adam and adamw", "use outside or inside");
  }
  if (optimizer.kind == K::kAdamW && optimizer.decay_form == ir::DecayForm::kL2) {
    return reader.error(reader.find("optimizer", "decay_form")->source(), "adamw's decay is decoupled",
                        "use kind = \"adam\" for L2 decay");
  }
  if (optimizer.nesterov && optimizer.momentum == 0) {
    return reader.error(reader.find("optimizer", "nesterov")->source(), "nesterov needs momentum",
                        "set optimizer.momentum");
  }
  return Done{};
}

Result<ir::Optimizer> read_optimizer(const Reader& reader) {
  ir::Optimizer o;
  const std::string kind = reader.word("optimizer", "kind", "");
  for (const auto k : {ir::OptimizerKind::kSgd, ir::OptimizerKind::kRmsprop, ir::OptimizerKind::kAdam,
                       ir::OptimizerKind::kAdamW}) {
    if (ir::name(k) == kind) o.kind = k;
  }
  o.lr = reader.real("optimizer", "lr", o.lr);
  o.momentum = reader.real("optimizer", "momentum", o.momentum);
  o.nesterov = reader.flag("optimizer", "nesterov", o.nesterov);
  o.rho = reader.real("optimizer", "rho", o.rho);
  o.beta1 = reader.real("optimizer", "beta1", o.beta1);
  o.beta2 = reader.real("optimizer", "beta2", o.beta2);
  o.eps = reader.real("optimizer", "eps", o.eps);
  o.weight_decay = reader.real("optimizer", "weight_decay", o.weight_decay);
  const std::string form = reader.word("optimizer", "eps_form", "outside");
  for (const auto f : {ir::EpsForm::kOutside, ir::EpsForm::kInside, ir::EpsForm::kHat}) {
    if (ir::name(f) == form) o.eps_form = f;
  }
  const std::string decay =
      reader.word("optimizer", "decay_form", o.kind == ir::OptimizerKind::kAdamW ? "decoupled" : "l2");
  o.decay_form = decay == "l2" ? ir::DecayForm::kL2 : ir::DecayForm::kDecoupled;
  for (const std::string& name : names_in("optimizer")) {
    if (reader.find("optimizer", name) != nullptr) o.stated.insert(name);
  }
  CHECK_OK(check_optimizer_keys(reader, o));
  return o;
}

// The framework that a script imports: the first import line that names one decides; Keras wins over its
// backends.
std::string framework_of(std::string_view source) {
  bool torch = false, jax = false, tensorflow = false;
  for (size_t begin = 0; begin < source.size();) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    const std::string_view line = source.substr(begin, end - begin);
    const auto imports = [line](std::string_view module) {
      for (const std::string_view word : {"import ", "from "}) {
        if (!line.starts_with(word) || !line.substr(word.size()).starts_with(module)) continue;
        const std::string_view rest = line.substr(word.size() + module.size());
        if (rest.empty() || rest[0] == ' ' || rest[0] == '.' || rest[0] == ',' || rest[0] == '\r')
          return true;
      }
      return false;
    };
    if (imports("keras")) return "keras";
    torch = torch || imports("torch");
    jax = jax || imports("jax");
    tensorflow = tensorflow || imports("tensorflow");
    begin = end + 1;
  }
  return torch ? "torch" : jax ? "jax" : tensorflow ? "tensorflow" : "";
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
  if (setting.values.empty()) {
    int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || end != text.data() + text.size() || number < 1) {
      return reader.error(node.source(), fmt::format("setting '{}' of {} must be a positive integer, is '{}'",
                                                     setting.name, framework.name, text));
    }
  } else if (std::find(setting.values.begin(), setting.values.end(), text) == setting.values.end()) {
    return reader.error(node.source(),
                        fmt::format("setting '{}' of {} cannot be '{}'", setting.name, framework.name, text),
                        suggest(text, setting.values));
  }
  return text;
}

Result<const emit::Framework*> read_framework(const Reader& reader, const toml::table& table,
                                              const fs::path& script) {
  std::vector<std::string> names;
  for (const emit::Framework* f : emit::frameworks()) names.push_back(f->name);
  std::string name = table["framework"].value_or(std::string());
  if (const toml::node* node = table.get("framework"); node != nullptr && !node->is_string()) {
    return reader.error(node->source(), "'framework' must be text", suggest("", names));
  }
  if (name.empty() && script.empty()) {
    return reader.error(table.source(), "a contender needs a framework or a script",
                        "for example { framework = \"torch\" }");
  }
  if (name.empty()) {
    auto source = read_file(script);
    if (!source && reader.recorded()) return emit::frameworks().front();  // the record has its own list
    if (!source) return reader.error(table.get("script")->source(), source.error().message, "check the path");
    name = framework_of(*source);
    if (name.empty()) {
      return reader.error(table.get("script")->source(), "no import in the script names a framework",
                          "add framework = \"...\"");
    }
  }
  if (const emit::Framework* framework = emit::find_framework(name)) return framework;
  return reader.error(table.get("framework")->source(), fmt::format("unknown framework '{}'", name),
                      suggest(name, names));
}

std::string script_file(const emit::Framework& framework,
                        const std::map<std::string, std::string>& settings) {
  std::string name = "train_" + framework.name;
  for (const emit::Setting& setting : framework.settings) {
    const std::string& value = settings.at(setting.name);
    if (value == setting.fallback && setting.name != "backend") continue;
    name += "_" + (setting.name == "backend" ? value
                   : value == "true"         ? setting.name
                                             : setting.name + "_" + value);
  }
  return emit::identifier(name) + ".py";
}

// One table of `contenders`: all combinations of its lists.
Status expand(const Reader& reader, const toml::table& table, std::vector<Contender>& out) {
  fs::path script;
  if (const toml::node* node = table.get("script")) {
    if (!node->is_string()) return reader.error(node->source(), "'script' must be text");
    script = reader.path(*node->value<std::string>());
    if (!fs::is_regular_file(script) && !reader.recorded()) {
      return reader.error(node->source(), fmt::format("there is no script '{}'", script.string()),
                          "paths are relative to the recipe's folder");
    }
  }
  TRY(const emit::Framework* framework, read_framework(reader, table, script));
  std::vector<std::string> known = {"framework", "script"};
  for (const emit::Setting& s : framework->settings) known.push_back(s.name);
  for (const auto& [key, node] : table) {
    const std::string text(key.str());
    if (std::find(known.begin(), known.end(), text) == known.end()) {
      return reader.error(key.source(), fmt::format("{} has no setting '{}'", framework->name, text),
                          suggest(text, known));
    }
  }
  std::vector<std::map<std::string, std::string>> combinations = {{}};
  for (const emit::Setting& setting : framework->settings) {
    std::vector<std::string> values;
    const toml::node* node = table.get(setting.name);
    if (node == nullptr) {
      values = {setting.fallback};
    } else if (const toml::array* list = node->as_array()) {
      if (list->empty())
        return reader.error(node->source(), fmt::format("'{}' is an empty list", setting.name));
      for (const toml::node& element : *list) {
        TRY(std::string value, setting_value(reader, *framework, setting, element));
        values.push_back(std::move(value));
      }
    } else {
      TRY(std::string value, setting_value(reader, *framework, setting, *node));
      values.push_back(std::move(value));
    }
    std::vector<std::map<std::string, std::string>> crossed;
    for (const auto& base : combinations) {
      for (const std::string& value : values) {
        auto one = base;
        one[setting.name] = value;
        crossed.push_back(std::move(one));
      }
    }
    combinations = std::move(crossed);
  }
  for (auto& settings : combinations) {
    Contender c{.framework = framework->name,
                .settings = settings,
                .script = script,
                .id = contender_id(framework->name, settings),
                .file = script_file(*framework, settings)};
    if (!script.empty()) {
      c.id += ":" + script.filename().string();
      c.file =
          "own_" + std::to_string(out.size() + 1) + "_" + emit::identifier(script.stem().string()) + ".py";
    }
    out.push_back(std::move(c));
  }
  return Done{};
}

Result<std::vector<Contender>> read_contenders(const Reader& reader, const toml::table& root) {
  const toml::node* node = root.get("contenders");
  const std::string example = "contenders = [{ framework = \"torch\" }, { framework = \"jax\" }]";
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
    CHECK_OK(expand(reader, *element.as_table(), all));
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

void fill(Recipe& recipe, const Reader& reader) {
  recipe.name = reader.word("", "name", reader.file().stem().string());
  ir::Training& t = recipe.training;
  t.track = reader.word("", "track", "equalised") == "as-is" ? ir::Track::kAsIs : ir::Track::kEqualised;
  t.batch = reader.integer("", "batch", t.batch);
  t.precision = reader.word("", "precision", t.precision);
  t.seed = static_cast<uint64_t>(reader.integer("", "seed", 1));
  t.input_divisor = reader.real("data", "divisor", 1);
  recipe.margin = reader.real("", "margin", recipe.margin);
  recipe.alpha = reader.real("", "alpha", recipe.alpha);
  recipe.data.kind = reader.word("data", "kind", recipe.data.kind);
  if (reader.find("data", "path") != nullptr) recipe.data.path = reader.path(reader.word("data", "path", ""));
  recipe.data.samples = reader.integer("data", "samples", recipe.data.samples);
  recipe.budget.minutes = reader.real("budget", "minutes", recipe.budget.minutes);
  recipe.budget.heats = reader.integer("budget", "heats", recipe.budget.heats);
  Race& race = recipe.race;
  race.threads = reader.integer("race", "threads", race.threads);
  race.live = reader.integer("race", "live", race.live);
  race.warmup_steps = reader.integer("race", "warmup_steps", race.warmup_steps);
  race.bursts = reader.integer("race", "bursts", race.bursts);
  race.burst_seconds = reader.real("race", "burst_seconds", race.burst_seconds);
  race.tuned_allocator = reader.word("race", "allocator", "default") == "tuned";
  race.parity_steps = reader.integer("race", "parity_steps", race.parity_steps);
  race.stage_seconds = reader.real("race", "stage_seconds", race.stage_seconds);
}

}  // namespace

std::string contender_id(const std::string& framework, const std::map<std::string, std::string>& settings) {
  const emit::Framework* info = emit::find_framework(framework);
  std::vector<std::string> parts;
  for (const emit::Setting& setting : info->settings) {
    const std::string& value = settings.at(setting.name);
    if (value == setting.fallback && setting.name != "backend") continue;
    parts.push_back(value == "true" ? setting.name : setting.name + "=" + value);
  }
  return parts.empty() ? framework : fmt::format("{}[{}]", framework, fmt::join(parts, ","));
}

namespace {

Result<Recipe> parse_text(std::string_view text, const fs::path& file, bool recorded) {
  const toml::parse_result parsed = toml::parse(text, file.string());
  if (!parsed) {
    const toml::parse_error& e = parsed.error();
    return Error{
        .message = fmt::format("not valid TOML: {}", std::string(e.description())),
        .where = fmt::format("{}:{}:{}", file.string(), e.source().begin.line, e.source().begin.column),
        .remedy = "see docs/recipe.md for an example"};
  }
  const toml::table& root = parsed.table();
  const Reader reader(root, file, recorded);
  CHECK_OK(reader.check());
  Recipe recipe{.file = file, .text = std::string(text)};
  fill(recipe, reader);
  if (!recorded) {
    TRY(recipe.workload, read_workload(reader));
  }
  TRY(recipe.training.optimizer, read_optimizer(reader));
  TRY(recipe.contenders, read_contenders(reader, root));
  if (recipe.data.kind == "file" && recipe.data.path.empty()) {
    return reader.error(reader.find("data", "kind")->source(), "data.kind = \"file\" needs data.path",
                        "add path = \"my.safetensors\" under [data]");
  }
  return recipe;
}

}  // namespace

Result<Recipe> parse(std::string_view text, const fs::path& file) { return parse_text(text, file, false); }
Result<Recipe> parse_recorded(std::string_view text, const fs::path& file) {
  return parse_text(text, file, true);
}

std::string where(const Recipe& recipe, const std::string& section, const std::string& key) {
  const toml::parse_result parsed = toml::parse(recipe.text, recipe.file.string());
  if (!parsed) return recipe.file.string();
  const toml::node* node = Reader(parsed.table(), recipe.file, true).find(section, key);
  if (node == nullptr) return recipe.file.string();
  return fmt::format("{}:{}", recipe.file.string(), node->source().begin.line);
}

Result<Recipe> load(const fs::path& file) {
  auto text = read_file(file);
  if (!text)
    return Error{.message = text.error().message,
                 .remedy = "name a recipe, for example recipes/mnist_cnn.toml"};
  return parse(*text, file);
}

}  // namespace bakeoff::recipe
