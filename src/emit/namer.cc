#include "emit/namer.h"

#include <iterator>
#include <sstream>

#include "emit/code_writer.h"

namespace bakeoff::emit {
namespace {

const std::set<std::string>& python_words() {
  static const std::set<std::string> words = {
      "False", "None",     "True",  "and",    "as",    "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif",  "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",    "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",   "while",  "with",   "yield",    "match",
      "case",  "print",    "range", "len",    "float", "int",    "str",    "list",     "dict",
      "set",   "tuple",    "zip",   "max",    "min",   "sum",    "self",   "super",    "main",
      "type",  "input",    "map",   "filter", "next",  "iter",   "id",     "open"};
  return words;
}

}  // namespace

std::set<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

Namer::Namer(std::set<std::string> reserved) : taken_(std::move(reserved)) {
  taken_.insert(python_words().begin(), python_words().end());
}

std::string Namer::name(const std::string& key, std::string_view wish) {
  if (const auto found = given_.find(key); found != given_.end()) return found->second;
  const std::string base = identifier(wish);
  std::string candidate = base;
  for (int n = 2; taken_.contains(candidate); ++n) candidate = base + "_" + std::to_string(n);
  taken_.insert(candidate);
  given_[key] = candidate;
  return candidate;
}

}  // namespace bakeoff::emit
