#pragma once

// The pictures of the HTML report as inline SVG. Each is a pure function of the summary and the width in
// pixels; below 600 labels stand above their rows, for a phone. Empty text where there is nothing to draw.
// Downsampling is deterministic: the same summary gives the same bytes.

#include <string>
#include <vector>

#include "summary/summary.h"

namespace bakeoff::report {

inline constexpr double kWide = 1000;
inline constexpr double kNarrow = 420;

// One contender's identity in every picture: its colour class "c0".."c9", dashed from the eleventh on.
struct Series {
  int index = 0;
  std::string name;
  std::string cls;
  const Row* row = nullptr;
  bool ranked = false;
};
std::vector<Series> all_series(const Summary& summary);  // ranked first

// Step-time ratio to the leader with its interval, the margin as a band. An end that is not bounded is an open
// arrow. Logarithmic from a ratio of 2 on.
// Empty text for a leader without anyone behind.
std::string interval_chart(const Summary& summary, double width);

// Step times pooled over heats as a half violin, over median and quartiles; heat means as dots. Steps beyond
// the 99.5% quantile of all are counted, not drawn. Logarithmic where the contenders' times differ by more
// than 3.
std::string distribution_chart(const Summary& summary, double width);

// Process start, import, build and first step as stacked bars; a cold compilation cache as an outline.
std::string start_up_chart(const Summary& summary, double width);

// Where a step's time goes as stacked bars: arithmetic at the machine's measured peak, other work, threads without
// work, waiting for the batch. From shares that a race records (summary/limits.h reads the same).
std::string phases_chart(const Summary& summary, double width);

// Resident memory in the bursts as stacked bars, by kind: weights, gradients and optimizer state by the recipe, the
// rest as measured before the first step and added by steps. Of contenders on the processor alone.
std::string memory_chart(const Summary& summary, double width);

// Start-up plus steps times ms/step against the number of steps, break-even steps against the leader as dots;
// `relative`: divided by the leader's.
std::string total_time_chart(const Summary& summary, double width, bool relative);

// The first float32 losses of every contender and the float64 referee's; and how far they are from the
// referee's, on a logarithmic scale, "equal" at its foot.
std::string loss_chart(const Summary& summary, double width);
std::string loss_error_chart(const Summary& summary, double width);

// A section's picture: a curve for each contender; y logarithmic where it spans much. Of a curve that is no
// contender's (the referee's) the line is grey.
std::string curve_chart(const Summary& summary, const table::Picture& picture, double width);

// Bars from 1 to each factor, with its interval; logarithmic where they span much.
std::string speedup_chart(const table::Picture& picture, double width);
// Whichever of the two the picture is.
std::string section_chart(const Summary& summary, const table::Picture& picture, double width);

// Both axes logarithmic: model FLOP/s against FLOPs per byte. The measured peak and the memory levels'
// bandwidths as roofs, each contender as a dot at the workload's intensity, and the kinds of layers as marks
// at their own.
std::string roofline_chart(const Summary& summary, double width);

}  // namespace bakeoff::report
