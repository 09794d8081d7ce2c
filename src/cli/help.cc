#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/nearest.h"
#include "base/texts.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/glossary.h"
#include "cli/guides.h"
#include "cli/usage.h"
#include "recipe/schema.h"
#include "table/text.h"

namespace bakeoff::cli {
namespace {

constexpr size_t kHelpColumn = 30;  // where CLI11 begins descriptions

// A command of a shell in several lines.
std::string continued(const std::string& line, int width) {
  std::string out;
  const auto parts = table::wrap(line.substr(2), width - 6);
  for (size_t i = 0; i < parts.size(); ++i)
    out += (i == 0 ? "  " : "    ") + parts[i] + (i + 1 < parts.size() ? " \\\n" : "");
  return out;
}

std::string narrower(const std::string& line, int width, bool example) {
  if (table::display_width(line) <= width) return line;
  if (example && line.starts_with("  ")) return continued(line, width);
  // Two columns, where the line has them.
  if (line.starts_with("  ") && line.size() > kHelpColumn && line[kHelpColumn - 1] == ' ' && width > 50)
    return table::paragraph(line.substr(kHelpColumn), width, line.substr(0, kHelpColumn),
                            std::string(kHelpColumn, ' '));
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string first(indent, ' ');
  return table::paragraph(line.substr(indent), width, first, first + (indent == 0 ? "  " : ""));
}

}  // namespace

std::string help_text(const CLI::App& command, int width) {
  std::string name = command.get_name();
  for (const CLI::App* parent = command.get_parent(); parent != nullptr; parent = parent->get_parent())
    name = parent->get_name() + " " + name;
  // Not App::help(): it speaks of the command that the line chose.
  const std::string text = command.get_formatter()->make_help(&command, name, CLI::AppFormatMode::Normal);
  std::string out;
  bool example = false;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.starts_with("Example:")) example = true;
    if (line.empty()) example = false;
    out += narrower(line, width, example) + "\n";
    begin = end + 1;
  }
  return out;
}

namespace {

// Explains a command, a word of the glossary ("terms": all of them) or a key of recipes; or prints a page ("docs" lists
// them).
int help(const CLI::App& app, const std::vector<std::string>& words) {
  const int width = output_width();
  if (words.empty()) {
    print(help_text(app, width));
    return 0;
  }
  const std::string word = join(words, " ");
  if (word == "terms") {
    print(all_terms(width));
    return 0;
  }
  const CLI::App* command = find_command(app, words);
  const Term* term = find_term(word);
  if (word == "docs") {
    print(all_guides());
    return 0;
  }
  if (const auto page = guide(word)) {
    print(*page);
    return 0;
  }
  const std::vector<std::string> keys = recipe::explained(word);
  if (command != nullptr) print(help_text(*command, width));
  if (term != nullptr) print((command == nullptr ? "" : "\nThe word:\n") + term_text(*term, width));
  for (const std::string& key : keys) print(table::paragraph(key, width, "", "  ") + "\n");
  if (command != nullptr || term != nullptr || !keys.empty()) return 0;
  std::vector<std::string> known = command_names(app);
  for (const Term& one : glossary()) known.insert(known.end(), one.words.begin(), one.words.end());
  for (const recipe::Key& key : recipe::keys()) known.push_back(key.name);
  const std::string near = nearest(word, known);
  if (word.ends_with(".md"))
    return fail({.message = fmt::format("there is no page '{}' inside the program", word),
                 .remedy = "`bakeoff help docs` lists those that there are"});
  return fail(
      {.message = fmt::format("there is no command and no word '{}'", word),
       .remedy =
           (near.empty() ? "" : fmt::format("did you mean '{}'? ", near)) +
           "`bakeoff help` lists the commands, `bakeoff help terms` the words, `bakeoff help docs` the pages"});
}

Action add_help(CLI::App& sub) {
  const auto words = std::make_shared<std::vector<std::string>>();
  sub.add_option("words", *words, "a command, a word, or terms: all words");
  return [words, &sub](const Invocation&) { return help(*sub.get_parent(), *words); };
}

Action add_terms(CLI::App& sub) {
  return [&sub](const Invocation&) { return help(*sub.get_parent(), {"terms"}); };
}

}  // namespace

const Command kHelp = {"help", "Explain a command, or a word of tables and reports", "bakeoff help heat",
                       add_help, Home::kUnused};
const Command kExplainTerms = {"explain-terms", "Explain all words of tables and reports",
                               "bakeoff explain-terms", add_terms, Home::kUnused};

}  // namespace bakeoff::cli
