// One sweep forward and one backward over the nodes, which stand in an order that computes. Gradients are
// added where a value is read, so a value's gradient is complete when backward comes to its own node. Nodes
// below which nothing is trained are left out.
//
// Numbers in float64 need twice the memory that a framework needs. So without gradients a value is freed
// after its last reader, with gradients after its node's backward. A gradient of a parameter is complete at
// the first node that reads it, and is handed over there (take_gradient) instead of being kept.
//
// round_to_float32 is no computation in float32. It rounds each value once when it is complete, which is
// about what any computation in float32 loses at least; proofs take the distance that it makes as what
// rounding explains.

#include "referee/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "ir/bounds.h"
#include "ir/op_table.h"
#include "ir/verify.h"
#include "referee/ops.h"

namespace bakeoff::referee {
namespace {

Status check_weights(const ir::Workload& workload, const Weights& weights) {
  if (weights.size() != workload.parameters.size()) {
    return Error{.message = fmt::format("workload '{}' has {} parameters, got weights for {}", workload.name,
                                        workload.parameters.size(), weights.size())};
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    const ir::Parameter& p = workload.parameters[i];
    if (weights[i].shape != p.shape ||
        static_cast<int64_t>(weights[i].data.size()) != ir::elements(p.shape)) {
      return Error{.message = fmt::format("parameter '{}' must be {}, is {}", p.name,
                                          tensor::to_text(p.shape), tensor::to_text(weights[i].shape))};
    }
  }
  return Done{};
}

// `frames`: of the ctc whose labels they are.
Status check_bounds(const ir::Input& input, const IntTensor& values, const ir::RowBounds& bounds,
                    std::optional<int64_t> frames) {
  const size_t row_size = values.data.size() / static_cast<size_t>(values.shape[0]);
  for (size_t i = 0; i < values.data.size(); ++i) {
    const ir::Bound bound = bounds[i % bounds.size()].value_or(std::numeric_limits<int64_t>::max());
    if (bound.holds(values.data[i])) continue;
    return Error{.message = fmt::format("input '{}', row {}: {} is outside {}", input.name, i / row_size,
                                        values.data[i], ir::to_text(bound))};
  }
  for (size_t row = 0; frames && row < values.data.size() / row_size; ++row) {
    const auto misfit = ir::ctc_misfit(std::span(values.data).subspan(row * row_size, row_size), *frames);
    if (!misfit.empty())
      return Error{.message = fmt::format("input '{}', row {}: {}", input.name, row, misfit)};
  }
  return Done{};
}

// Batch statistics need two values per channel (the unbiased variance divides by n - 1; torch refuses as
// well).
Status check_batch_statistics(const ir::Workload& workload, const std::vector<ir::Type>& types,
                              int64_t batch) {
  for (const ir::Node& node : workload.nodes) {
    if (node.op != ir::Op::kBatchNorm) continue;
    const ir::Shape& x = types[static_cast<size_t>(node.inputs[0])].shape;
    if (ir::elements(x, batch) / x[1] < 2) {
      return Error{
          .message = fmt::format("{} = batch_norm: one value per channel has no variance", node.output),
          .remedy = "use a batch of at least 2"};
    }
  }
  return Done{};
}

}  // namespace

double NodeContext::edge() const {
  if (options.edges == Edges::kExact) return 0;
  const Tensor& x = input(0);
  const auto id = static_cast<size_t>(node.inputs[0]);
  const double share = options.edge_of.empty() ? kEdge : options.edge_of[id];
  return share * tensor::norm(x) / std::sqrt(static_cast<double>(std::max<size_t>(1, x.data.size())));
}

namespace {

void round_to_float32(Tensor& tensor) {
  for (double& x : tensor.data) x = static_cast<double>(static_cast<float>(x));
}

// One forward and one backward sweep.
class Sweep {
 public:
  Sweep(const ir::Workload& workload, const std::vector<ir::Type>& types, const Weights& weights,
        const Inputs& inputs, int64_t batch, const EvalOptions& options)
      : workload_(workload),
        types_(types),
        weights_(weights),
        inputs_(inputs),
        batch_(batch),
        options_(options) {
    made_.resize(workload.nodes.size());
    saved_.resize(workload.nodes.size());
  }

  Evaluation run();

 private:
  const AnyTensor& value(ir::ValueId id) const {
    const auto at = static_cast<size_t>(id);
    return workload_.is_input(id) ? inputs_[at] : made_[at - inputs_.size()];
  }
  NodeContext context(size_t node);
  void start_statistics();
  void find_trained_values();
  void forward();
  void forget(size_t node);
  void backward();
  void start_gradients(const ir::Node& node, Gradients& to);
  void hand_over(const ir::Node& node, size_t at);

  const ir::Workload& workload_;
  const std::vector<ir::Type>& types_;
  const Weights& weights_;
  const Inputs& inputs_;
  const int64_t batch_;
  const EvalOptions& options_;
  std::vector<AnyTensor> made_;  // by node
  std::vector<Saved> saved_;
  std::vector<bool> wanted_;          // by ValueId: depends on a trained parameter
  std::vector<size_t> first_reader_;  // by ParamId: backward comes to this node last
  Evaluation result_;
};

NodeContext Sweep::context(size_t node) {
  const ir::Node& n = workload_.nodes[node];
  const auto id = static_cast<size_t>(workload_.output_of(static_cast<int>(node)));
  NodeContext made{.node = n,
                   .index = static_cast<int>(node),
                   .inputs = {},
                   .shape = ir::with_batch(types_[id].shape, batch_),
                   .weights = weights_,
                   .options = options_,
                   .saved = saved_[node],
                   .running = result_.running};
  for (const ir::ValueId input : n.inputs) made.inputs.push_back(&value(input));
  return made;
}

void Sweep::start_statistics() {
  result_.running.biased.resize(weights_.size());
  for (size_t p = 0; options_.train && p < weights_.size(); ++p) {
    if (!ir::trainable(workload_.parameters[p])) result_.running.biased[p] = weights_[p];
  }
  result_.running.unbiased = result_.running.biased;
}

void Sweep::find_trained_values() {
  wanted_.assign(static_cast<size_t>(workload_.value_count()), false);
  for (size_t n = 0; n < workload_.nodes.size(); ++n) {
    const ir::Node& node = workload_.nodes[n];
    bool trained = false;
    for (const ir::Slot& slot : node.params) {
      trained = trained || ir::trainable(workload_.parameters[static_cast<size_t>(slot.param)]);
    }
    for (const ir::ValueId input : node.inputs) trained = trained || wanted_[static_cast<size_t>(input)];
    const auto id = static_cast<size_t>(workload_.output_of(static_cast<int>(n)));
    wanted_[id] = trained && types_[id].dtype == ir::DType::kF32;
  }
}

// Zeros for what the node's parameters get, where no later node has made them.
void Sweep::start_gradients(const ir::Node& node, Gradients& to) {
  for (const ir::Slot& slot : node.params) {
    const auto p = static_cast<size_t>(slot.param);
    if (!ir::trainable(workload_.parameters[p]) || to.params[p] != nullptr) continue;
    result_.gradients[p] = tensor::zeros(weights_[p].shape);
    to.params[p] = &result_.gradients[p];
  }
}

// Gives away the gradients that are complete once backward has come to node `at`.
void Sweep::hand_over(const ir::Node& node, size_t at) {
  if (!options_.take_gradient) return;
  for (const ir::Slot& slot : node.params) {
    const auto p = static_cast<size_t>(slot.param);
    if (first_reader_[p] != at || !ir::trainable(workload_.parameters[p])) continue;
    if (result_.gradients[p].data.empty()) continue;  // given away: one node, two slots
    options_.take_gradient(slot.param, result_.gradients[p]);
    result_.gradients[p] = {};
  }
}

void Sweep::backward() {
  find_trained_values();
  Gradients to;
  result_.gradients.resize(weights_.size());
  to.params.resize(weights_.size());
  first_reader_.resize(weights_.size());
  for (size_t n = workload_.nodes.size(); n-- > 0;) {
    for (const ir::Slot& slot : workload_.nodes[n].params) first_reader_[static_cast<size_t>(slot.param)] = n;
  }
  std::vector<Tensor> of_values(static_cast<size_t>(workload_.value_count()));  // empty until something adds
  of_values[static_cast<size_t>(workload_.loss())] = tensor::full({}, 1.0);
  for (size_t n = workload_.nodes.size(); n-- > 0;) {
    const ir::Node& node = workload_.nodes[n];
    Tensor& grad = of_values[static_cast<size_t>(workload_.output_of(static_cast<int>(n)))];
    start_gradients(node, to);
    if (grad.data.empty()) {  // nothing above is trained, or nothing reads it
      hand_over(node, n);
      forget(n);
      continue;
    }
    if (options_.round_to_float32) round_to_float32(grad);
    to.inputs.clear();
    for (const ir::ValueId input : node.inputs) {
      Tensor* place = nullptr;
      if (wanted_[static_cast<size_t>(input)]) {
        place = &of_values[static_cast<size_t>(input)];
        if (place->data.empty()) *place = tensor::zeros(tensor::shape_of(value(input)));
      }
      to.inputs.push_back(place);
    }
    find_functions(node.op)->backward(context(n), std::get<Tensor>(made_[n]), grad, to);
    grad = {};
    hand_over(node, n);
    forget(n);
  }
  for (size_t p = 0; p < weights_.size(); ++p) {  // of what no node reads
    const bool none = to.params[p] == nullptr && ir::trainable(workload_.parameters[p]);
    if (none) result_.gradients[p] = tensor::zeros(weights_[p].shape);
  }
}

// Frees what nothing reads any more.
void Sweep::forget(size_t node) {
  saved_[node] = {};
  const bool kept =
      options_.activations || workload_.output_of(static_cast<int>(node)) == workload_.prediction();
  if (!kept) made_[node] = {};
}

void Sweep::forward() {
  std::vector<size_t> last(static_cast<size_t>(workload_.value_count()),
                           0);  // the last node that reads a value
  for (size_t n = 0; n < workload_.nodes.size(); ++n) {
    for (const ir::ValueId id : workload_.nodes[n].inputs) last[static_cast<size_t>(id)] = n;
  }
  for (size_t n = 0; n < workload_.nodes.size(); ++n) {
    const ir::Node& node = workload_.nodes[n];
    made_[n] = find_functions(node.op)->forward(context(n));
    if (options_.round_to_float32 && std::holds_alternative<Tensor>(made_[n]))
      round_to_float32(std::get<Tensor>(made_[n]));
    if (options_.gradients) continue;
    for (const ir::ValueId id : node.inputs) {
      const auto at = static_cast<size_t>(id);
      if (!workload_.is_input(id) && last[at] == n) forget(at - inputs_.size());
    }
  }
}

Evaluation Sweep::run() {
  start_statistics();
  forward();
  result_.loss = std::get<Tensor>(made_.back()).data[0];
  if (options_.gradients) backward();
  result_.prediction = std::get<Tensor>(value(workload_.prediction()));
  if (options_.activations) {
    for (ir::ValueId id = 0; id < workload_.value_count(); ++id) result_.activations.push_back(value(id));
  }
  return std::move(result_);
}

}  // namespace

const OpFunctions* find_functions(ir::Op op) {
  static const std::vector<OpFunctions> table = [] {
    std::vector<OpFunctions> rows;
    for (const auto& part : {dense_ops(), norm_ops(), pointwise_ops(), elementwise_ops(), axis_ops(),
                             pooling_ops(), shape_ops(), sequence_ops(), loss_ops()}) {
      rows.insert(rows.end(), part.begin(), part.end());
    }
    return rows;
  }();
  for (const OpFunctions& row : table) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

Result<int64_t> check_inputs(const ir::Workload& workload, const Inputs& inputs) {
  CHECK_OK(ir::infer(workload));
  if (inputs.size() != workload.inputs.size()) {
    return Error{.message = fmt::format("workload '{}' has {} inputs, got {}", workload.name,
                                        workload.inputs.size(), inputs.size())};
  }
  const auto bounds = ir::row_bounds(workload);
  int64_t batch = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Input& input = workload.inputs[i];
    const Shape& shape = tensor::shape_of(inputs[i]);
    if (i == 0 && !shape.empty()) batch = shape[0];
    const auto count =
        std::visit([](const auto& x) { return static_cast<int64_t>(x.data.size()); }, inputs[i]);
    if (batch < 1 || shape != ir::with_batch(input.type.shape, batch) || count != tensor::elements(shape)) {
      return Error{.message =
                       fmt::format("input '{}' must be {} with N = {}, is {} with {} elements", input.name,
                                   ir::to_text(input.type), batch, tensor::to_text(shape), count)};
    }
    const bool integer = std::holds_alternative<IntTensor>(inputs[i]);
    if (integer != (input.type.dtype == ir::DType::kI32)) {
      return Error{.message =
                       fmt::format("input '{}' must hold {}", input.name, integer ? "floats" : "integers")};
    }
    if (integer)
      CHECK_OK(check_bounds(input, std::get<IntTensor>(inputs[i]), bounds[i],
                            ir::ctc_frames(workload, static_cast<ir::ValueId>(i))));
  }
  return batch;
}

Result<Evaluation> evaluate(const ir::Workload& workload, const Weights& weights, const Inputs& inputs,
                            const EvalOptions& options) {
  TRY(const std::vector<ir::Type> types, ir::infer(workload));
  CHECK_OK(check_weights(workload, weights));
  TRY(const int64_t batch, check_inputs(workload, inputs));
  if (options.train) CHECK_OK(check_batch_statistics(workload, types, batch));
  return Sweep(workload, types, weights, inputs, batch, options).run();
}

}  // namespace bakeoff::referee
