#pragma once

// What a template of templates/ names: a tree of texts (escaped where the template says {{name}}), flags and
// lists of views. Every view sees the names of the views around it, so names are not reused inwards.

#include <map>
#include <string>
#include <vector>

namespace bakeoff::report {

struct View {
  std::map<std::string, std::string> texts;
  std::map<std::string, bool> flags;
  std::map<std::string, std::vector<View>> lists;
};

}  // namespace bakeoff::report
