#pragma once

// What a run is doing, as one line: redrawn in place on a terminal, printed as plain lines elsewhere.
//
//   const std::string line = progress_line(state, width);          // "\r\x1b[K" + line is the caller's
//   business if (!is_tty && worth_a_line(last, state)) puts(progress_text(state).c_str());

#include <optional>
#include <string>

#include "records/watch.h"

namespace bakeoff::report {

struct ProgressState {
  std::string stage;   // "referee", "parity", "race", "environment torch", ...
  std::string detail;  // what runs now, e.g. a contender; may be empty
  int done = 0;        // of `total` parts of this stage
  int total = 0;       // 0: not known
  int heat = 0;        // race only; counted from 1
  double elapsed_s = 0;
  std::optional<double> left_s;       // of the budget
  std::optional<double> rest_s;       // of the race, as expected; empty: not known
  std::optional<double> heat_left_s;  // until this heat ends; empty: not known
  std::string leader;                 // race only; empty until there is one
  double leader_ms = 0;               // per step
  int survivors = 0;                  // contenders still raced
  int contenders = 0;
  int failed = 0;
  int unproven = 0;  // their proofs come later
};

// One line of at most `width` columns without a newline; the least important parts go first. With `colour` a
// bar and ANSI colours; `frame` turns the spinner.
std::string progress_line(const ProgressState& state, int width, bool colour = false, int frame = 0);

// The same for a log: no bar, no colour, all parts.
std::string progress_text(const ProgressState& state);

// A line that stays, of at most `width` columns (0: any): how the race stands after `state.heat` heats.
std::string standing_line(const ProgressState& state, const Standing& standing, int width,
                          bool colour = false);

// Whether `now` tells a reader of a log something new: another stage, heat, leader or number of survivors, a
// part done, or half a minute gone by.
bool worth_a_line(const ProgressState& last, const ProgressState& now);

}  // namespace bakeoff::report
