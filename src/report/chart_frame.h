#pragma once

// Geometry that the pictures share: rows with labels, and axes.

#include <functional>
#include <string>
#include <vector>

#include "report/svg.h"

namespace bakeoff::report {

using Show = std::function<std::string(double)>;

// One row a contender: the label left of the plot (above it where narrow), a value right of it.
struct RowFrame {
  double width = 0, height = 0;
  double left = 0, right = 0;  // of the plot
  double top = 0, bottom = 0;
  double pitch = 0;  // from row to row
  bool narrow = false;

  double centre(size_t row) const;
};

RowFrame row_frame(double width, const std::vector<std::string>& labels,
                   const std::vector<std::string>& values, double thickness);

void draw_row_text(Svg& svg, const RowFrame& frame, size_t row, const std::string& label,
                   const std::string& value);

// Vertical grid lines with their values below the plot, and the axis's title.
void draw_x_axis(Svg& svg, const Axis& axis, double top, double bottom, double left, double right,
                 const Show& show, const std::string& title);

// Horizontal grid lines with their values left of the plot.
void draw_y_axis(Svg& svg, const Axis& axis, double left, double right, const Show& show);

}  // namespace bakeoff::report
