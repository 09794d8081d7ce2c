#pragma once

// Who executes a step of a program, and for how many rows of a batch at a time.
//
// Nearly every step works row by row, so a few rows can run through many steps while they lie in the second cache, and
// threads can share the rows. Shares of a batch are fixed when the program is written: every share has gradients of its
// own, which are added up in order, so that any number of threads gives the same bits. Fully connected layers read
// all their weights for however few rows they get: they take a whole share at a time. What looks across rows takes the
// whole batch on one thread, behind a barrier; batch norm on all, each with channels of its own; what sees no rows (a table
// made of weights) runs once forwards, and backwards once for each share.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bakeoff::emit::native {

enum class Extent { kFew, kShare, kBatch, kChannels, kModel };
// Whether every share runs it for its own rows.
inline bool by_share(Extent extent) { return extent == Extent::kFew || extent == Extent::kShare; }

struct Turn {
  size_t step = 0;
  bool back = false;
};

// Steps that run one after the other on the same rows.
struct Phase {
  Extent extent = Extent::kBatch;  // of its rows; never kModel
  std::vector<Turn> turns = {};
  bool waits = false;  // for all threads, before it begins
};

struct Schedule {
  std::vector<Extent> extents = {};  // by step
  std::vector<Phase> phases = {};
  int64_t shares = 1;    // of a batch
  int64_t few = 1;       // rows that run together
  bool adds_up = false;  // the loss is a sum over rows: each share has a part of it
  int64_t share_rows(int64_t batch) const { return (batch + shares - 1) / shares; }
};

}  // namespace bakeoff::emit::native
