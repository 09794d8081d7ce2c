#pragma once

// Contenders on several devices, each held against the same contender on one: how many times as fast, and which part
// of as many times as it has devices.

#include <optional>
#include <string>
#include <vector>

#include "summary/summary.h"

namespace bakeoff {

struct OnDevices {
  std::string contender = {};
  int64_t devices = 1;
  std::optional<PairRatio> ratio = {};  // step time over the one's; absent: nothing links the two
  Estimate speed = {}, efficiency = {};
  std::string note = {};  // why there is no ratio, or on what it rests
};

// The ranked contenders on several devices that have a ranked counterpart on one: of the same framework, with the same
// settings and controls (`parallel` apart), a script of its own where there is one.
std::vector<OnDevices> against_one_device(const Summary& summary);

// Nothing where there is no such contender.
std::optional<table::Section> devices_section(const Summary& summary);

}  // namespace bakeoff
