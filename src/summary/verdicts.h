#pragma once

// What a race says of its contenders, in a word each.

#include <string>

namespace bakeoff {

// Of a ranked row, against the leader of its group.
enum class RowVerdict {
  kNone,  // it is not ranked
  kLeader,
  kFaster,
  kSame,
  kUndecided,
  kSlower,
  kMateriallySlower,
  kBehindAnother,  // surely slower than another row, while its own interval does not tell it from the leader
  kAtLeast,        // it looked hopeless and was not timed: slower by a bound
  kRefused,        // the race has no verdict
};

// Of one contender against another.
enum class PairVerdict { kNone, kUndecided, kFaster, kSame, kSlower, kBaseline, kNotJudged, kNotRanked };

std::string word(RowVerdict verdict);   // "leader", "materially slower", ...; "" of kNone
std::string word(PairVerdict verdict);  // "faster", "baseline", "not judged", ...; "" of kNone

// Whether it is certain that the row is slower than another one.
constexpr bool surely_slower(RowVerdict verdict) {
  return verdict == RowVerdict::kSlower || verdict == RowVerdict::kMateriallySlower ||
         verdict == RowVerdict::kBehindAnother;
}
// Whether it is certain which of the two is faster.
constexpr bool ordered(PairVerdict verdict) {
  return verdict == PairVerdict::kFaster || verdict == PairVerdict::kSlower;
}

}  // namespace bakeoff
