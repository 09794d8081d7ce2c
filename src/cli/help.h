#pragma once

// Help on standard output, at the width of the terminal.

#include <string>

namespace CLI {
class App;
}

namespace bakeoff::cli {

// What --help shows of a command.
std::string help_text(const CLI::App& command, int width);

}  // namespace bakeoff::cli
