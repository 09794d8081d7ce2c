#pragma once

// Nodes that are one call of nn.LSTMCell, nn.GRUCell or nn.RNNCell, which an exporter takes apart:
//
//   h, c = self.cell(x, (h, c))   two linear layers, four gates, the new states: 16 nodes in torch's own order
//
// Their parameters are <path>.weight_ih, .weight_hh and, where there are biases, .bias_ih and .bias_hh.

#include <map>
#include <string>
#include <vector>

#include "emit/blocks.h"
#include "emit/emit.h"
#include "emit/loops.h"
#include "emit/stretches.h"

namespace bakeoff::emit {

struct Cell {
  std::string type = {};            // "LSTMCell", "GRUCell", "RNNCell"
  std::string path = {};            // whole, not relative to a stretch
  int first = 0, end = 0;           // its nodes, which follow one another; the last one computes h
  int64_t inputs = 0, units = 0;    // sizes
  bool bias = false, relu = false;  // relu: in place of an RNNCell's tanh
  std::map<ir::ParamId, std::string> leaves = {};  // "weight_ih"
  ir::ValueId x = -1, h = -1, c = -1;              // what it reads; c of an LSTMCell alone
  ir::ValueId next_c = -1;
};

// Those that a script prints of a stretch: outside of its blocks, and of each loop in the printed iteration alone. A path is
// left out as a whole where a node in print reads its parameters otherwise, or a value inside of a cell is read outside.
std::vector<Cell> find_cells(const Request& request, const std::vector<ir::Type>& types,
                             const Stretch& stretch, const Blocks& blocks, const std::vector<Loop>& loops);

// Whether the stretch is such a cell and no more, or a part of one: a module of torch, and no class of its own.
bool is_cell(const std::vector<Cell>& cells, const Stretch& stretch);

}  // namespace bakeoff::emit
