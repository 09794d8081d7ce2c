#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "cli/console.h"
#include "cli/options.h"
#include "environments/environments.h"
#include "machine/doctor.h"
#include "proc/launcher.h"

namespace bakeoff::cli {
namespace {

constexpr int kPythonColumn = 23;  // of texts in `env list`
constexpr int kLevelColumn = 9;    // of topics in `doctor`

void list(const EnvironmentStore& store) {
  for (const Environment& e : list_environments(store)) {
    print(two_columns(fmt::format("{:<12} {}", e.name, name(e.state)), kPythonColumn,
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
}

// One line a finding, its remedy below.
int diagnose(const EnvironmentStore& store) {
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

}  // namespace

int env(const EnvOptions& options, const fs::path& config) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  const fs::path home = bakeoff_home();
  const auto loaded = load_config(config, home, environment_names());
  if (!loaded) return fail(loaded.error());
  const EnvironmentStore store{.home = home, .config = *loaded};
  switch (options.action) {
    case EnvAction::kCreate: {
      ConsoleProgress progress;
      if (const auto done = create_environments(store, options.names, progress.lines()); !done)
        return fail(done.error());
      list(store);
      return proc::interrupted() ? kInterrupted : 0;
    }
    case EnvAction::kList:
      list(store);
      return 0;
    case EnvAction::kDoctor:
      return diagnose(store);
  }
  return 0;
}

}  // namespace bakeoff::cli
