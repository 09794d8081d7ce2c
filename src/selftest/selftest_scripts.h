#pragma once

// What `bakeoff selftest` races: contenders at their defaults, and their emitted scripts with a planted fault.
// A fault is appended to the source (emit::Faults), so the rest is what every contender runs.

#include <string>
#include <vector>

#include "emit/emit.h"

namespace bakeoff {

// A framework, once for each value of the settings that are always named.
struct SelfTestContender {
  std::string name = {};  // "jax", "keras-jax"
  const emit::Framework* framework = nullptr;
  emit::Settings named = {};     // {{"backend", "jax"}}
  std::string environment = {};  // "jax"
  // Whether the loop over steps is in the script, so that work can be planted in it.
  bool has_own_loop() const { return framework->faults.repeated_steps != nullptr; }
};

// All that train, first those that work can be planted in.
const std::vector<SelfTestContender>& selftest_contenders();

// The small network that is raced: its step takes one or two milliseconds on one core.
std::string selftest_workload();

}  // namespace bakeoff
