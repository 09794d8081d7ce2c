#pragma once

// How the texts of two scripts differ, and what a line of one of them runs.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "explain/source.h"

namespace bakeoff::explain {

// Neighbouring lines of one script, and what the other has in their place; one of the two may be empty.
struct Difference {
  // Numbers of the first and the last of its lines in the first script (Source). Where it has none there, `line` is the next
  // line of the first script, and `last` the one before; both are 0 for a file that it lacks.
  int64_t line = 0, last = 0;
  std::vector<std::string> mine = {};  // without spaces at their ends
  std::vector<std::string> other = {};
  // Whether a line of the first script is one of its own; where it has none, the line before it or behind it.
  bool has(int64_t number) const {
    return mine.empty() ? number == line || number == last : number >= line && number <= last;
  }
  // Whether its lines are those of the other script, but stand deeper in loops, conditions or functions.
  bool deeper() const;
  // Whether both scripts call and compute the same there, and call variables by other names.
  bool renames() const;
  bool operator==(const Difference&) const = default;
};

// File by file, in the order of the lines; comments, empty lines and docstrings count for nothing, nor does the order of
// functions, of classes and of the methods of a class; indents count only where no
// line above them differs. Of very long files (5,800 lines by as many) all from the first to the last line that differs.
std::vector<Difference> differences(const Source& mine, const Source& other);

// What lines of a Python source run, by the names in them: the lines of its own statement first, then those that define its
// names (functions with their decorators, classes, assignments), then those that define the names in these.
std::map<int64_t, std::vector<int64_t>> runs(const Source& source, const std::vector<int64_t>& lines);

// By their numbers, lines of a script and what stands in place of each: lines that end with a newline, or nothing. The line
// behind the last one stands for what is added there.
using Changes = std::map<int64_t, std::string>;

// The text of a file with its changes; nothing where none of them is of its lines.
std::optional<std::string> changed_text(const Source::File& file, const Changes& changes);

// How the first script becomes the other, in groups of lines: those of a group share names that one of the scripts alone has,
// or one of them sets what another uses, so they are changed together. Nothing where more than 80 lines differ.
std::vector<Changes> exchanges(const Source& mine, const Source& other);

// "'a = f(x)', where the other script has 'a = g(x)'"
std::string difference_words(const Difference& difference);

}  // namespace bakeoff::explain
