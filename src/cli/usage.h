#pragma once

// What is wrong with a command line, said as other errors are: what, and the remedy.

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
class Validator;
}  // namespace CLI

namespace bakeoff::cli {

// A check that the value is one of these words; its error has the nearest.
CLI::Validator one_of(const std::vector<std::string>& words);

CLI::Validator number_from(double least, double most);

// Says, from a command's callback, what no option alone shows: "bakeoff: run: WHAT\n  REMEDY\n".
[[noreturn]] void misuse(const std::string& what, const std::string& remedy);

// "run has no option '--budgt'\n  did you mean '--budget'?\n", without blaming what is right.
std::string usage_error(const CLI::App& app, int argc, char** argv, const CLI::ParseError& error);

// The command of these words, such as {"env", "create"}; null: there is none.
const CLI::App* find_command(const CLI::App& app, const std::vector<std::string>& words);
std::vector<std::string> command_names(const CLI::App& app);

}  // namespace bakeoff::cli
