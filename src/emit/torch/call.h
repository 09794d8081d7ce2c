#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bakeoff::emit::torch {

// A Python call: head(arguments...)tail.
struct Call {
  std::string head;
  std::vector<std::string> arguments;
  std::string tail = {};
};

// "3" for {3, 3}, else "(3, 5)".
std::string per_axis(const std::vector<int64_t>& values);

}  // namespace bakeoff::emit::torch
