// CLI11 parses; what is here is what a user sees of it: help texts without the parser's names of types,
// messages of our own form (what is wrong, the remedy), the words of a script behind the command's own, and
// exit codes. A command is one value in one file; this table of them is the order of --help.

#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/home.h"
#include "base/nearest.h"
#include "base/texts.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/help.h"
#include "cli/usage.h"
#include "proc/interrupt.h"

namespace bakeoff::cli {
namespace {

// In the order of --help.
const Command* const kCommands[] = {
    &kRun,    &kParity, &kCheck,    &kReport,     &kExport, &kSuite,   &kFleet,       &kReproduce, &kHistory,
    &kStore,  &kTune,   &kSelfTest, &kCalibrate,  &kEmit,   &kShow,    &kOps,         &kRecipe,    &kRecipes,
    &kInit,   &kExec,   &kExplain,  &kGate,       &kBisect, &kCompare, &kImport,      &kTranslate, &kEnv,
    &kDoctor, &kData,   &kMachine,  &kCompletion, &kMan,    &kHelp,    &kExplainTerms};

// What the program says where nothing is asked of it.
constexpr const char* kStart =
    "Bakeoff races the same recipe in every framework and gives one honest verdict.\n\n"
    "  bakeoff env create       creates the environments of the frameworks\n"
    "  bakeoff run mnist_cnn    proves that they compute the same, races them\n"
    "  bakeoff init             writes a recipe to edit\n\n"
    "All commands: bakeoff --help. Recipes inside: bakeoff recipes.\n"
    "Words: bakeoff help WORD. Pages: bakeoff help docs.\n";

// What the value of an option is, as --help shows it, where the option itself does not say.
constexpr std::pair<const char*, const char*> kValueNames[] = {
    {"--out", "DIR"},        {"--resume", "DIR"},         {"--repo", "DIR"},
    {"--html", "FILE"},      {"--json", "FILE"},          {"--profile", "FILE"},
    {"--python", "FILE"},    {"--framework", "NAME"},     {"--format", "FORMAT"},
    {"--minutes", "NUMBER"}, {"--seconds", "NUMBER"},     {"--last", "NUMBER"},
    {"--build", "COMMAND"},  {"--budget", "TIME|PAIRS"},  {"recipe", "RECIPE"},
    {"script", "SCRIPT"},    {"target", "RECIPE|SCRIPT"},
};

// Whether the value still has the name that the parser gives to all values of its type.
bool named_by_type(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  return name.starts_with("TEXT") || name.starts_with("FLOAT") || name.starts_with("INT");
}

void name_values(CLI::App& app) {
  for (const auto& [name, value] : kValueNames) {
    CLI::Option* option = app.get_option_no_throw(name);
    if (option != nullptr && option->get_type_size() > 0 && named_by_type(*option)) option->type_name(value);
  }
  for (CLI::App* sub : app.get_subcommands({})) name_values(*sub);
}

struct Added {
  const Command* command;
  CLI::App* sub;
  Action action;
};

std::vector<Added> add_commands(CLI::App& app) {
  std::vector<Added> all;
  for (const Command* command : kCommands) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    if (command->example != nullptr) sub->footer(std::string("Example:\n  ") + command->example);
    all.push_back({command, sub, command->add(*sub)});
    name_values(*sub);
  }
  return all;
}

// The first word from `at` on that is neither an option nor an option's value; `argc`: there is none.
int word_at(const CLI::App& app, int at, int argc, char** argv) {
  for (; at < argc; ++at) {
    const std::string word = argv[at];
    if (!word.starts_with("-")) return at;
    const CLI::Option* option = app.get_option_no_throw(word);
    if (option != nullptr && option->get_expected_max() > 0) ++at;
  }
  return argc;
}

// Takes the scripts' words, which stand behind argv[at], off the line. Returns the number of words that are left.
int take_tail(const Added& added, int at, int argc, char** argv, std::vector<std::string>& tail) {
  int end = argc, begin = argc;
  if (added.command->tail == Tail::kBehindDashes) {
    end = static_cast<int>(std::find(argv + at, argv + argc, std::string_view("--")) - argv);
    begin = std::min(end + 1, argc);
  } else if (added.command->tail == Tail::kBehindScript) {
    end = begin = std::min(word_at(*added.sub, at + 1, argc, argv) + 1, argc);
  }
  tail.assign(argv + begin, argv + argc);
  return end;
}

// The exit code where there is nothing to carry out: after help, or an error.
std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    const CLI::App* asked = &app;
    while (!asked->get_subcommands().empty()) asked = asked->get_subcommands().back();
    print(help_text(*asked, output_width()));
    return finish(0);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    note(trimmed(usage_error(app, argc, argv, e)));
    return kBadInput;
  }
}

int start(const Added& added, const Invocation& line) {
  proc::install_interrupt_handlers();
  if (const auto home = check_home(); !home && added.command->home == Home::kNeeded)
    return fail(home.error());
  return added.action(line);
}

}  // namespace

CLI::App* add_subcommand(CLI::App& parent, const std::string& name, const std::string& summary,
                         const std::string& example) {
  CLI::App* sub = parent.add_subcommand(name, summary);
  sub->footer("Example:\n  " + example);
  return sub;
}

int run_command_line(int argc, char** argv) {
  CLI::App app{"Same recipe, every framework, one honest verdict.", "bakeoff"};
  app.set_version_flag("--version", std::string("bakeoff ") + kVersion);
  app.footer(
      "Start with:\n  bakeoff env create\n  bakeoff run mnist_cnn\n\n"
      "Exit codes: 0 done, 1 the answer is no (nothing ranked, a bar missed), 2 bad input, "
      "3 no verdict because the host was busy or its state is unknown, 130 Ctrl-C, "
      "143 SIGTERM.");
  app.require_subcommand(1);
  Invocation line;
  app.add_option("--config", line.config,
                 "configuration file; default $BAKEOFF_CONFIG or $BAKEOFF_HOME/config.toml")
      ->type_name("FILE");
  const std::vector<Added> all = add_commands(app);
  if (argc < 2) {
    print(kStart);
    return kBadInput;
  }
  if (const int at = word_at(app, 1, argc, argv); at < argc) {
    const std::string word = argv[at];
    const auto named = std::ranges::find(all, word, [](const Added& one) { return one.command->name; });
    if (named == all.end()) {
      note(fmt::format("bakeoff: unknown command '{}'\n  {}", word, suggest(word, command_names(app))));
      return kBadInput;
    }
    argc = take_tail(*named, at, argc, argv, line.tail);
  }
  if (const auto code = parse(app, argc, argv)) return *code;
  const CLI::App* chosen = app.get_subcommands().at(0);
  return finish(start(*std::ranges::find(all, chosen, &Added::sub), line));
}

}  // namespace bakeoff::cli
