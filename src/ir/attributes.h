#pragma once

// What an op's attributes are: names, kinds, fallbacks.

#include <string>
#include <vector>

#include "ir/workload.h"

namespace bakeoff::ir {

enum class AttrKind { kInt, kReal, kFlag, kInts, kWord };

struct AttrSpec {
  std::string name;
  AttrKind kind = AttrKind::kInt;
  AttrValue fallback;                   // used by the parser where the text leaves the attribute out
  bool required = false;                // no fallback
  bool optional = false;                // no fallback either: a node may lack it
  size_t count = 0;                     // kInts: how many numbers; 0 = depends on the input
  std::vector<std::string> words = {};  // kWord: the allowed ones
  std::string doc = {};
};

// Attributes with and without a fallback.
AttrSpec ints(std::string name, std::vector<int64_t> fallback, std::string doc);
AttrSpec ints_required(std::string name, size_t count, std::string doc);
AttrSpec integer(std::string name, int64_t fallback, std::string doc);
AttrSpec optional_integer(std::string name, std::string doc);
AttrSpec real(std::string name, double fallback, std::string doc);
AttrSpec flag(std::string name, bool fallback, std::string doc);
// The first of `words` is the fallback.
AttrSpec word(std::string name, std::vector<std::string> words, std::string doc);

}  // namespace bakeoff::ir
