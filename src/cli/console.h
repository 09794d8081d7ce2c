#pragma once

// The terminal: errors, progress, width. Results go to standard output, everything else to standard error.

#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/result.h"
#include "records/watch.h"
#include "run/session.h"

namespace bakeoff::cli {

inline constexpr int kBadInput = 2;
inline constexpr int kRefused = 3;  // no verdict: the host was too busy
inline constexpr int kInterrupted = 130;

// Prints "bakeoff: file:line: message" and the remedy; returns kBadInput, or kInterrupted after Ctrl-C.
int fail(const Error& error);
// Prints to standard output. If that fails (a full disk), finish() reports it and returns kBadInput instead
// of `code`. kInterrupted becomes 128 and the signal's number.
void print(const std::string& text);
int finish(int code);
// Prints a line to standard error. Like print() it lets nothing through that a terminal would obey.
void note(std::string_view line);

// Width of standard output in columns: the terminal's, else $COLUMNS, else 100.
int output_width();
// Whether standard output takes colours: it is a terminal and TERM is not dumb, or $CLICOLOR_FORCE says so;
// never with $NO_COLOR.
bool output_has_colour();

// A row of two columns: `head` in the first `column` columns, `text` wrapped beside it; below it where the output is
// too narrow for both.
std::string two_columns(const std::string& head, int column, const std::string& text);

// What a command says when it begins: "this takes at most 12 min 00 s, less where it is decided earlier".
std::string longest_text(double seconds);

// Progress of long work on standard error: one line that is redrawn on a terminal, else one line for each
// event.
class ConsoleProgress {
 public:
  ConsoleProgress();
  ~ConsoleProgress();  // clears the line
  Progress lines();    // for preparation
  Watch race();        // for gate and race
  run::Teller teller();

 private:
  struct State;
  State* state_;
};

}  // namespace bakeoff::cli
