// The manual page and the shells' completions, generated from the same commands and options as --help.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/texts.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/glossary.h"
#include "cli/usage.h"
#include "recipe/shipped.h"

namespace bakeoff::cli {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// Text that troff leaves as it is: backslashes, hyphens and leading dots are its own.
std::string plain(const std::string& text) {
  std::string out = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  out = replaced(out, "\n.", "\n\\&.");
  return replaced(out, "\n'", "\n\\&'");
}

// The names that a user types: "--format", "-h", or "RECIPE" of a positional one.
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// Those that --help shows.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

void add_options(const CLI::App& app, std::string& page) {
  for (const CLI::Option* option : options_of(app)) {
    const auto names = names_of(*option);
    const std::string head = names.empty() ? option->get_name() : join(names, ", ");
    const std::string value = option->get_expected_max() > 0 && !names.empty() ? option->get_type_name() : "";
    page +=
        fmt::format(".TP\n\\fB{}\\fR {}\n{}\n", plain(head), plain(value), plain(option->get_description()));
    if (!option->get_default_str().empty())
      page += fmt::format("Default: {}.\n", plain(option->get_default_str()));
  }
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// What a command's first argument may be, where that is one of a few words.
std::vector<std::string> values_of(const CLI::App& app) {
  const std::string name = app.get_name();
  std::vector<std::string> words;
  if (app.get_option_no_throw("recipe") != nullptr || name == "init" || name == "show")
    for (const recipe::ShippedRecipe& one : recipe::shipped_recipes()) words.push_back(one.name);
  if (name == "help") {
    words = command_names(*app.get_parent());
    words.emplace_back("terms");
    for (const Term& term : glossary())
      for (const std::string& word : term.words)
        if (word.find(' ') == std::string::npos) words.push_back(word);
  }
  return words;
}

std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> words = values_of(app);
  for (const CLI::App* sub : commands_of(app)) words.push_back(sub->get_name());
  for (const CLI::Option* option : options_of(app)) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

std::string bash(const CLI::App& app) {
  std::string script = R"(# bash completion of bakeoff
_bakeoff() {
  local word=${COMP_WORDS[COMP_CWORD]} command= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -* ]] || { command=${COMP_WORDS[i]}; break; }
  done
  local words
  case $command in
)";
  for (const CLI::App* sub : commands_of(app))
    script += fmt::format("    {}) words='{}' ;;\n", sub->get_name(), join(words_of(*sub), " "));
  script += fmt::format("    *) words='{}' ;;\n", join(words_of(app), " "));
  return script + R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ $command && $word != -* ]] && COMPREPLY+=($(compgen -f -- "$word"))
}
complete -o filenames -F _bakeoff bakeoff
)";
}

// Within single quotes.
std::string quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

std::string zsh(const CLI::App& app) {
  std::string script = "#compdef bakeoff\nlocal -a commands\ncommands=(\n";
  for (const CLI::App* sub : commands_of(app))
    script += "  " + quoted(sub->get_name() + ":" + replaced(sub->get_description(), ":", "\\:")) + "\n";
  script += ")\nif ((CURRENT == 2)); then\n  _describe command commands\n  return\nfi\ncase $words[2] in\n";
  for (const CLI::App* sub : commands_of(app))
    script += fmt::format("  {}) compadd -- {}; _files ;;\n", sub->get_name(), join(words_of(*sub), " "));
  return script + "esac\n";
}

std::string fish(const CLI::App& app) {
  std::string script = "# fish completion of bakeoff\n";
  for (const CLI::App* sub : commands_of(app)) {
    script += fmt::format("complete -c bakeoff -n __fish_use_subcommand -f -a {} -d {}\n", sub->get_name(),
                          quoted(sub->get_description()));
    if (const auto values = values_of(*sub); !values.empty())
      script += fmt::format("complete -c bakeoff -n '__fish_seen_subcommand_from {}' -a '{}'\n",
                            sub->get_name(), join(values, " "));
    for (const CLI::Option* option : options_of(*sub)) {
      for (const std::string& name : option->get_lnames())
        script += fmt::format("complete -c bakeoff -n '__fish_seen_subcommand_from {}' -l {} -d {}\n",
                              sub->get_name(), name, quoted(option->get_description()));
    }
  }
  return script;
}

void add_commands(const CLI::App& app, const std::string& before, std::string& page) {
  for (const CLI::App* sub : commands_of(app)) {
    const std::string name = before + " " + sub->get_name();
    page += fmt::format(".SS {}\n{}\n", plain(name), plain(sub->get_description()));
    add_options(*sub, page);
    if (!sub->get_footer().empty()) page += ".PP\n.nf\n" + plain(sub->get_footer()) + "\n.fi\n";
    add_commands(*sub, name, page);
  }
}

// In the macros of man(7).
std::string man_page(const CLI::App& app) {
  std::string page = fmt::format(".TH BAKEOFF 1 \"\" \"bakeoff {}\"\n.SH NAME\nbakeoff \\- {}\n", kVersion,
                                 plain("same recipe, every framework, one honest verdict"));
  page += ".SH SYNOPSIS\n\\fBbakeoff\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR [...]\n.SH DESCRIPTION\n";
  page += plain(app.get_description()) + "\n.SH OPTIONS\n";
  add_options(app, page);
  page += ".SH COMMANDS\n";
  add_commands(app, "bakeoff", page);
  page += ".SH RECIPES\nThose inside the program; a command takes their names as it takes files.\n";
  for (const recipe::ShippedRecipe& one : recipe::shipped_recipes())
    page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", plain(one.name), plain(one.doc));
  page += ".SH WORDS\n";
  for (const Term& term : glossary())
    page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", plain(join(term.words, ", ")), plain(term.meaning));
  page += ".SH NOTES\n.nf\n" + plain(app.get_footer()) + "\n.fi\n";
  return page;
}

std::string completion(const CLI::App& app, const std::string& shell) {
  return shell == "bash" ? bash(app) : shell == "zsh" ? zsh(app) : fish(app);
}

Action add_completion(CLI::App& sub) {
  const auto shell = std::make_shared<std::string>();
  sub.add_option("shell", *shell, "bash, zsh or fish")->required()->check(one_of({"bash", "zsh", "fish"}));
  return [shell, &sub](const Invocation&) {
    print(completion(*sub.get_parent(), *shell));
    return 0;
  };
}

Action add_man(CLI::App& sub) {
  return [&sub](const Invocation&) {
    print(man_page(*sub.get_parent()));
    return 0;
  };
}

}  // namespace

const Command kCompletion = {"completion", "Print a shell's completion of these commands",
                             "bakeoff completion bash > /etc/bash_completion.d/bakeoff", add_completion,
                             Home::kUnused};
const Command kMan = {"man", "Print the manual page", "bakeoff man | man -l -", add_man, Home::kUnused};

}  // namespace bakeoff::cli
