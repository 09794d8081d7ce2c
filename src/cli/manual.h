#pragma once

// The manual page and the shells' completions, generated from the same commands and options as --help.

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace bakeoff::cli {

// The manual page in the macros of man(7).
std::string man_page(const CLI::App& app);

// A completion script for "bash", "zsh" or "fish"; nothing for another shell.
std::optional<std::string> completion(const CLI::App& app, const std::string& shell);

}  // namespace bakeoff::cli
