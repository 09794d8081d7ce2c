#pragma once

// Why the runner-up of a race is slower than the leader, a line of why.jsonl: what each change of one setting
// gains, measured in a race of its own (tune/why.h).

#include <string>
#include <vector>

#include "records/kept.h"

namespace bakeoff {

struct Why {
  struct Part {
    std::string change = {};   // "channels_last=true"
    double gain = 0;           // the contender's step time over that with the change; 0: it was not timed
    std::string verdict = {};  // "faster", "slower", "no difference is certain", or why it was not timed
    bool operator==(const Part&) const = default;
  };
  // What a step of both scripts does, by looks at their stacks while each ran by itself (explain/words.h).
  struct Account {
    std::string what = {};  // "backward pass"
    double ms = 0, leader_ms = 0;
    bool operator==(const Account&) const = default;
  };
  std::string contender = {};  // the slower one
  std::string leader = {};
  double gap = 0;                // its step time over the leader's, in that race
  std::vector<Part> parts = {};  // the greatest gain first
  std::vector<Account> accounts =
      {};  // those first that take most more than in the leader; empty: not observed
  bool operator==(const Why&) const = default;
};

// "torch takes 1.30 times as long as jax: 50% of that is layout ... By themselves, a step spends 5.1 ms in its backward
// pass, against 2.2 ms".
std::string sentence(const Why& why);

template <>
struct Kept<Why> {
  static constexpr const char* kFile = "why.jsonl";
  static constexpr const char* kKey = "contender";
};

}  // namespace bakeoff
