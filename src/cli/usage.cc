#include "cli/usage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <span>

#include "base/nearest.h"
#include "base/texts.h"
#include "table/text.h"

namespace bakeoff::cli {
namespace {

using Arguments = std::span<char*>;

// The command whose options the words are, and the words behind its name.
struct Place {
  const CLI::App* command;
  std::string name;  // "run", "env create"; empty: the program itself
  Arguments words;
};

bool is_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && word != "--" &&
         std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

const CLI::Option* option_of(const CLI::App& app, const std::string& word) {
  return app.get_option_no_throw(word.substr(0, word.find('=')));
}

// Whether the next word is the option's value.
bool takes_next(const CLI::Option* option, const std::string& word) {
  return option != nullptr && option->get_expected_max() > 0 && word.find('=') == std::string::npos;
}

const CLI::App* subcommand(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* sub) { return sub->check_name(name); });
  return found.empty() ? nullptr : found[0];
}

Place place_of(const CLI::App& app, Arguments words) {
  Place place{&app, "", words};
  for (size_t i = 0; i < place.words.size(); ++i) {
    const std::string word = place.words[i];
    if (is_option(word)) {
      if (takes_next(option_of(*place.command, word), word)) ++i;
      continue;
    }
    const CLI::App* sub = subcommand(*place.command, word);
    if (sub == nullptr) break;
    place = {sub, place.command == &app ? word : place.name + " " + word, place.words.subspan(i + 1)};
    i = static_cast<size_t>(-1);
  }
  return place;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* one) { return !one->get_group().empty(); }))
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// The first word that looks like an option of the command and is none; empty: there is none.
std::string unknown_option(const CLI::App& app, Arguments words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    if (word == "--") break;
    if (!is_option(word)) continue;
    const CLI::Option* option = option_of(app, word);
    if (option == nullptr && !word.starts_with("--"))  // -xVALUE, -xy
      option = option_of(app, word.substr(0, 2));
    if (option == nullptr) return word.substr(0, word.find('='));
    if (takes_next(option, word)) ++i;
  }
  return "";
}

std::string said(const std::string& what, const std::string& remedy) {
  return fmt::format("bakeoff: {}\n  {}\n", table::clean(what), table::clean(remedy));
}

std::string prefix(const Place& place) { return place.name.empty() ? "" : place.name + ": "; }

std::string see(const Place& place) {
  return place.name.empty() ? "`bakeoff --help` shows commands and options"
                            : fmt::format("`bakeoff {} --help` shows what it takes", place.name);
}

// The command's own example, without its heading.
std::string example_of(const CLI::App& app) {
  const std::string footer = app.get_footer();
  const size_t at = footer.find("\n  ");
  return at == std::string::npos ? "" : footer.substr(at + 3, footer.find('\n', at + 1) - at - 3);
}

std::string missing(const Place& place, const std::string& what) {
  const std::string example = example_of(*place.command);
  const auto names = command_names(*place.command);
  if (what.find("subcommand") != std::string::npos) {
    for (const char* word : place.words)
      if (!is_option(word))
        return said(fmt::format("{} has no command '{}'", place.name, word), suggest(word, names));
    return said(
        place.name.empty() ? "name a command" : fmt::format("{}: say what it is to do", place.name),
        place.name.empty() ? "`bakeoff --help` lists them" : fmt::format("one of: {}", join(names, ", ")));
  }
  const std::string name = what.substr(0, what.find(" is required"));
  const CLI::Option* option = option_of(*place.command, name);
  return said(fmt::format("{}{} is missing{}", prefix(place), name,
                          option == nullptr ? "" : ": " + option->get_description()),
              example.empty() ? see(place) : "for example: " + example);
}

std::string too_many(const CLI::App& app, const Place& place) {
  // Nothing of what is left looks like an option: unknown_option() would have named it.
  const std::vector<std::string> left = place.command->remaining();
  if (place.name == "report" && !left.empty())
    return said(
        fmt::format("report shows one run, and '{}' is a second one", left.front()),
        subcommand(app, "compare") == nullptr
            ? "name one of them; `bakeoff suite` races several recipes with one table"
            : "`bakeoff compare` compares two runs; `bakeoff suite` races several recipes with one table");
  return said(fmt::format("{} does not take '{}'", place.name, left.empty() ? "" : left.front()), see(place));
}

}  // namespace

CLI::Validator number_from(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        char* end = nullptr;
        const double number = std::strtod(text.c_str(), &end);
        const bool fits = end != text.c_str() && *end == '\0' && number >= least && number <= most;
        return fits ? std::string() : fmt::format("'{}' is no number from {} to {}", text, least, most);
      },
      "");
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::Validator(
      [words](const std::string& text) {
        const bool known = std::ranges::find(words, text) != words.end();
        return known ? std::string() : fmt::format("cannot be '{}'\n{}", text, suggest(text, words));
      },
      "");
}

void misuse(const std::string& what, const std::string& remedy) {
  throw CLI::ValidationError(what + "\n" + remedy);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

const CLI::App* find_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* found = &app;
  for (const std::string& word : words) {
    found = subcommand(*found, word);
    if (found == nullptr) return nullptr;
  }
  return found;
}

constexpr const char* kOnManyMachines =
    "`bakeoff fleet plan`, `suite` and `tune` race on many machines, all else on the one where it is called: "
    "on a node of a cluster by `srun bakeoff ...`";

std::string usage_error(const CLI::App& app, int argc, char** argv, const CLI::ParseError& error) {
  const Place place = place_of(app, Arguments(argv + 1, argv + argc));
  const std::string what = error.what();
  if (const std::string word = unknown_option(*place.command, place.words); !word.empty()) {
    const auto names = option_names(*place.command);
    const std::string near = nearest(word, names);
    const bool spread = word == "--engine";
    return said(fmt::format("{} has no option '{}'", place.name.empty() ? "the program" : place.name, word),
                spread         ? kOnManyMachines
                : near.empty() ? see(place)
                               : fmt::format("did you mean '{}'?", near));
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return missing(place, what);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return too_many(app, place);
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const size_t at = what.find(" excludes ");
    return said(fmt::format("{}{} and {} exclude each other", prefix(place), what.substr(0, at),
                            what.substr(at + 10)),
                "leave out one of the two");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string name = what.substr(0, what.find(':'));
    const std::string example = example_of(*place.command);
    return said(fmt::format("{}{} needs a value", prefix(place), name),
                example.find(name + " ") == std::string::npos ? see(place) : "for example: " + example);
  }
  // A check's own remedy stands behind its message.
  const size_t line = std::min(what.find('\n'), what.size());
  return said(prefix(place) + what.substr(0, line), line < what.size() ? what.substr(line + 1) : see(place));
}

}  // namespace bakeoff::cli
