// schedule.h says what a schedule is; here is how it is chosen. extent_of() asks of each step what it needs
// to see: nothing of the batch, its own rows, or all rows. `above_` carries this on: what is computed from a
// value that depends on the batch depends on it too, even where it has no rows any more.
//
// The sizes are guesses from the cost of memory, made once when the program is written, because results must
// not depend on the machine that runs it. `few` rows are as many as fit into half of the second cache with
// all that the largest step reads and writes, matrix products excepted. `shares` is a power of 2 up to 8,
// such that adding up their gradients takes about 3% of a step at most. A product that reads its weights once
// for a few rows waits for memory, so below kEnoughRows rows it takes a whole share.
//
// A step backwards runs in the reverse order of the steps forwards. What sees no rows runs before all others
// and after all others.

#include "emit/native/make_schedule.h"

#include <algorithm>
#include <bit>

#include "ir/cost.h"

namespace bakeoff::emit::native {
namespace {

using ir::Op;

constexpr int64_t kSecondCache = 131072;  // numbers that rows may take there, beside weights: half of 1 MiB
constexpr int64_t kEnoughRows = 128;      // of a matrix product that reads its weights once
constexpr int64_t kLargeRow = 4096;       // numbers: a step with such rows has no need of more than a few
constexpr int64_t kMostShares = 8;
constexpr double kWorthThreads = 7.5e6;  // FLOPs of a step: below, it takes less than 50 us on one thread

bool batched(const Value& v) { return std::ranges::count(v.sizes, ir::kBatch) > 0; }
bool by_rows(const Value& v) {
  return std::ranges::count(v.sizes, ir::kBatch) == 1 && v.sizes[0] == ir::kBatch;
}
int64_t row_size(const Value& v) { return batched(v) ? count_of(v.sizes).count : 0; }

class Planner {
 public:
  explicit Planner(const Graph& graph) : graph_(graph), above_(graph.values.size(), false) {}

  Schedule make() {
    choose_extents();
    choose_sizes();
    plan_phases();
    return std::move(plan_);
  }

 private:
  const Value& value(int id) const { return graph_.values[static_cast<size_t>(id)]; }

  // Whether a step looks along the axis of rows.
  bool along_rows(const Step& step) const {
    if (step.node < 0) return false;
    const ir::Node& node = graph_.node(step);
    if (node.op == Op::kTranspose) return node.integers("perm")[0] != 0;
    return node.has_attribute("axis") && node.integer("axis") == 0 && batched(value(step.inputs[0]));
  }

  // A loss that is a sum over rows, divided by a number that is known before.
  bool is_sum(const Step& step) const {
    if (step.output != graph_.workload.loss()) return false;
    const Op op = graph_.node(step).op;
    const bool any = op == Op::kMse || op == Op::kL1 || op == Op::kBceWithLogits;
    const bool all = op == Op::kSoftmaxCrossEntropy && !ir::ignore_index(graph_.node(step));
    return (any || all) && std::ranges::all_of(step.inputs, [&](int id) { return by_rows(value(id)); });
  }

  Extent extent_of(const Step& step) {
    const Value& result = value(step.output);
    bool rows = batched(result), lower = true;
    for (const int id : step.inputs) {
      rows = rows || batched(value(id));
      lower = lower && !above_[static_cast<size_t>(id)];
    }
    above_[static_cast<size_t>(step.output)] = rows || !lower;
    if (!rows) return lower ? Extent::kModel : Extent::kBatch;
    if (step.node >= 0 && is_sum(step)) {
      plan_.adds_up = true;
      return Extent::kFew;
    }
    if (step.node >= 0 && graph_.node(step).op == Op::kBatchNorm && graph_.trains()) return Extent::kChannels;
    if (along_rows(step) || !by_rows(result)) return Extent::kBatch;
    for (const int id : step.inputs) {
      const Value& read = value(id);
      if (batched(read) ? !by_rows(read) : above_[static_cast<size_t>(id)] && !read.gradient.empty())
        return Extent::kBatch;
    }
    return Extent::kFew;
  }

  void choose_extents() {
    for (const Step& step : graph_.steps) plan_.extents.push_back(extent_of(step));
  }

  // Rows of a matrix product for each row of the batch; 0: none.
  int64_t product_rows(const Step& step) const {
    if (step.node < 0) return 0;
    const Op op = graph_.node(step).op;
    if (op == Op::kLstm || op == Op::kGru) return 1;  // one word of every row at a time
    if (op != Op::kLinear) return 0;
    return row_size(value(step.output)) / value(step.output).sizes.back();
  }

  void choose_sizes() {
    const int64_t batch = graph_.request.training.batch;
    double flops = 0;
    if (const auto cost = ir::step_cost(graph_.workload, graph_.request.training.optimizer, batch))
      flops = static_cast<double>(cost->flops());
    double trained = 0;
    for (size_t p = 0; p < graph_.gradients.size(); ++p) {
      if (!graph_.gradients[p].empty())
        trained += static_cast<double>(ir::elements(graph_.workload.parameters[p].shape));
    }
    // A share takes 3 passes over gradients of its own, 1.2 ns a number, and no more than 3% of its step at 150 GFLOP/s.
    const double most = trained > 0 ? 0.03 * flops / 150 / (1.2 * trained) : kMostShares;
    if (flops > kWorthThreads)
      plan_.shares =
          std::bit_floor(static_cast<uint64_t>(std::clamp(most, 2.0, static_cast<double>(kMostShares))));
    plan_.shares = std::min(plan_.shares, batch);

    int64_t largest = 1;
    for (size_t s = 0; s < graph_.steps.size(); ++s) {
      const Step& step = graph_.steps[s];
      if (plan_.extents[s] != Extent::kFew || product_rows(step) > 0) continue;
      int64_t together = row_size(value(step.output));
      for (const int id : step.inputs) together += row_size(value(id));
      largest = std::max(largest, together);
    }
    plan_.few = std::clamp<int64_t>(kSecondCache / largest, 1, plan_.share_rows(batch));
    Extent extent = Extent::kFew;
    for (size_t s = 0; s < graph_.steps.size(); ++s) {
      const Step& step = graph_.steps[s];
      if (plan_.extents[s] != Extent::kFew) continue;
      if (const int64_t rows = product_rows(step); rows > 0)
        extent = rows * plan_.few < kEnoughRows ? Extent::kShare : Extent::kFew;
      else if (row_size(value(step.output)) >= kLargeRow)
        extent = Extent::kFew;
      plan_.extents[s] = plan_.few == plan_.share_rows(batch) ? Extent::kShare : extent;
    }
  }

  void add(Extent extent, Turn turn) {
    if (plan_.phases.empty() || plan_.phases.back().extent != extent) {
      const bool waits = !plan_.phases.empty() && !(by_share(extent) && by_share(plan_.phases.back().extent));
      plan_.phases.push_back({.extent = extent, .waits = waits});
    }
    plan_.phases.back().turns.push_back(turn);
  }

  void plan_phases() {
    const size_t count = graph_.steps.size();
    for (size_t s = 0; s < count; ++s) {
      if (plan_.extents[s] == Extent::kModel) add(Extent::kBatch, {s, false});
    }
    for (size_t s = 0; s < count; ++s) {
      if (plan_.extents[s] != Extent::kModel) add(plan_.extents[s], {s, false});
    }
    for (size_t s = count; s-- > 0;) {
      if (graph_.steps[s].backward && plan_.extents[s] != Extent::kModel) add(plan_.extents[s], {s, true});
    }
    for (size_t s = count; s-- > 0;) {
      if (graph_.steps[s].backward && plan_.extents[s] == Extent::kModel) add(Extent::kShare, {s, true});
    }
  }

  const Graph& graph_;
  std::vector<bool> above_;  // by value: depends on the batch
  Schedule plan_;
};

}  // namespace

Schedule make_schedule(const Graph& graph) { return Planner(graph).make(); }

}  // namespace bakeoff::emit::native
