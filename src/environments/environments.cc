#include "environments/environments.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"
#include "base/sha256.h"
#include "proc/run.h"

namespace bakeoff {
namespace {

// Prints every installed distribution as "bakeoff:name==version"; the standard library suffices.
constexpr const char* kListPackages =
    "import importlib.metadata as m\n"
    "for d in m.distributions(): print('bakeoff:' + str(d.metadata['Name']) + '==' + d.version)\n";

// An interpreter of the user's: any versions are fine if the framework is there.
Environment inspect_named(const std::string& name, const fs::path& python) {
  Environment e{.name = name, .python = python, .named_by_user = true, .state = EnvironmentState::kBroken};
  e.remedy = "correct 'environment." + name + ".python' in the configuration file";
  proc::CommandOptions options;
  options.child.argv = {python.string(), "-c", kListPackages};
  options.timeout_ns = 30 * kSecond;
  options.on_line = [&](std::string_view line) {
    if (!line.starts_with("bakeoff:")) return;
    line.remove_prefix(8);
    if (const size_t at = line.find("=="); at != std::string_view::npos) {
      e.versions[normalised(line.substr(0, at))] = std::string(line.substr(at + 2));
    }
  };
  const auto result = proc::run_command(options);
  if (!result || !result->ok()) {
    e.reason = fmt::format("'{}' does not run: {}", python.string(),
                           result ? result->text() : result.error().message);
    return e;
  }
  const std::string package = framework_package(name);
  const bool found = std::ranges::any_of(e.versions, [&](const auto& entry) {
    // It may come as <package>-cpu, <package>-rocm, ...
    return entry.first == package || entry.first.starts_with(package + "-");
  });
  if (!found) {
    e.reason = fmt::format("'{}' has no package {}", python.string(), package);
    return e;
  }
  if (!e.versions.contains("safetensors") || !e.versions.contains("numpy")) {
    e.reason =
        fmt::format("'{}' lacks {}", python.string(), e.versions.contains("numpy") ? "safetensors" : "numpy");
    e.remedy = fmt::format("{} -m pip install numpy safetensors", python.string());
    return e;
  }
  e.state = EnvironmentState::kReady;
  e.remedy.clear();
  return e;
}

}  // namespace

std::string Environment::why_not() const {
  if (ok()) return "";
  return fmt::format("{}: {}; {}", bakeoff::name(state), reason, remedy);
}

std::string name(EnvironmentState state) {
  switch (state) {
    case EnvironmentState::kReady:
      return "ready";
    case EnvironmentState::kMissing:
      return "missing";
    case EnvironmentState::kOutdated:
      return "outdated";
    case EnvironmentState::kBroken:
      return "broken";
  }
  return "?";
}

std::vector<std::string> environment_names(const std::vector<Requirements>& all) {
  std::vector<std::string> names;
  for (const Requirements& requirements : all) names.push_back(requirements.name);
  return names;
}

fs::path environment_folder(const EnvironmentStore& store, const std::string& name) {
  return store.home / "envs" / name;
}

fs::path stamp_file(const EnvironmentStore& store, const std::string& name) {
  return environment_folder(store, name) / "bakeoff-stamp";
}

std::string stamp_text(const Requirements& requirements) { return sha256(requirements.text) + "\n"; }

Environment inspect_environment(const EnvironmentStore& store, const Requirements& requirements) {
  const std::string& name = requirements.name;
  if (const auto named = store.config.interpreters.find(name); named != store.config.interpreters.end()) {
    Environment own = inspect_named(name, named->second);
    own.extends = extended(requirements);
    return own;
  }
  const fs::path folder = environment_folder(store, name);
  Environment e{.name = name, .python = folder / "bin" / "python", .extends = extended(requirements)};
  e.remedy = fmt::format("run 'bakeoff env create {}'", name);
  auto is = [&](EnvironmentState state, std::string reason) {
    e.state = state;
    e.reason = std::move(reason);
    return e;
  };
  std::error_code code;
  if (!fs::exists(folder, code)) return is(EnvironmentState::kMissing, "never created");
  e.versions = installed_packages(folder);
  if (!fs::exists(e.python, code)) return is(EnvironmentState::kBroken, "its Python interpreter is gone");
  const auto pins = parse_pins(requirements);
  if (!pins) return is(EnvironmentState::kBroken, pins.error().text());
  if (const std::string misfit = first_misfit(*pins, e.versions); !misfit.empty()) {
    return is(EnvironmentState::kOutdated, misfit);
  }
  const auto stamp = read_file(stamp_file(store, name));
  if (!stamp) return is(EnvironmentState::kOutdated, "its creation was not finished");
  if (*stamp != stamp_text(requirements))
    return is(EnvironmentState::kOutdated, "made from other requirements");
  e.state = EnvironmentState::kReady;
  e.remedy.clear();
  return e;
}

std::vector<Environment> list_environments(const EnvironmentStore& store) {
  std::vector<Environment> all;
  for (const Requirements& requirements : store.requirements)
    all.push_back(inspect_environment(store, requirements));
  return all;
}

}  // namespace bakeoff
