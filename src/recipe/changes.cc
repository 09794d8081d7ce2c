// Options such as --set change the recipe's text, not only its values: the run's record keeps the text, and
// what was run has to stand in it. The changed text is parsed from the start, so that a change is checked
// like a file. If that fails, the options are taken off from the last one on until the text is right, and the
// error names the option that made it wrong instead of a line that the user never wrote.

#include "recipe/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <span>

#include "base/nearest.h"
#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "recipe/reader.h"
#include "recipe/schema.h"
#include "recipe/text_edit.h"

namespace bakeoff::recipe {
namespace {

constexpr const char* kContenders = "contenders";

std::string full_name(const Key& key) {
  return key.section.empty() ? key.name : key.section + "." + key.name;
}

Error wrong(const Change& change, const std::string& message, std::string remedy) {
  return {.message = fmt::format("{}: {}", change.option, message), .remedy = std::move(remedy)};
}

Result<Key> key_named(const Change& change) {
  if (change.key == kContenders) return Key{.name = kContenders, .kind = Kind::kTable};
  std::vector<std::string> names = {kContenders};
  for (const Key& key : keys()) {
    if (full_name(key) == change.key) return key;
    names.push_back(full_name(key));
  }
  // "threads" is meant as "race.threads".
  for (const std::string& name : names)
    if (name.ends_with("." + change.key))
      return wrong(change, fmt::format("unknown key '{}'", change.key),
                   fmt::format("did you mean '{}'?", name));
  const std::string near = nearest(change.key, names);
  return wrong(change, fmt::format("unknown key '{}'", change.key),
               near.empty() ? "docs/recipe.md and `bakeoff recipe --schema` have all keys"
                            : fmt::format("did you mean '{}'?", near));
}

// One value of TOML; nullopt if the text is not one.
std::optional<toml::table> as_toml(const std::string& value) {
  auto parsed = parse_toml("value = " + value);
  if (!parsed || parsed->size() != 1) return std::nullopt;
  return std::move(*parsed);
}

std::string absolute_path(const Key& key, const std::string& value) {
  if (key.name == "workload" && !value.ends_with(".ir")) return value;
  return std::filesystem::absolute(value).string();
}

Status set(toml::table& root, const Change& change) {
  TRY(const Key key, key_named(change));
  if (change.key == "batch" && change.value.find(',') != std::string::npos) {
    const bool list = change.value.starts_with('[');
    return wrong(change, "'batch' must be an integer: a race has one batch",
                 fmt::format("several batches: --set 'search.batches={}'",
                             list ? change.value : "[" + change.value + "]"));
  }
  if (!key.section.empty() && !root.contains(key.section)) {
    if (change.value.empty()) return Done{};
    root.insert(key.section, toml::table());
  }
  toml::table* home = key.section.empty() ? &root : root[key.section].as_table();
  if (change.value.empty()) {
    home->erase(key.name);
    return Done{};
  }
  const bool text = key.kind == Kind::kWord || key.kind == Kind::kPath;
  const bool written_as_toml = change.value.starts_with('"') || change.value.starts_with('\'') ||
                               (key.list && change.value.starts_with('['));
  auto value = text && !written_as_toml ? std::nullopt : as_toml(change.value);
  if (value)
    home->insert_or_assign(key.name, *value->get("value"));
  else
    home->insert_or_assign(key.name, change.value);
  if (toml::node* node = home->get(key.name); key.kind == Kind::kPath && node->is_string())
    home->insert_or_assign(key.name, absolute_path(key, *node->value<std::string>()));
  return Done{};
}

// Whether the letters stand in the name in this order, the first one at its beginning: "tf" of "tensorflow".
bool shortens(const std::string& letters, const std::string& name) {
  size_t at = 0;
  for (const char c : name) at += at < letters.size() && c == letters[at];
  return !letters.empty() && letters[0] == name[0] && at == letters.size();
}

// Frameworks by their titles ("PyTorch") and by short forms of their names, too.
std::string framework_meant(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = suggest(name, known);
  if (name.empty() || near.starts_with("did you mean")) return near;
  for (const emit::Framework* framework : emit::frameworks()) {
    if (lowered(framework->title) == lowered(name) || shortens(lowered(name), framework->name))
      return fmt::format("did you mean '{}'?", framework->name);
  }
  return near;
}

Result<std::vector<Contender>> of_frameworks(const Recipe& recipe, const Change& change) {
  std::vector<std::string> known;
  for (const emit::Framework* framework : emit::frameworks()) known.push_back(framework->name);
  std::vector<std::string> wanted;
  for (const std::string& name : split_trimmed(change.value, ",")) {
    if (std::ranges::find(known, name) == known.end())
      return wrong(change, fmt::format("unknown framework '{}'", name), framework_meant(name, known));
    if (std::ranges::find(wanted, name) == wanted.end()) wanted.push_back(name);
  }
  std::vector<Contender> kept;
  std::ranges::copy_if(recipe.contenders, std::back_inserter(kept), [&](const Contender& contender) {
    return std::ranges::find(wanted, contender.framework) != wanted.end();
  });
  for (const std::string& name : wanted)
    if (std::ranges::find(kept, name, &Contender::framework) == kept.end())
      kept.push_back({.framework = name});
  return kept;
}

Result<std::string> changed_text(const Recipe& recipe, std::span<const Change> changes) {
  std::string text = recipe.text;
  for (const Change& change : changes) {
    if (change.key == kFrameworks) {
      TRY(const auto contenders, of_frameworks(recipe, change));
      TRY(text, with_contenders(text, contenders));
      continue;
    }
    TRY(toml::table root, parse_toml(text, recipe.file));
    CHECK_OK(set(root, change));
    const size_t dot = change.key.find('.');
    const std::string_view key = change.key;
    text = dot == std::string::npos ? edited(text, root, "", key)
                                    : edited(text, root, key.substr(0, dot), key.substr(dot + 1));
  }
  return text;
}

// The first line of the changed text: what it was made of.
std::string comment(const Recipe& recipe, const std::vector<Change>& changes) {
  std::string text = "# " + recipe.file.string() + " with";
  for (const Change& change : changes) text += " " + change.option;
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text + "\n";
}

}  // namespace

Result<Recipe> with_changes(const Recipe& recipe, const std::vector<Change>& changes) {
  if (changes.empty()) return recipe;
  const auto made = [&](size_t count) -> Result<Recipe> {
    TRY(const std::string text, changed_text(recipe, std::span(changes).first(count)));
    return parse(comment(recipe, changes) + text, recipe.file, recipe.shipped);
  };
  TRY(const std::string text, changed_text(recipe, changes));
  auto done = made(changes.size());
  if (done) {
    done->changed = true;
    return done;
  }
  // The option after which no recipe is right is the one to name.
  size_t last = changes.size();
  while (last > 1 && !made(last - 1)) --last;
  return wrong(changes[last - 1], done.error().message, done.error().remedy);
}

}  // namespace bakeoff::recipe
