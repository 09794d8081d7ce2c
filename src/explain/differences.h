#pragma once

// How the texts of two scripts differ, and what a line of one of them runs.

#include <cstdint>
#include <string>
#include <vector>

#include "explain/source.h"

namespace bakeoff::explain {

// Neighbouring lines of one script, and what the other has in their place; one of the two may be empty.
struct Difference {
  // Numbers of the first and the last of its lines in the first script (Source). Where it has none there, `line` is the next
  // line of the first script, and `last` the one before.
  int64_t line = 0, last = 0;
  std::vector<std::string> mine = {};  // without spaces at their ends
  std::vector<std::string> other = {};
  // Whether a line of the first script is one of its own; where it has none, the line before it or behind it.
  bool has(int64_t number) const {
    return mine.empty() ? number == line || number == last : number >= line && number <= last;
  }
  bool operator==(const Difference&) const = default;
};

// File by file, in the order of the lines; comments, empty lines, docstrings and indents count for nothing. Nothing of files
// of more than 3,000 lines, and of files that the other script has not.
std::vector<Difference> differences(const Source& mine, const Source& other);

// What a line of a Python source runs, by the names in it: the lines of its own statement first, then those that define its
// names (functions with their decorators, classes, assignments), then those that define the names in these.
std::vector<int64_t> runs(const Source& source, int64_t line);

// "'a = f(x)', where the other script has 'a = g(x)'"
std::string difference_words(const Difference& difference);

}  // namespace bakeoff::explain
