#pragma once

// Contenders that may be ranked with each other: those that compute in the same precision
// (emit::precision_group). Each group has a race, a leader and verdicts of its own.

#include <string>
#include <vector>

#include "records/trial.h"

namespace bakeoff {

std::string group_of(const Contender& contender);

// Contenders of one group that take part.
struct Group {
  std::string name = {};
  std::vector<size_t> members = {};  // indices into the contenders, in their order
  double alpha = 0;  // its part of the run's: all statements of all groups err with alpha at most
  bool operator==(const Group&) const = default;
};

// float32 first, the others as they come. `taking_part`: indices of contenders. alpha is shared by the number
// of pairs that each group compares; a group of one compares nothing.
std::vector<Group> groups_of(const std::vector<Contender>& contenders, const std::vector<size_t>& taking_part,
                             double alpha);

}  // namespace bakeoff
