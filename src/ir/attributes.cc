#include "ir/attributes.h"

namespace bakeoff::ir {

AttrSpec ints(std::string name, std::vector<int64_t> fallback, std::string doc) {
  const size_t count = fallback.size();
  return {.name = std::move(name),
          .kind = AttrKind::kInts,
          .fallback = std::move(fallback),
          .count = count,
          .doc = std::move(doc)};
}
AttrSpec ints_required(std::string name, size_t count, std::string doc) {
  return {.name = std::move(name),
          .kind = AttrKind::kInts,
          .fallback = std::vector<int64_t>{},
          .required = true,
          .count = count,
          .doc = std::move(doc)};
}
AttrSpec integer(std::string name, int64_t fallback, std::string doc) {
  return {.name = std::move(name), .kind = AttrKind::kInt, .fallback = fallback, .doc = std::move(doc)};
}
AttrSpec optional_integer(std::string name, std::string doc) {
  return {.name = std::move(name),
          .kind = AttrKind::kInt,
          .fallback = {},
          .optional = true,
          .doc = std::move(doc)};
}
AttrSpec real(std::string name, double fallback, std::string doc) {
  return {.name = std::move(name), .kind = AttrKind::kReal, .fallback = fallback, .doc = std::move(doc)};
}
AttrSpec flag(std::string name, bool fallback, std::string doc) {
  return {.name = std::move(name), .kind = AttrKind::kFlag, .fallback = fallback, .doc = std::move(doc)};
}
AttrSpec word(std::string name, std::vector<std::string> words, std::string doc) {
  return {.name = std::move(name),
          .kind = AttrKind::kWord,
          .fallback = words[0],
          .words = words,
          .doc = std::move(doc)};
}

}  // namespace bakeoff::ir
