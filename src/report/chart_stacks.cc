// Bars made of parts: memory of a process and time of a step. Parts are measured or follow from the recipe,
// and add up to what was measured as a whole; what is left over is a part of its own with a name, never
// spread over the others.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "report/chart_frame.h"
#include "report/charts.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

// A contender's bar, made of parts.
struct Stack {
  Series series;
  std::vector<double> parts;
};

// What the parts are, and how their values read: one class of colour each, "kind0" and so on.
struct Kinds {
  std::vector<const char*> names;
  std::string (*show)(double value);
  const char* together;  // "together"
};

double sum(std::span<const double> parts) {
  double all = 0;
  for (const double part : parts) all += part;
  return all;
}

std::string title_of(const std::string& name, const std::vector<double>& parts, const Kinds& kinds) {
  std::string text = name;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] > 0) text += fmt::format("\n{}: {}", kinds.names[i], kinds.show(parts[i]));
  }
  return text + fmt::format("\n{}: {}", kinds.together, kinds.show(sum(parts)));
}

struct StackAxis {
  const char* title;  // of the picture
  const char* unit;   // what the axis says
  double one;         // one unit of the axis, in the parts' own
};

std::string stack_chart(const std::vector<Stack>& stacks, const Kinds& kinds, const StackAxis& of,
                        double width) {
  if (stacks.empty()) return "";
  std::vector<std::string> labels, values;
  double most = 0;
  for (const Stack& stack : stacks) {
    labels.push_back(stack.series.name);
    values.push_back(kinds.show(sum(stack.parts)));
    most = std::max(most, sum(stack.parts));
  }
  const RowFrame f = row_frame(width, labels, values, 34);
  const Axis axis(0, most / of.one, f.left, f.right, false);
  Svg svg(f.width, f.height, of.title);
  draw_x_axis(svg, axis, f.top, f.bottom, f.left, f.right, count, of.unit);
  for (size_t i = 0; i < stacks.size(); ++i) {
    svg.begin("row", title_of(labels[i], stacks[i].parts, kinds), stacks[i].series.index);
    svg.rect(0, f.centre(i) - 16, f.width, 32, "hit");
    draw_row_text(svg, f, i, labels[i], values[i]);
    double done = 0;
    for (size_t kind = 0; kind < stacks[i].parts.size(); ++kind) {
      const double from = axis.at(done);
      done += stacks[i].parts[kind] / of.one;
      svg.rect(from, f.centre(i) - 9, axis.at(done) - from, 18, fmt::format("kind{}", kind));
    }
    svg.end();
  }
  return std::move(svg).finish();
}

// The stacks of the ranked contenders for which `parts` knows them.
template <typename Parts>
std::vector<Stack> stacks_of(const Summary& s, const Parts& parts) {
  std::vector<Stack> all;
  for (const Series& series : all_series(s)) {
    if (!series.ranked) continue;
    if (auto of = parts(*series.row)) all.push_back({series, std::move(*of)});
  }
  return all;
}

// What the processor's memory holds in the bursts. Weights, gradients and optimizer state follow from the recipe; what
// the process had before its first step, and what steps added, was measured.
std::optional<std::vector<double>> memory_parts(const Summary& s, const Row& row) {
  if (row.gpu.on_gpu || row.at_least || !row.memory.in_bursts || !row.memory.per_sample || s.batch <= 0)
    return std::nullopt;
  const double added = std::max(0.0, *row.memory.per_sample * static_cast<double>(s.batch));
  const double before = *row.memory.in_bursts - added;
  const ModelBytes& model = s.model;
  const double state = model.gradients + model.optimizer;
  std::vector<double> parts = {before - model.weights, model.weights, model.gradients, model.optimizer,
                               added - state};
  // A framework may make its gradients and state before the first step.
  if (parts[4] < 0) parts[0] += parts[4], parts[4] = 0;
  if (!(parts[0] > 0)) return std::nullopt;
  return parts;
}

// Of a step on processors, in ms: the wait for its batch; threads without work, or without a processor; the model's arithmetic at the measured
// peak of its threads; and the rest of the threads' work. Of a GPU: the wait, the GPU idle, the GPU at work.
std::optional<std::vector<double>> step_parts(const Row& row) {
  if (row.at_least || !(row.ms_per_step.value > 0)) return std::nullopt;
  const double step = row.ms_per_step.value, wait = step * std::clamp(row.wait.share.value_or(0), 0.0, 1.0);
  std::optional<double> working;  // share of the time that is no wait
  if (row.gpu.on_gpu)
    working = row.gpu.busy;
  else if (row.usage.cores && row.threads > 0)
    working = *row.usage.cores / row.threads;
  if (!working) return std::nullopt;
  const double busy = (step - wait) * std::clamp(*working, 0.0, 1.0);
  // Time that threads would have worked, had they had a processor: waiting is a share of work and this together.
  const double lost = row.gpu.on_gpu ? 0 : std::min(0.99, row.usage.waiting.value_or(0));
  const double no_processor = std::min(busy * lost / (1 - lost), step - wait - busy);
  const double ideal = row.gpu.on_gpu ? 0 : std::min(busy, step * row.flop_use.value_or(0));
  return std::vector<double>{ideal, busy - ideal, step - wait - busy - no_processor, wait, no_processor};
}

}  // namespace

std::string memory_chart(const Summary& s, double width) {
  const Kinds kinds = {{"interpreter, framework and data, before the first step", "weights", "gradients",
                        "optimizer state", "added by steps: activations, workspaces, compiled code"},
                       bytes,
                       "together"};
  return stack_chart(stacks_of(s, [&](const Row& row) { return memory_parts(s, row); }), kinds,
                     {"Memory during the bursts, by kind", "MiB of resident memory", 1048576}, width);
}

std::string phases_chart(const Summary& s, double width) {
  const Kinds kinds = {{"the model's arithmetic at the measured peak",
                        "other work of its threads, or of its GPU", "threads, or the GPU, without work",
                        "waiting for the batch", "waiting for a processor that others use"},
                       [](double ms) { return duration(ms); },
                       "a step"};
  return stack_chart(stacks_of(s, step_parts), kinds, {"Where the time of a step goes", "ms a step", 1},
                     width);
}

}  // namespace bakeoff::report
