#pragma once

// What pages do with a table that has more columns than any screen has room for.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace bakeoff::report {

// A table of more columns has them as its lines, and where there are as many contenders it is one card for each line, as
// on a phone.
inline constexpr size_t kMostColumns = 11;

inline const char* tall_class(size_t contenders) {
  constexpr size_t kOnATablet = 8;  // have room there too, without intervals
  return contenders >= kMostColumns ? "cardy" : contenders > kOnATablet ? "tall" : "tall slim";
}

// "heat2": how far a contender is behind the fastest, for its shade; empty where it is not known (0).
inline std::string heat_class(double ratio) {
  if (!(ratio > 0)) return "";
  constexpr double kHeats[] = {1.1, 1.25, 1.5, 2, 3, 6};
  return fmt::format("heat{}", std::ranges::count_if(kHeats, [&](double from) { return ratio >= from; }));
}

}  // namespace bakeoff::report
