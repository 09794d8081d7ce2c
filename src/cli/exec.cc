// `bakeoff exec SCRIPT`: a script in the environment of the framework that it imports.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "cli/command.h"
#include "cli/console.h"
#include "environments/script_environment.h"
#include "proc/launcher.h"

namespace bakeoff::cli {
namespace {

struct ExecOptions {
  fs::path script = {};
  std::string framework = {};  // empty: the one that the script imports
};

Result<fs::path> interpreter_of(const ExecOptions& options, const fs::path& config) {
  std::string framework = options.framework;
  if (framework.empty()) {
    const emit::Framework* found = framework_of_script(options.script);
    if (found == nullptr)
      return Error{.message = fmt::format("'{}' imports no framework that has an environment",
                                          options.script.string()),
                   .remedy = "name one: bakeoff exec --framework NAME SCRIPT"};
    framework = found->name;
  }
  TRY(const recipe::Contender contender, contender_of(options.script, framework));
  TRY(const Environment environment, environment_of(contender, config));
  if (!environment.ok())
    return Error{.message = fmt::format("environment {}: {}", environment.name, environment.reason),
                 .remedy = environment.remedy};
  return environment.python;
}

int exec(const ExecOptions& options, const Invocation& line) {
  if (!fs::is_regular_file(options.script))
    return fail({.message = fmt::format("there is no script '{}'", options.script.string()),
                 .remedy = "name a Python file, for example one that `bakeoff emit` wrote"});
  if (options.script.extension() != ".py")
    return fail({.message = fmt::format("'{}' is no Python script", options.script.string()),
                 .remedy = "the CMakeLists.txt beside a C++ program builds it"});
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  const auto python = interpreter_of(options, line.config);
  if (!python) return fail(python.error());
  std::vector<std::string> words = {python->string(), options.script.string()};
  words.insert(words.end(), line.tail.begin(), line.tail.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  return fail({.message = fmt::format("cannot start '{}': {}", python->string(), std::strerror(errno))});
}

Action add_exec(CLI::App& sub) {
  const auto options = std::make_shared<ExecOptions>();
  sub.add_option("script", options->script, "Python script; what stands behind it are its arguments")
      ->required();
  sub.add_option("--framework", options->framework,
                 "framework of the environment; default the one that it imports");
  return [options](const Invocation& line) { return exec(*options, line); };
}

}  // namespace

const Command kExec = {"exec",
                       "Run a script with the Python of its framework's environment",
                       "bakeoff exec scripts/train_torch.py --steps 20",
                       add_exec,
                       Home::kNeeded,
                       Tail::kBehindScript};

}  // namespace bakeoff::cli
