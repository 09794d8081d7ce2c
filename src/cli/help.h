#pragma once

// Help on standard output, at the width of the terminal.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bakeoff::cli {

// What --help shows of a command.
std::string help_text(const CLI::App& command, int width);

// `bakeoff help WORDS`: of a command, of a word of the glossary, or all of them ("terms"), of a key
// of recipes, or a page ("docs" lists them). Returns the exit code.
int help(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace bakeoff::cli
