#include <fmt/format.h>

#include "base/files.h"
#include "cli/console.h"
#include "cli/options.h"
#include "lab/doctor.h"
#include "lab/environments.h"
#include "proc/launcher.h"

namespace bakeoff::cli {
namespace {

void list(const lab::Workshop& shop) {
  for (const lab::Environment& e : lab::list_environments(shop)) {
    print(fmt::format("{:<12} {:<9} {}\n", e.name, lab::name(e.state),
                      e.ok() ? e.python.string() : e.why_not()));
    if (!e.ok()) continue;
    std::string versions;
    for (const std::string& package : lab::main_packages(e.name)) {
      const auto found = e.versions.find(package);
      if (found != e.versions.end())
        versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", package, found->second);
    }
    print(fmt::format("{:<12} {:<9} {}\n", "", "", versions));
  }
}

// One line a finding, its remedy below.
int diagnose(const lab::Workshop& shop) {
  std::vector<lab::Finding> findings;
  {
    Progress progress;
    findings = lab::doctor(shop, {}, progress.lines());
  }
  for (const lab::Finding& f : findings) {
    print(fmt::format("{:<8} {:<22} {}\n", lab::name(f.level), f.topic, f.text));
    if (!f.remedy.empty()) print(fmt::format("{:<8} {:<22} {}\n", "", "", f.remedy));
  }
  return lab::has_problem(findings) ? 1 : 0;
}

}  // namespace

int env(const EnvOptions& options, const fs::path& config) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  const fs::path home = bakeoff_home();
  const auto loaded = lab::load_config(config, home, lab::environment_names());
  if (!loaded) return fail(loaded.error());
  const lab::Workshop shop{.home = home, .config = *loaded};
  switch (options.action) {
    case EnvAction::kCreate: {
      Progress progress;
      if (const auto done = lab::create_environments(shop, options.names, progress.lines()); !done)
        return fail(done.error());
      list(shop);
      return 0;
    }
    case EnvAction::kList:
      list(shop);
      return 0;
    case EnvAction::kDoctor:
      return diagnose(shop);
  }
  return 0;
}

}  // namespace bakeoff::cli
