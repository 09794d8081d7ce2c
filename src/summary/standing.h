#pragma once

// Where a contender stands, in the words that every report uses: in a race's first lines, in a suite's table.

#include <string>

#include "summary/summary.h"

namespace bakeoff {

inline constexpr double kProbable = 0.95;  // confidence of one look, which guarantees nothing

// kProbably: slower by this look alone, or compared in one heat and behind: likely, not certain.
enum class Finish { kFastest, kEqual, kMayBe, kProbably, kSlower, kNoResult };

// The rows of one precision, the leader first.
struct Field {
  const Row* leader = nullptr;
  // tied: equally fast. open: may be as fast as the leader. probable: kProbably. behind: surely slower.
  std::vector<const Row*> tied = {}, open = {}, probable = {}, behind = {};
};
Field field_of(const Summary& summary, const std::string& group);

// What is known of a contender that is not decided against its leader; null: nothing is open.
const Rival* rival_of(const Summary& summary, const Row& row);

Finish finish_of(const Summary& summary, const Row& ranked_row);

// What the race says of a row: word(row.verdict), with the bound of a row that has one.
std::string verdict_of(const Row& row);

}  // namespace bakeoff
