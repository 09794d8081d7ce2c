#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/texts.h"
#include "cli/command.h"
#include "cli/console.h"
#include "environments/environments.h"
#include "machine/doctor.h"
#include "proc/launcher.h"

namespace bakeoff::cli {
namespace {

constexpr int kPythonColumn = 27;  // of texts in `env list`
constexpr int kLevelColumn = 9;    // of topics in `doctor`

using Names = std::vector<std::string>;  // of environments; empty: all

int list(const EnvironmentStore& store, const Names&) {
  for (const Environment& e : list_environments(store)) {
    print(two_columns(fmt::format("{:<16} {}", e.name, name(e.state)), kPythonColumn,
                      e.ok() ? e.python.string() : e.reason + "; " + e.remedy));
    if (!e.ok()) continue;
    std::string versions;
    for (const std::string& package : main_packages(e.name)) {
      const auto found = e.versions.find(package);
      if (found != e.versions.end())
        versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", package, found->second);
    }
    print(two_columns("", kPythonColumn, versions));
  }
  return 0;
}

int create(const EnvironmentStore& store, const Names& names) {
  ConsoleProgress progress;
  if (const auto done = create_environments(store, names, progress.lines()); !done) return fail(done.error());
  list(store, names);
  return proc::interrupted() ? kInterrupted : 0;
}

// One line a finding, its remedy below.
int diagnose(const EnvironmentStore& store, const Names&) {
  std::vector<Finding> findings;
  {
    ConsoleProgress progress;
    findings = doctor(store, {}, progress.lines());
  }
  size_t longest = 0;
  for (const Finding& f : findings) longest = std::max(longest, f.topic.size());
  const int column = kLevelColumn + static_cast<int>(longest) + 1;
  for (const Finding& f : findings) {
    print(two_columns(fmt::format("{:<8} {}", name(f.level), f.topic), column, f.text));
    if (!f.remedy.empty()) print(two_columns("", column, f.remedy));
  }
  return has_problem(findings) ? 1 : 0;
}

struct EnvOptions {
  int (*action)(const EnvironmentStore&, const Names&) = diagnose;
  Names names = {};
};

int env(const EnvOptions& options, const fs::path& config) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  const fs::path home = bakeoff_home();
  const auto loaded = load_config(config, home, environment_names());
  if (!loaded) return fail(loaded.error());
  return options.action({.home = home, .config = *loaded}, options.names);
}

Action add_env(CLI::App& sub) {
  const auto options = std::make_shared<EnvOptions>();
  const std::vector<std::string> names = environment_names();
  sub.footer("Example:\n  bakeoff env create " + names.front());
  sub.require_subcommand(1);
  CLI::App* made =
      add_subcommand(sub, "create", "Create environments (all if none is named)", "bakeoff env create");
  made->add_option("names", options->names, join(names, ", "));
  made->callback([options] { options->action = create; });
  add_subcommand(sub, "list", "List environments and their packages", "bakeoff env list")
      ->callback([options] { options->action = list; });
  add_subcommand(sub, "doctor", "Check machine and environments, with remedies", "bakeoff env doctor");
  return [options](const Invocation& line) { return env(*options, line.config); };
}

Action add_doctor(CLI::App&) {
  return [](const Invocation& line) { return env({}, line.config); };
}

}  // namespace

const Command kEnv = {"env", "Create, list and check the Python environments", nullptr, add_env};
const Command kDoctor = {"doctor", "The same as `bakeoff env doctor`", "bakeoff doctor", add_doctor};

}  // namespace bakeoff::cli
