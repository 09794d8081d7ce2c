#pragma once

// The terminal: errors, progress, width. Results go to standard output, everything else to standard error.

#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "race/race.h"

namespace bakeoff::cli {

inline constexpr int kBadInput = 2;
inline constexpr int kRefused = 3;  // the host was busy throughout: no verdict can be had
inline constexpr int kInterrupted = 130;

// Prints "bakeoff: file:line: message" and the remedy; gives kBadInput, or kInterrupted after Ctrl-C.
int fail(const Error& error);
// To standard output. Where that fails (a full disk), finish says so and gives kBadInput instead of `code`.
void print(const std::string& text);
int finish(int code);

// Columns of standard output: the terminal's, else $COLUMNS, else 100.
int output_width();
bool output_is_terminal();

// Progress of long work on standard error: one line redrawn in place on a terminal, else a line for each
// news.
class ConsoleProgress {
 public:
  ConsoleProgress();
  ~ConsoleProgress();  // clears the line
  Progress lines();    // for set-up work
  Watch race();        // for gate and race
 private:
  struct State;
  State* state_;
};

}  // namespace bakeoff::cli
