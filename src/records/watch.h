#pragma once

#include <functional>
#include <optional>
#include <string>

namespace bakeoff {

// What is going on, for whoever shows it.
struct Happening {
  std::string stage = {};   // "referee", "parity", "race"
  std::string detail = {};  // contender or step under way
  int done = 0, total = 0;  // parts of the stage; total 0: not known
  int heat = 0;
  double elapsed_s = 0;  // of the race
  std::optional<double> left_s = {};
  std::string leader = {};
  double leader_ms = 0;
  int survivors = 0, contenders = 0, failed = 0;
};
using Watch = std::function<void(const Happening&)>;

}  // namespace bakeoff
