#pragma once

#include <functional>
#include <optional>
#include <string>

namespace bakeoff {

// What a run is doing now, for its display.
struct Happening {
  std::string stage = {};   // "referee", "parity", "race"
  std::string detail = {};  // the contender or step being worked on
  int done = 0, total = 0;  // finished and all parts of the stage; total 0: unknown
  int heat = 0;
  double elapsed_s = 0;  // since the race began
  std::optional<double> left_s = {};
  std::string leader = {};
  double leader_ms = 0;
  int survivors = 0, contenders = 0, failed = 0;
};
using Watch = std::function<void(const Happening&)>;

}  // namespace bakeoff
