// One environment is ready, or the old one is still there. The old folder is moved to .NAME.old, the new
// one is made in its place, and its stamp is written last. If making fails, the old one is moved back. If
// the process is killed, the next process does that: a folder without a stamp is not finished. A lock file
// per environment keeps two processes apart. Several environments are made at once, each in a thread.
//
// pip is not run if every pinned package is there already, for example after a comment of the list has
// changed: the stamp is renewed.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/nearest.h"
#include "base/texts.h"
#include "environments/environments.h"
#include "proc/launcher.h"
#include "proc/run.h"

namespace bakeoff {
namespace {

constexpr const char* kPythonCheck =
    "import sys\n"
    "print('bakeoff:%d.%d' % sys.version_info[:2])\n"
    "import venv, ensurepip\n";

// Whether `python` will do; the error says why not.
Status check_python(const std::string& python) {
  std::string version;
  proc::CommandOptions options;
  options.child.argv = {python, "-c", kPythonCheck};
  options.timeout_ns = 30 * kSecond;
  options.on_line = [&](std::string_view line) {
    if (line.starts_with("bakeoff:")) version = line.substr(8);
  };
  TRY(const auto result, proc::run_command(options));
  if (version.empty()) return Error{.message = fmt::format("'{}' does not run: {}", python, result.text())};
  const int major = std::atoi(version.c_str());
  const int minor = std::atoi(version.substr(version.find('.') + 1).c_str());
  if (major < 3 || (major == 3 && minor < 11)) {
    return Error{.message = fmt::format("'{}' is Python {}, at least 3.11 is needed", python, version)};
  }
  if (!result.ok()) return Error{.message = fmt::format("'{}' has no venv", python)};
  return Done{};
}

std::string remedy_for(const std::string& output, const fs::path& log) {
  auto has = [&](const char* text) { return output.find(text) != std::string::npos; };
  if (has("No space left on device")) return "free some GB, or set BAKEOFF_HOME to a folder on a larger disk";
  if (has("Permission denied")) return "make the folder writable, or set BAKEOFF_HOME to one that is";
  if (has("Could not find a version") || has("No matching distribution") || has("Connection") ||
      has("Retrying")) {
    return "check the network, or point pip to a mirror (PIP_INDEX_URL, PIP_FIND_LINKS); the whole output is "
           "in " +
           log.string();
  }
  return "the whole output is in " + log.string();
}

// pip's own errors where it printed some, else its last lines.
std::string essence(const std::deque<std::string>& lines) {
  std::vector<std::string> errors;
  for (const std::string& line : lines) {
    if (line.starts_with("ERROR:") || line.find("Error:") != std::string::npos) errors.push_back(line);
  }
  if (errors.empty())
    errors.assign(lines.end() - std::min<std::ptrdiff_t>(5, std::ssize(lines)), lines.end());
  return join(errors, "\n  ");
}

// Makes one environment.
class Creation {
 public:
  Creation(const EnvironmentStore& store, const Requirements& requirements, Progress progress)
      : store_(store),
        requirements_(requirements),
        progress_(std::move(progress)),
        folder_(environment_folder(store, requirements.name)),
        old_(store.home / "envs" / ("." + requirements.name + ".old")),
        log_(store.home / "envs" / (requirements.name + ".log")) {}

  Status run() {
    const std::string& name = requirements_.name;
    if (store_.config.interpreters.contains(name)) {
      return Error{.message = fmt::format("'{}' is an interpreter of yours, named in '{}'", name,
                                          store_.config.file.string()),
                   .remedy = "remove it there to have it created"};
    }
    TRY(pins_, parse_pins(requirements_));
    TRY(const auto lock, acquire());
    restore_after_kill();
    const Environment now = inspect_environment(store_, requirements_);
    if (now.ok()) {
      progress_("ready");
      return Done{};
    }
    if (now.state == EnvironmentState::kOutdated && first_misfit(pins_, now.versions).empty()) {
      progress_("has every pinned package already: used as it is");
      import_once();
      return write_file(stamp_file(store_, name), stamp_text(requirements_));
    }
    return remake(now);
  }

 private:
  Result<FileLock> acquire() {
    const fs::path path = store_.home / "envs" / ("." + requirements_.name + ".lock");
    if (auto lock = FileLock::attempt(path)) return lock;
    progress_("waiting for another process that creates it");
    return FileLock::wait(path);
  }

  // A killed process left the old environment aside: nothing newer was finished.
  void restore_after_kill() {
    std::error_code code;
    if (!fs::exists(old_, code)) return;
    if (fs::exists(stamp_file(store_, requirements_.name), code)) {
      fs::remove_all(old_, code);
    } else {
      put_back();
    }
  }

  void put_back() {
    std::error_code code;
    fs::remove_all(folder_, code);
    fs::rename(old_, folder_, code);
  }

  Status remake(const Environment& now) {
    TRY(const fs::path python, find_python());
    std::error_code code;
    if (now.state != EnvironmentState::kMissing) {
      progress_(fmt::format("making it again: {}", now.reason));
      fs::remove_all(old_, code);
      fs::rename(folder_, old_, code);
      if (code)
        return Error{.message = fmt::format("cannot move '{}': {}", folder_.string(), code.message())};
    }
    const Status made = make(python);
    if (made) {
      fs::remove_all(old_, code);
    } else if (fs::exists(old_, code)) {
      put_back();
    } else {
      fs::remove_all(folder_, code);
    }
    return made;
  }

  Status make(const fs::path& python) {
    const fs::path list = store_.home / "envs" / (requirements_.name + ".txt");
    CHECK_OK(write_file(list, requirements_.text));
    CHECK_OK(write_file(log_, ""));
    progress_(fmt::format("creating with {}", python.string()));
    CHECK_OK(command({python.string(), "-m", "venv", folder_.string()}, 300));
    // Compiling modules takes three quarters of pip's time, and most are never imported.
    std::vector<std::string> install = {(folder_ / "bin" / "python").string(),
                                        "-m",
                                        "pip",
                                        "install",
                                        "--no-input",
                                        "--no-color",
                                        "--disable-pip-version-check",
                                        "--progress-bar",
                                        "off",
                                        "--prefer-binary",
                                        "--no-compile"};
    if (without_dependencies(requirements_)) install.push_back("--no-deps");
    install.insert(install.end(), {"-r", list.string()});
    CHECK_OK(command(std::move(install), 7200));
    const std::string misfit = first_misfit(pins_, installed_packages(folder_));
    if (!misfit.empty())
      return Error{.message = "pip succeeded, but " + misfit, .remedy = "see " + log_.string()};
    import_once();
    CHECK_OK(write_file(stamp_file(store_, requirements_.name), stamp_text(requirements_)));
    progress_("ready");
    return Done{};
  }

  // Leaves compiled what every worker imports, also where PYTHONDONTWRITEBYTECODE is set, as it is in many containers:
  // there each start of a worker would compile all of it, for 2 to 8 s of a processor. What cannot be imported is the
  // workers' to tell.
  void import_once() {
    Texts variables;
    std::string modules;
    for (const std::string& word : imported_once(requirements_)) {
      const size_t is = word.find('=');
      if (is != std::string::npos)
        variables[word.substr(0, is)] = word.substr(is + 1);
      else
        modules += (modules.empty() ? "import " : ", ") + word;
    }
    if (modules.empty()) return;
    progress_("importing once");
    std::ignore = command({(folder_ / "bin" / "python").string(), "-c", modules}, 600, variables);
  }

  Status command(std::vector<std::string> argv, int64_t seconds, const Texts& variables = {}) {
    std::deque<std::string> last;
    int packages = 0;
    proc::CommandOptions options;
    options.child.argv = std::move(argv);
    options.child.env = variables;
    options.child.env_remove = {"PYTHONHOME",
                                "PYTHONPATH",
                                "PYTHONDONTWRITEBYTECODE",
                                "VIRTUAL_ENV",
                                "PIP_REQUIRE_VIRTUALENV",
                                "PIP_TARGET",
                                "PIP_PREFIX",
                                "PIP_USER"};
    options.timeout_ns = seconds * kSecond;
    options.on_line = [&](std::string_view line) {
      last.emplace_back(line);
      if (last.size() > 40) last.pop_front();
      text_ += std::string(line) + "\n";
      const std::string shown = pip_progress(line);
      if (shown.empty()) return;
      const bool pinned = std::ranges::any_of(
          pins_, [&](const Pin& pin) { return shown == pin.package + " " + pin.version; });
      progress_(pinned ? fmt::format("{} ({} of {})", shown, ++packages, pins_.size()) : shown);
    };
    const auto result = proc::run_command(options);
    CHECK_OK(write_file(log_, text_));
    if (!result) return result.error();
    if (result->ok()) return Done{};
    const std::string output = join(last, "\n");
    return Error{.message = fmt::format("'{} ...' failed: {}\n  {}",
                                        join(options.child.argv.begin(), options.child.argv.begin() + 3, " "),
                                        result->text(), essence(last)),
                 .remedy = remedy_for(output, log_)};
  }

  const EnvironmentStore& store_;
  const Requirements& requirements_;
  const Progress progress_;
  const fs::path folder_, old_, log_;
  std::vector<Pin> pins_;
  std::string text_;  // of the log
};

Result<std::vector<const Requirements*>> select(const EnvironmentStore& store,
                                                const std::vector<std::string>& names) {
  std::vector<const Requirements*> chosen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(store.requirements, name, &Requirements::name);
    if (found == store.requirements.end()) {
      return Error{.message = fmt::format("unknown environment '{}'", name),
                   .remedy = suggest(name, environment_names(store.requirements))};
    }
    if (std::ranges::find(chosen, &*found) == chosen.end()) chosen.push_back(&*found);
  }
  if (!names.empty()) return chosen;
  for (const Requirements& requirements : store.requirements) {
    if (store.config.interpreters.contains(requirements.name)) continue;
    if (extended(requirements).empty() || fs::exists(environment_folder(store, requirements.name)))
      chosen.push_back(&requirements);
  }
  return chosen;
}

}  // namespace

Result<fs::path> find_python() {
  std::vector<std::string> candidates = {"python3.11", "python3"};
  if (const char* named = std::getenv("BAKEOFF_PYTHON"); named && *named) candidates = {named};
  const char* path = std::getenv("PATH");
  std::string reasons;
  for (const std::string& candidate : candidates) {
    auto program = proc::find_program(candidate, path ? path : "/usr/bin:/bin");
    const Status usable = program ? check_python(program->string()) : Status(program.error());
    if (usable) return *program;
    reasons += "\n  " + usable.error().message;
  }
  return Error{
      .message = "found no Python that can make environments:" + reasons,
      .remedy = "apt-get install python3 python3-venv, or set BAKEOFF_PYTHON to a Python of at least 3.11"};
}

std::string pip_progress(std::string_view line) {
  while (line.starts_with(' ')) line.remove_prefix(1);
  if (line.starts_with("Collecting ")) {
    line.remove_prefix(11);
    std::string text(line.substr(0, line.find_first_of(" ;")));
    const size_t at = text.find_first_of("=<>~![");
    if (at == std::string::npos) return text;
    const bool exact = text.compare(at, 2, "==") == 0 && text.find_first_of(",*", at) == std::string::npos;
    const std::string package = normalised(text.substr(0, at));
    return exact ? package + " " + text.substr(at + 2) : package;
  }
  if (line.starts_with("Downloading ")) {
    line.remove_prefix(12);
    const size_t size = line.find(" (");
    if (size == std::string_view::npos || line.find("MB)", size) == std::string_view::npos) return "";
    std::string_view file = line.substr(0, size);
    if (const size_t slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
    const size_t second_dash = file.find('-', file.find('-') + 1);
    return fmt::format("downloading {}{}", file.substr(0, second_dash), line.substr(size));
  }
  if (line.starts_with("Installing collected packages:")) {
    return fmt::format("installing {} packages", std::ranges::count(line, ',') + 1);
  }
  return "";
}

Status create_environments(const EnvironmentStore& store, const std::vector<std::string>& names,
                           const Progress& progress) {
  TRY(const auto chosen, select(store, names));
  CHECK_OK(proc::start_launcher());  // before there are threads
  std::mutex mutex;
  std::vector<std::optional<Error>> errors(chosen.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < chosen.size(); ++i) {
    threads.emplace_back([&, i] {
      const Progress one = [&](const std::string& line) {
        const std::lock_guard guard(mutex);
        progress(chosen[i]->name + ": " + line);
      };
      if (const Status done = Creation(store, *chosen[i], one).run(); !done) errors[i] = done.error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::optional<Error> all;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!errors[i]) continue;
    const std::string text = fmt::format("environment '{}': {}", chosen[i]->name, errors[i]->message);
    all = all ? Error{.message = all->text() + "\n" + text, .remedy = errors[i]->remedy}
              : Error{.message = text, .remedy = errors[i]->remedy};
  }
  if (all) return *all;
  return Done{};
}

}  // namespace bakeoff
