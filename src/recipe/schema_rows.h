#pragma once

// Builders for the rows of the schema's table: one call for each key. Internal to this room.
//
//   std::vector<Key> keys = in("latency", {
//       required(real_key("arrivals_per_second", "", above(0, 1e6), "requests arrive at this rate")),
//       integer_key("requests", "1000", from(20, 1e6), "number of requests to each process"),
//   });

#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "recipe/key.h"

namespace bakeoff::recipe {

struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool least_excluded = false;
};
inline Range from(double least, double most = Range().most) { return {least, most, false}; }
inline Range above(double least, double most = Range().most) { return {least, most, true}; }

inline Key key_of(Kind kind, std::string name, std::string fallback, std::string doc) {
  return {.name = std::move(name), .kind = kind, .fallback = std::move(fallback), .doc = std::move(doc)};
}
inline Key number_key(Kind kind, std::string name, std::string fallback, const Range& range,
                      std::string doc) {
  Key key = key_of(kind, std::move(name), std::move(fallback), std::move(doc));
  key.least = range.least, key.most = range.most, key.least_excluded = range.least_excluded;
  return key;
}

// `words`: the allowed words; empty: any.
inline Key word_key(std::string name, std::string fallback, std::vector<std::string> words, std::string doc) {
  Key key = key_of(Kind::kWord, std::move(name), std::move(fallback), std::move(doc));
  key.words = std::move(words);
  return key;
}
inline Key path_key(std::string name, std::string doc) {
  return key_of(Kind::kPath, std::move(name), "", std::move(doc));
}
// A table of texts or lists of texts.
inline Key table_key(std::string name, std::string doc) {
  return key_of(Kind::kTable, std::move(name), "", std::move(doc));
}
inline Key flag_key(std::string name, std::string fallback, std::string doc) {
  return key_of(Kind::kFlag, std::move(name), std::move(fallback), std::move(doc));
}
inline Key integer_key(std::string name, std::string fallback, const Range& range, std::string doc) {
  return number_key(Kind::kInt, std::move(name), std::move(fallback), range, std::move(doc));
}
inline Key real_key(std::string name, std::string fallback, const Range& range, std::string doc) {
  return number_key(Kind::kReal, std::move(name), std::move(fallback), range, std::move(doc));
}

inline Key required(Key key) {
  key.required = true;
  return key;
}
// The key takes a value, or a list of one or more.
inline Key listed(Key key) {
  key.list = true;
  return key;
}

// A value that the key may have, where none follows from its default or its words.
inline Key example(std::string text, Key key) {
  key.example = std::move(text);
  return key;
}

// The same keys, in this section.
inline std::vector<Key> in(const std::string& section, std::vector<Key> keys) {
  for (Key& key : keys) key.section = section;
  return keys;
}
inline std::vector<Key> joined(std::initializer_list<std::vector<Key>> parts) {
  std::vector<Key> all;
  for (const std::vector<Key>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace bakeoff::recipe
