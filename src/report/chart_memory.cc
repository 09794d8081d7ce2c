#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/chart_frame.h"
#include "report/charts.h"
#include "table/numbers.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr std::array<const char*, 5> kKinds = {"interpreter, framework and data, before the first step",
                                               "weights", "gradients", "optimizer state",
                                               "added by steps: activations, workspaces, compiled code"};

using Parts = std::array<double, 5>;

// What the processor's memory holds in the bursts. Weights, gradients and optimizer state follow from the recipe; what
// the process had before its first step, and what steps added, was measured.
std::optional<Parts> parts_of(const Summary& s, const Row& row) {
  if (row.gpu.on_gpu || row.at_least || !row.memory.in_bursts || !row.memory.per_sample || s.batch <= 0)
    return std::nullopt;
  const double added = std::max(0.0, *row.memory.per_sample * static_cast<double>(s.batch));
  const double before = *row.memory.in_bursts - added;
  const ModelBytes& model = s.model;
  const double state = model.gradients + model.optimizer;
  Parts parts = {before - model.weights, model.weights, model.gradients, model.optimizer, added - state};
  // A framework may make its gradients and state before the first step.
  if (parts[4] < 0) parts[0] += parts[4], parts[4] = 0;
  if (!(parts[0] > 0)) return std::nullopt;
  return parts;
}

double sum(const Parts& parts) {
  double all = 0;
  for (const double part : parts) all += part;
  return all;
}

std::string title_of(const std::string& name, const Parts& parts) {
  std::string text = name;
  for (size_t i = 0; i < kKinds.size(); ++i) text += fmt::format("\n{}: {}", kKinds[i], bytes(parts[i]));
  return text + "\ntogether: " + bytes(sum(parts));
}

}  // namespace

std::string memory_chart(const Summary& s, double width) {
  std::vector<Series> shown;
  std::vector<Parts> parts;
  std::vector<std::string> labels, values;
  double most = 0;
  for (const Series& series : all_series(s)) {
    const auto of = series.ranked ? parts_of(s, *series.row) : std::nullopt;
    if (!of) continue;
    shown.push_back(series);
    parts.push_back(*of);
    labels.push_back(series.name);
    values.push_back(bytes(sum(*of)));
    most = std::max(most, sum(*of));
  }
  if (shown.empty()) return "";
  const RowFrame f = row_frame(width, labels, values, 34);
  constexpr double kMiB = 1048576;
  const Axis axis(0, most / kMiB, f.left, f.right, false);
  Svg svg(f.width, f.height, "Memory while it trains, by kind");
  draw_x_axis(svg, axis, f.top, f.bottom, f.left, f.right, count, "MiB of resident memory");
  for (size_t i = 0; i < shown.size(); ++i) {
    svg.begin("row", title_of(labels[i], parts[i]), shown[i].index);
    svg.rect(0, f.centre(i) - 16, f.width, 32, "hit");
    draw_row_text(svg, f, i, labels[i], values[i]);
    double done = 0;
    for (size_t kind = 0; kind < kKinds.size(); ++kind) {
      const double from = axis.at(done);
      done += parts[i][kind] / kMiB;
      svg.rect(from, f.centre(i) - 9, axis.at(done) - from, 18, fmt::format("kind{}", kind));
    }
    svg.end();
  }
  return std::move(svg).finish();
}

}  // namespace bakeoff::report
