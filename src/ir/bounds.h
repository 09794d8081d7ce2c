#pragma once

// What the integers that the inputs of a workload hold may be.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/workload.h"

namespace bakeoff::ir {

// An integer in [begin, end), or the label that a loss leaves out: of ctc the padding.
struct Bound {
  int64_t end = 0;
  std::optional<int64_t> ignored = {};
  int64_t begin = 0;
  Bound(int64_t e, std::optional<int64_t> left_out = {}, int64_t b = 0)
      : end(e), ignored(left_out), begin(b) {}
  bool holds(int64_t value) const { return (value >= begin && value < end) || value == ignored; }
  bool operator==(const Bound&) const = default;
};
// "0..9", "0..9 and -100"
std::string to_text(const Bound& bound);
// What to do about data outside.
const char* remedy(const Bound& bound);

// Of each element of an input's row: what all nodes allow that read it (labels: classes; ids: rows of the table),
// also behind flatten, reshape, transpose and slice; nothing where no node bounds it.
using RowBounds = std::vector<std::optional<Bound>>;

// By input index; empty for float inputs. The workload must be valid.
std::vector<RowBounds> row_bounds(const Workload& workload);
RowBounds row_bounds(const Workload& workload, ValueId input);

// By input index: the smallest end of its row.
std::vector<std::optional<int64_t>> integer_bounds(const Workload& workload);

// That of one input.
std::optional<int64_t> integer_bound(const Workload& workload, ValueId input);

// Behind the last label of a row that a ctc compares.
inline constexpr int64_t kNoLabel = -1;
// The number of frames, T, of the ctc that compares the labels of this input; the least of several. Nothing where none
// does. The workload must be valid.
std::optional<int64_t> ctc_frames(const Workload& workload, ValueId input);
// What is wrong with a row of its labels besides their bounds; "" if nothing: a label behind the end, or more labels than
// `frames` can hold (each a frame, and one of blank between equal neighbours).
std::string ctc_misfit(std::span<const int64_t> row, int64_t frames);
// Ends a row of drawn labels behind the first `length` of them, or earlier, where `frames` hold no more.
void end_labels(std::span<int64_t> row, int64_t length, int64_t frames);

}  // namespace bakeoff::ir
