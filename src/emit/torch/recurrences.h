#pragma once

// Recurrent nodes that are one nn.LSTM or nn.GRU: both directions of a layer and the concat of them, layers that follow
// one another. Their parameters are <path>.weight_ih_l0, <path>.weight_ih_l0_reverse, <path>.weight_ih_l1, ...

#include <map>
#include <string>
#include <vector>

#include "emit/emit.h"
#include "emit/stretches.h"

namespace bakeoff::emit::torch {

struct Recurrence {
  std::string path;        // whole, not relative to a stretch
  int first = 0, end = 0;  // its nodes, which follow one another
  int layers = 0;
  bool both = false;                               // directions
  std::map<ir::ParamId, std::string> leaves = {};  // "weight_ih_l1_reverse"
};

// Those among the nodes from `first` to `end`.
std::vector<Recurrence> find_recurrences(const ir::Workload& workload, int first, int end);

}  // namespace bakeoff::emit::torch
