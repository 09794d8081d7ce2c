#pragma once

// Contenders can be ranked with each other only if they compute in the same precision
// (emit::precision_group). Each group has its own race, leader and verdicts.

#include <string>
#include <vector>

#include "records/trial.h"

namespace bakeoff {

std::string group_of(const Contender& contender);

// The contenders of one group that take part.
struct Group {
  std::string name = {};
  std::vector<size_t> members = {};  // indices into the contenders, in their order
  double alpha = 0;  // the group's share of the run's alpha; the shares of all groups add up to it
  bool operator==(const Group&) const = default;
};

// float32 first, then the others in order of appearance. `taking_part`: indices of contenders. alpha is
// divided in proportion to the number of pairs that each group compares; a group of one compares nothing.
std::vector<Group> groups_of(const std::vector<Contender>& contenders, const std::vector<size_t>& taking_part,
                             double alpha);

}  // namespace bakeoff
