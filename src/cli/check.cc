// `bakeoff check`: would this script be raced, and what does it lack? In three steps, each of which needs
// more than the one before and is skipped with a word where the one before found faults: the source is read,
// without running it; it is imported in its environment; the recipe's workload is built with it. So a
// newcomer without any framework installed still learns what the source alone tells.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/temporary_folder.h"
#include "base/texts.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/recipe_options.h"
#include "cli/usage.h"
#include "emit/all/frameworks.h"
#include "environments/environments.h"
#include "environments/runner_files.h"
#include "environments/script_environment.h"
#include "plan/plan.h"
#include "proc/launcher.h"
#include "proc/run.h"
#include "recipe/contenders.h"
#include "recipe/recipe.h"

namespace bakeoff::cli {

struct CheckOptions {
  fs::path script = {};
  std::string framework = {};  // empty: the one that the script imports
  fs::path recipe = {};        // trained for two steps on its data; empty: not trained
};

namespace {

using nlohmann::json;

constexpr int64_t kReadLimit = 20 * kSecond;  // of the source
constexpr int64_t kTryLimit = 120 * kSecond;  // with the framework's own import, which may be cold

// Runs a command of Python; its standard output and error together.
Result<proc::CommandResult> run_python(std::vector<std::string> argv, const fs::path& runner, int64_t limit) {
  proc::CommandOptions options;
  options.child.argv = std::move(argv);
  options.child.env = {{"PYTHONPATH", runner.string()}, {"PYTHONSAFEPATH", "1"}};
  options.child.own_temporary_folder = true;
  options.timeout_ns = limit;
  return proc::run_command(options);
}

// What the source alone tells (runners/bakeoff_runner/static_check.py), read by any Python: nothing is run.
Result<json> read_source(const fs::path& script, const std::string& framework, const fs::path& runner) {
  auto python = find_python();
  std::vector<std::string> argv = {python ? python->string() : "python3", "-I",
                                   (runner / "bakeoff_runner" / "static_check.py").string(), script.string(),
                                   framework};
  TRY(const auto done, run_python(std::move(argv), runner, kReadLimit));
  json found = parse_json<json>(done.output_tail);
  if (done.ok() && found.is_object()) return found;
  return Error{.message = fmt::format("'{}' cannot be read as Python ({})\n{}", script.string(), done.text(),
                                      done.output_tail),
               .remedy = "is it a Python script in UTF-8?"};
}

struct Printer {
  std::string script;

  void problem(int64_t line, const std::string& text, const std::string& remedy) const {
    const std::string where = line > 0 ? fmt::format("{}:{}", script, line) : script;
    print(fmt::format("{}: {}\n  {}\n", where, text, remedy));
  }
  void found(const json& result) const {
    for (const json& one : result["problems"]) problem(one["line"], one["text"], one["remedy"]);
    if (!result.contains("missing") || result["missing"].empty()) return;
    print(
        fmt::format("{} lacks {}.\n", script, join(result["missing"].get<std::vector<std::string>>(), ", ")));
    if (!result["lines"].empty()) {
      print("\nAdd at its end:\n\n");
      for (const json& line : result["lines"]) print(line.get<std::string>() + "\n");
      print("\n");
    }
    for (const json& what : result["unsolved"]) print("Write " + what.get<std::string>() + "\n");
  }
  void notes(const json& result) const {
    for (const json& note : result.value("notes", json::array()))
      print("Note: " + note.get<std::string>() + "\n");
  }
};

// What the recipe gives to its contenders, written for this one. Fills in "data", "weights", "layout" and
// the script's place.
Status give_recipe(const fs::path& recipe_file, recipe::Contender contender, const fs::path& script,
                   const fs::path& folder, json& given) {
  TRY(recipe::Recipe recipe, chosen_recipe(recipe_file));
  contender.script = script;
  TRY(contender.source, read_file(script));
  recipe.contenders = {contender};
  ConsoleProgress progress;
  CHECK_OK(write_scripts(recipe, folder, progress.lines()));
  const fs::path copy = folder / contender.file;
  given["script"] = copy.string();
  given["data"] = (folder / "data.safetensors").string();
  given["weights"] = (folder / "weights.safetensors").string();
  if (fs::path layout = fs::path(copy).replace_extension(".layout.json"); fs::exists(layout))
    given["layout"] = layout.string();
  return Done{};
}

// Imports the script, with `lines` added, in its environment (runners/bakeoff_runner/check.py).
Result<json> try_script(const CheckOptions& options, const recipe::Contender& contender,
                        const std::vector<std::string>& lines, const Environment& environment,
                        const fs::path& runner) {
  TRY(const TemporaryFolder folder, TemporaryFolder::make("check"));
  TRY(std::string source, read_file(options.script));
  for (const std::string& line : lines) source += "\n" + line + "\n";
  const fs::path copy = folder.path() / options.script.filename();
  CHECK_OK(write_file(copy, source));
  if (auto layout = read_file(fs::path(options.script).replace_extension(".layout.json")))
    CHECK_OK(write_file(fs::path(copy).replace_extension(".layout.json"), *layout));
  const fs::path result = folder.path() / "result.json";
  json given = {{"framework", contender.framework},
                {"options", contender.settings},
                {"script", copy.string()},
                {"result", result.string()}};
  if (!options.recipe.empty())
    CHECK_OK(give_recipe(options.recipe, contender, copy, folder.path() / "recipe", given));
  TRY(const auto done, run_python({environment.python.string(), "-m", "bakeoff_runner.check", dump(given)},
                                  runner, kTryLimit));
  if (const auto text = read_file(result)) return parse_json<json>(*text);
  return json{
      {"problem", fmt::format("its process ended without a result: {}\n{}", done.text(), done.output_tail)},
      {"remedy", "a worker would end so too"},
      {"line", nullptr}};
}

int answer(const CheckOptions& options, const fs::path& config) {
  const Printer out{options.script.filename().string()};
  const auto runner = unpack_runner(bakeoff_home());
  if (!runner) return fail(runner.error());
  const auto source = read_file(options.script);
  if (!source) return fail(source.error());
  const emit::Framework* imported = recipe::framework_of(*source);
  const std::string framework =
      imported == nullptr || !options.framework.empty() ? options.framework : imported->name;
  const auto found = read_source(options.script, framework, *runner);
  if (!found) return fail(found.error());
  if (!found->contains("problems")) {
    const auto known = found->value("known", std::vector<std::string>{});
    return fail(
        {.message = framework.empty()
                        ? fmt::format("'{}' imports no framework whose scripts can be checked", out.script)
                        : fmt::format("scripts of {} cannot be checked", framework),
         .remedy = fmt::format("name one: --framework {}", join(known, ", "))});
  }
  out.found(*found);
  out.notes(*found);
  if (!(*found)["problems"].empty() || found->contains("invalid") || !(*found)["unsolved"].empty()) return 1;
  const auto contender = contender_of(options.script, framework);
  if (!contender) return fail(contender.error());
  const auto environment = environment_of(*contender, config);
  if (!environment) return fail(environment.error());
  if (!environment->ok())
    return fail(
        {.message = "only the source was read: " + environment->reason, .remedy = environment->remedy});
  const auto lines = (*found)["lines"].get<std::vector<std::string>>();
  const auto tried = try_script(options, *contender, lines, *environment, *runner);
  if (!tried) return fail(tried.error());
  out.notes(*tried);
  if (tried->contains("problem")) {
    if (!lines.empty()) print("With these lines:\n");
    const json& line = (*tried)["line"];
    out.problem(line.is_number() ? line.get<int64_t>() : 0, (*tried)["problem"], (*tried)["remedy"]);
    return 1;
  }
  print(
      fmt::format("{}{} is a contender{}. In a recipe:\n\n  {{ script = \"{}\", framework = \"{}\" }}\n\n"
                  "Whether it computes the same as the others is what `bakeoff parity RECIPE` proves.\n",
                  lines.empty() ? "" : "With these lines ", out.script,
                  options.recipe.empty() ? "" : ", and trains on the recipe's data from its weights",
                  options.script.string(), framework));
  return lines.empty() ? 0 : 1;
}

int check(const CheckOptions& options, const fs::path& config) {
  if (!fs::is_regular_file(options.script)) {
    return fail({.message = fmt::format("there is no script '{}'", options.script.string()),
                 .remedy = "name a Python file"});
  }
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  return answer(options, config);
}

Action add_check(CLI::App& sub) {
  const auto options = std::make_shared<CheckOptions>();
  sub.add_option("script", options->script, "Python script")->required();
  sub.add_option("--framework", options->framework,
                 "torch, keras, keras2 or jax; default the one that it imports")
      ->check(one_of({"torch", "keras", "keras2", "jax"}));
  sub.add_option("--recipe", options->recipe, "train two steps on this recipe's data, from its weights")
      ->type_name("RECIPE");
  return [options](const Invocation& line) { return check(*options, line.config); };
}

}  // namespace

const Command kCheck = {"check",
                        "Say what a script of your own lacks to be a contender, and the lines to add",
                        "bakeoff check mine.py --recipe race.toml", add_check};

}  // namespace bakeoff::cli
