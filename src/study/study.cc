#include "study/study.h"

#include "race/race.h"

namespace bakeoff {

std::vector<size_t> lanes_of(const Afterwards& race) {
  return left_after_the_race(race.plan, race.parities, race.trials);
}

std::vector<std::string> StudyContext::ids() const {
  std::vector<std::string> all;
  for (const RankedContender& one : contenders) all.push_back(one.contender);
  return all;
}

}  // namespace bakeoff
