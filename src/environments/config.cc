#include "environments/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "base/nearest.h"
#include "base/toml_text.h"

namespace bakeoff {
namespace {

// Where a key stands, and how errors about it are made.
struct Place {
  const fs::path& file;

  Error error(const toml::source_region& at, std::string message, std::string remedy = {}) const {
    return Error{.message = std::move(message),
                 .where = fmt::format("{}:{}", file.string(), at.begin.line),
                 .remedy = std::move(remedy)};
  }
  Error unknown(const toml::key& key, const std::string& what, const std::vector<std::string>& known) const {
    const std::string word(key.str());
    return error(key.source(), fmt::format("unknown {} '{}'", what, word), suggest(word, known));
  }
};

fs::path absolute(const std::string& text, const fs::path& file) {
  if (text.starts_with("~/")) {
    const char* home = std::getenv("HOME");
    return fs::path(home ? home : "/") / text.substr(2);
  }
  return fs::absolute(file).parent_path() / text;  // an absolute text replaces the folder
}

Result<fs::path> read_environment(const Place& place, const std::string& name, const toml::node& node) {
  const toml::table* table = node.as_table();
  if (!table) {
    return place.error(node.source(), fmt::format("'environment.{}' must be a table", name),
                       fmt::format("[environment.{}]\n  python = \"/usr/bin/python3\"", name));
  }
  fs::path python;
  for (const auto& [key, value] : *table) {
    if (key != "python") return place.unknown(key, "key", {"python"});
    const auto text = value.value_exact<std::string>();
    if (!text) return place.error(value.source(), fmt::format("'environment.{}.python' must be text", name));
    python = absolute(*text, place.file);
    if (!fs::is_regular_file(python)) {
      return place.error(value.source(),
                         fmt::format("'environment.{}.python': there is no '{}'", name, python.string()),
                         "name the interpreter itself, for example /usr/bin/python3");
    }
  }
  if (python.empty())
    return place.error(node.source(), fmt::format("'environment.{}' names no python", name));
  return python;
}

}  // namespace

Result<Config> parse_config(std::string_view text, const fs::path& file,
                            const std::vector<std::string>& environments) {
  const Place place{file};
  TRY(const toml::table root, parse_toml(text, file, "docs/environments.md"));
  Config config{.file = file};
  for (const auto& [key, section] : root) {
    if (key != "environment") return place.unknown(key, "section", {"environment"});
    const toml::table* table = section.as_table();
    if (!table)
      return place.error(section.source(), "'environment' must be a section", "[environment.torch]");
    for (const auto& [name, node] : *table) {
      const std::string word(name.str());
      if (std::ranges::find(environments, word) == environments.end()) {
        return place.unknown(name, "environment", environments);
      }
      TRY(config.interpreters[word], read_environment(place, word, node));
    }
  }
  return config;
}

Result<Config> load_config(const fs::path& named, const fs::path& home,
                           const std::vector<std::string>& environments) {
  fs::path file = named;
  if (const char* variable = std::getenv("BAKEOFF_CONFIG"); file.empty() && variable && *variable)
    file = variable;
  if (file.empty()) {
    file = home / "config.toml";
    if (!fs::exists(file)) return Config{};
  }
  TRY(const auto text, read_file(file));
  return parse_config(text, file, environments);
}

}  // namespace bakeoff
