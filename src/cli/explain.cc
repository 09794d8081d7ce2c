#include "explain/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/temporary_folder.h"
#include "base/texts.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/explain.h"
#include "cli/shared_options.h"
#include "cli/usage.h"
#include "emit/all/frameworks.h"
#include "environments/runner_files.h"
#include "environments/script_environment.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "report/explain_page.h"
#include "sample/machine_limits.h"

namespace bakeoff::cli {
namespace {

namespace ex = bakeoff::explain;

// The file of a module that is looked for from this folder; empty: it is not here.
fs::path file_of(std::string module) {
  std::ranges::replace(module, '.', '/');
  for (const fs::path& file : {fs::path(module + ".py"), fs::path(module) / "__main__.py"})
    if (fs::is_regular_file(file)) return file;
  return {};
}

Result<fs::path> interpreter(const ExplainOptions& options, const fs::path& file, const fs::path& config) {
  if (!options.python.empty()) return options.python;
  TRY(const auto python, interpreter_of_script(file, options.framework, config));
  if (python) return *python;
  return Error{.message = fmt::format(
                   "neither '{}' nor a module beside it imports a framework, so its environment is not known",
                   file.string()),
               .remedy = "name one: --framework NAME, or the interpreter: --python FILE"};
}

// As a file is called from the folder, or from a copy of it; one that lies elsewhere by its full path.
std::string argument_of(const fs::path& file, const fs::path& folder) {
  std::error_code failed;
  const fs::path full = fs::canonical(file, failed);
  const fs::path relative = fs::relative(full, folder, failed);
  if (failed) return file.string();
  return relative.empty() || *relative.begin() == ".." ? full.string() : relative.string();
}

Result<ex::Subject> subject_of(const ExplainOptions& options, const std::string& name,
                               const std::vector<std::string>& arguments, const fs::path& runner,
                               const fs::path& config) {
  const fs::path file = options.modules ? file_of(name) : fs::path(name);
  if (!options.modules && !fs::is_regular_file(file))
    return Error{.message = fmt::format("there is no script '{}'", name),
                 .remedy = "name a Python file, or a module with -m"};
  TRY(const fs::path python, interpreter(options, file, config));
  TRY(ex::Subject subject,
      ex::subject_of_file(file, {.python = python, .runner = runner, .folder = fs::current_path()}));
  if (options.modules) {
    subject.name = name;
    subject.spec.arguments = {"-m"};
  }
  subject.spec.arguments.push_back(options.modules ? name : argument_of(name, subject.spec.folder));
  subject.spec.arguments.insert(subject.spec.arguments.end(), arguments.begin(), arguments.end());
  return subject;
}

// Two scripts of one name get their folders as part of their names, one script that runs twice its arguments.
void name_apart(std::vector<ex::Subject>& subjects, const ExplainOptions& options) {
  if (subjects.size() < 2 || subjects[0].name != subjects[1].name) return;
  for (size_t i : {0, 1}) subjects[i].name = options.scripts[i];
  if (subjects[0].name != subjects[1].name) return;
  const auto& second = options.second_arguments.value_or(options.arguments);
  if (second == options.arguments) {
    subjects[1].name += " (again)";
    return;
  }
  subjects[0].name += fmt::format(" {}", join(options.arguments, " "));
  subjects[1].name += fmt::format(" {}", join(second, " "));
}

Result<ex::Explanation> explained(const ExplainOptions& options, const fs::path& config) {
  TRY(const fs::path runner, unpack_runner(bakeoff_home()));
  TRY(const TemporaryFolder scratch, TemporaryFolder::make("explain"));
  ex::ExplainJob job{.folder = options.out.empty() ? scratch.path() : options.out,
                     .seconds = options.seconds,
                     .processors = static_cast<int>(sample::allowed_cpus().size()),
                     .tuning = options.tuning};
  const std::vector<std::string>& second = options.second_arguments.value_or(options.arguments);
  for (const std::string& name : options.scripts) {
    const auto& arguments = job.subjects.empty() ? options.arguments : second;
    TRY(ex::Subject subject, subject_of(options, name, arguments, runner, config));
    job.subjects.push_back(std::move(subject));
  }
  name_apart(job.subjects, options);
  std::error_code failed;
  fs::create_directories(job.folder, failed);
  if (failed)
    return Error{.message = fmt::format("cannot make '{}': {}", job.folder.string(), failed.message())};
  ConsoleProgress progress;
  progress.lines()(longest_text(job.seconds));
  TRY(ex::Explanation found, ex::explain(std::move(job), progress.lines()));
  if (!options.out.empty()) {
    CHECK_OK(write_file(options.out / "explain.json", ex::to_json(found)));
    CHECK_OK(write_file(options.out / "explain.html", report::render_explanation(found)));
  }
  if (!options.html.empty()) CHECK_OK(write_file(options.html, report::render_explanation(found)));
  return found;
}

}  // namespace

int explain(const ExplainOptions& options, const fs::path& config) {
  if (!options.rule.empty()) {
    const std::string text = options.rule == "all" ? ex::index_page() : ex::page(options.rule);
    if (text.empty())
      return fail({.message = fmt::format("there is no rule '{}'", options.rule),
                   .remedy = fmt::format("R1 to {}, or all", ex::topics().back().id)});
    print(text);
    return 0;
  }
  if (options.scripts.empty())
    return fail({.message = "no script is named", .remedy = "bakeoff explain train.py"});
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  const auto found = explained(options, config);
  if (!found) return fail(found.error());
  print(options.format == "json" ? ex::to_json(*found) : ex::to_text(*found, output_width(), options.all));
  return proc::interrupted() ? kInterrupted : 0;
}

namespace {

void add_explain_options(CLI::App& sub, ExplainOptions& options) {
  sub.add_option("scripts", options.scripts,
                 "one Python script, or the slow one and the fast one; their "
                 "arguments stand behind --, those of the second one behind another -- if they differ")
      ->expected(1, 2)
      ->type_name("SCRIPT");
  sub.add_flag("-m,--module", options.modules, "the names are modules, as of python -m");
  sub.add_option("--framework", options.framework,
                 "framework whose environment runs them; default the one that they import");
  sub.add_option("--python", options.python, "interpreter that runs them, in place of an environment's");
  sub.add_option("--seconds", options.seconds, "time of all runs together, about")
      ->check(number_from(at_least(30.0), 36000.0))
      ->capture_default_str();
  sub.add_option("--out", options.out, "folder for logs of the scripts, explain.json and explain.html");
  sub.add_option("--html", options.html, "path of the HTML report");
  sub.add_flag("--all", options.all, "show what was tried and not confirmed, too");
  sub.add_option("--rule", options.rule, "print what a rule is about (R13), or all: their table");
  sub.add_option("--format", options.format, "text or json")->check(one_of({"text", "json"}));
}

Action add_explain(CLI::App& sub) {
  const auto options = std::make_shared<ExplainOptions>();
  add_explain_options(sub, *options);
  return [options](const Invocation& line) {
    const auto second = std::find(line.tail.begin(), line.tail.end(), "--");
    options->arguments.assign(line.tail.begin(), second);
    if (second != line.tail.end()) options->second_arguments.emplace(second + 1, line.tail.end());
    return explain(*options, line.config);
  };
}

}  // namespace

const Command kExplain = {"explain",
                          "Say why a training script is slower than another, or what would make it faster",
                          "bakeoff explain slow.py fast.py -- --epochs 3",
                          add_explain,
                          Home::kNeeded,
                          Tail::kBehindDashes};

}  // namespace bakeoff::cli
