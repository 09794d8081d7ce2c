#pragma once

// Loops that several steps have in common. An unrolled cell, or a block that repeats, has the same loops time and again but
// for their arrays, offsets and how long the outermost one is; every one costs the compiler as much as the first. So the
// steps are printed twice: the first time each loop's text, with letters for arrays, is counted; the second time one
// that came more than once is a call, and the function stands above the steps.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/namer.h"

namespace bakeoff::emit::native {

class LoopBook {
 public:
  // Notes a loop. Its name where it is a function, else "". `wish`: for the name; `head`: "int64_t count, Real* a".
  std::string note(const std::string& head, const std::string& body, const std::string& wish);
  // All loops were noted: those that came again are functions from now on.
  void name_all(Namer& names);
  // The functions, as members of a struct.
  void print(CodeWriter& out) const;

 private:
  struct Loop {
    std::string head, body, wish, name = {};
    int64_t uses = 0;
  };
  std::map<std::string, size_t> places_;  // in loops_, by head and body
  std::vector<Loop> loops_;
};

}  // namespace bakeoff::emit::native
