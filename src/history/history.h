#pragma once

// The history of one line of the store: its points in time, where the level shifted, and what changed beside it. A
// pure function of the points.
//
//   const History history = history_of(line, points);
//
// A shift is only a nomination (stats/history.h): stored numbers of other days prove nothing, since the machine may
// have changed too. `bakeoff gate` decides, by running both versions as one race.

#include <optional>
#include <string>
#include <vector>

#include "store/index.h"

namespace bakeoff {

// What changed from one point to the next.
struct Mark {
  size_t at = 0;                          // index of the first point after it
  std::vector<std::string> changes = {};  // "torch 2.12.0 -> 2.13.0", "commit 1a2b3c4", "script"
  bool packages = false;                  // a package is among them
  bool operator==(const Mark&) const = default;
};

// A nominated change of level, or one that was accepted.
struct Shift {
  size_t at = 0;      // index of the first point after it
  double before = 0;  // seconds per step: the geometric mean of the level before, and after, without spikes
  double after = 0;
  double ratio = 1;  // after / before
  bool accepted = false;
  std::string note = {};                  // of an accepted one
  std::vector<std::string> changes = {};  // the nearest mark at or just before it
  bool open() const { return !accepted; }
  bool operator==(const Shift&) const = default;
};

struct History {
  store::Line line = {};
  std::vector<store::LinePoint> points = {};  // oldest first
  std::vector<Mark> marks = {};
  std::vector<Shift> shifts = {};
  int64_t left_out = 0;             // earlier points that are not among `points`
  std::vector<double> levels = {};  // one a point: the level that holds there, in seconds
  bool of_index = true;             // false: a file's (series_file.h), of which no step is marked by us
  size_t open_shifts() const;
  bool operator==(const History&) const = default;
};

// Single slow runs count as spikes (stats/history.h) in what follows. Shifts: the points are divided at accepted steps, and each part, on the log scale, at its most significant change
// of level as long as one is significant at 1%. One shift is one alert, however many points follow it.
History history_of(const store::Line& line, std::vector<store::LinePoint> points);

// Fewest points of a part in which a shift can be nominated.
inline constexpr size_t kFewestPoints = 8;

// As people read it, "Keras on TensorFlow", in place of the contender's id; of another program's file, its name.
std::string label_of(const store::Line& line);
// "mlp_small, Keras on TensorFlow".
std::string title_of(const store::Line& line);

// The lines that `words` mean: one whose id begins with it (at least 4 digits), or whose name or title is it; else all
// whose name or title contains it. Empty words: all.
std::vector<store::Line> lines_named(const std::vector<store::Line>& lines, const std::string& words);

}  // namespace bakeoff
