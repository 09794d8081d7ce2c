#include "evidence/groups.h"

#include <algorithm>

#include "emit/emit.h"

namespace bakeoff {
namespace {

double pairs(const Group& group) {
  const auto k = static_cast<double>(group.members.size());
  return k * (k - 1) / 2;
}

}  // namespace

std::string group_of(const Contender& contender) { return emit::precision_group(contender.settings); }

std::vector<Group> groups_of(const std::vector<Contender>& contenders, const std::vector<size_t>& taking_part,
                             double alpha) {
  std::vector<Group> groups;
  for (const size_t i : taking_part) {
    const std::string name = group_of(contenders[i]);
    auto at = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.name == name; });
    if (at == groups.end()) at = groups.insert(groups.end(), Group{.name = name});
    at->members.push_back(i);
  }
  std::stable_partition(groups.begin(), groups.end(),
                        [](const Group& g) { return g.name == emit::kFullPrecision; });
  double all = 0;
  for (const Group& group : groups) all += pairs(group);
  for (Group& group : groups) group.alpha = pairs(group) > 0 ? alpha * pairs(group) / all : alpha;
  return groups;
}

}  // namespace bakeoff
