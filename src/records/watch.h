#pragma once

#include <functional>
#include <optional>
#include <string>

namespace bakeoff {

// What a race shows when a heat is over.
struct Standing {
  std::string next = {};  // the contender that may still be faster than the leader; empty: none has run
  double ratio = 1, low = 1, high = 1;  // to the leader, with its interval
  std::optional<double> slower = {};    // confidence of this look that it is slower; empty: not known yet
  std::optional<double> to_go_s = {};   // until the race ends, as expected; empty: not known yet
  bool to_go_at_least = false;
  bool decided = false;
  int busy = 0, judged = 0;  // rounds so far that the host disturbed, and all that could be judged
  bool refused = false;      // so many disturbed rounds that the verdict will be refused
  bool operator==(const Standing&) const = default;
};

// What a run is doing now, for its display.
struct Happening {
  std::string stage = {};   // "referee", "parity", "race"
  std::string detail = {};  // the contender or step being worked on
  int done = 0, total = 0;  // finished and all parts of the stage; total 0: unknown
  int heat = 0;
  double elapsed_s = 0;               // since the race began
  std::optional<double> left_s = {};  // of the budget
  std::optional<double> heat_left_s =
      {};  // until this heat ends, as long as the last one took; empty: not known
  std::string leader = {};
  double leader_ms = 0;
  int survivors = 0, contenders = 0, failed = 0, unproven = 0;  // unproven: their proofs come later
  std::optional<Standing> standing = {};                        // once after each heat
  std::string remark = {};  // a line to be shown as it is, instead of all this; empty: none
};
using Watch = std::function<void(const Happening&)>;

}  // namespace bakeoff
