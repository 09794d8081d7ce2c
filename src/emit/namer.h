#pragma once

// Hands out unique Python identifiers: keywords, builtins the scripts use and names given before are avoided
// by a numeric suffix. The same wish for the same key gives the same name.

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace bakeoff::emit {

// The words of a text, which spaces separate.
std::set<std::string> words(std::string_view text);

class Namer {
 public:
  // `reserved`: further names that the script uses itself ("model", "x", ...).
  explicit Namer(std::set<std::string> reserved = {});
  void reserve(const std::string& name) { taken_.insert(name); }
  // The name for `key` (any unique text, e.g. a parameter's dotted name), close to `wish`.
  std::string name(const std::string& key, std::string_view wish);

 private:
  std::set<std::string> taken_;
  std::map<std::string, std::string> given_;
};

}  // namespace bakeoff::emit
