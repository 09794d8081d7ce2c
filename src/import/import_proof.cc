// Weights of a fresh model hide mistakes: biases are 0 and scales 1, so an import that forgets them gives
// equal outputs. Outputs are therefore compared twice, with the model's own weights and with weights that are
// moved away from such values (moved). And two batches of different sizes are used, since a model may have
// one size built in.
//
// Gradients are compared through a projection. The loss becomes the sum of (prediction - target)^2 with a
// target such that the gradient of the prediction is a random r: so gradients of any model can be compared,
// whatever its own loss is. They are read one at a time, because together they are as large as the model, and
// the origin keeps its own meanwhile.
//
// If anything differs, both sides are compared value by value, to name the first that does with its line in
// the user's source.

#include "import/import_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/files.h"
#include "ir/bounds.h"
#include "ir/cost.h"
#include "ir/op_table.h"
#include "ir/verify.h"
#include "referee/init.h"
#include "sample/machine_limits.h"
#include "tensor/rng.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

using tensor::Tensor;

constexpr const char* kProjection = "projection of the outputs";

// The workload with its loss replaced by sum((prediction - target)^2): its gradient with respect to the
// prediction is any r where the target is prediction - r / 2.
ir::Workload projected(const ir::Workload& workload, const OriginModel& model, const ir::Shape& prediction) {
  ir::Workload changed = workload;
  for (ir::Input& input : changed.inputs) {
    if (input.name == model.target) input.type = {ir::DType::kF32, prediction};
  }
  project(changed);
  return changed;
}

double largest(const Tensor& t) {
  double most = 0;
  for (const double x : t.data) most = std::max(most, std::abs(x));
  return most;
}

Tensor drawn(const ir::Shape& shape, tensor::Rng& rng) {
  Tensor t = tensor::zeros(shape);
  for (double& x : t.data) x = rng.normal();
  return t;
}

// Away from the origin's own values, which may hide a mistake: biases of 0, scales of 1. A weight of zeros
// alone gets small ones.
referee::Weights moved(const ir::Workload& workload, referee::Weights weights) {
  std::map<size_t, Tensor> frozen;
  for (size_t id = 0; id < weights.size(); ++id) {
    if (workload.parameters[id].frozen) frozen[id] = weights[id];
  }
  referee::Weights all = referee::perturbed(workload, std::move(weights), kProofSeed);
  for (auto& [id, tensor] : frozen) all[id] = std::move(tensor);
  for (size_t id = 0; id < all.size(); ++id) {
    const ir::Parameter& p = workload.parameters[id];
    if (p.frozen) continue;
    const bool small = p.shape.size() <= 1 && p.role == ir::Role::kWeight;
    if (!small && largest(all[id]) > 0) continue;
    tensor::Rng rng(kProofSeed, p.name);
    for (double& x : all[id].data) x += rng.uniform(-0.05, 0.05);
  }
  return all;
}

class Proof {
 public:
  Proof(Origin& origin, const OriginModel& model, const ir::Workload& workload, const fs::path& folder)
      : origin_(origin), model_(model), workload_(workload), folder_(folder) {}

  Result<ImportProof> run(referee::Weights weights, const Progress& progress) {
    TRY(const auto types, ir::infer(workload_));
    prediction_ = types[static_cast<size_t>(workload_.prediction())].shape;
    projected_ = projected(workload_, model_, prediction_);
    progress("the import is proven against its origin: outputs in inference mode");
    weights_ = std::move(weights);
    CHECK_OK(compare_inference(fs::path()));
    weights_ = moved(workload_, std::move(weights_));
    CHECK_OK(write_weights());
    CHECK_OK(compare_inference(file("weights")));
    progress("the import is proven against its origin: training mode and gradients");
    CHECK_OK(compare_training());
    return proof_;
  }

 private:
  Status write_weights() const {
    std::vector<tensor::TensorSource> named;
    for (size_t id = 0; id < weights_.size(); ++id)
      named.push_back(tensor::source_of(workload_.parameters[id].name, weights_[id], tensor::DType::kF64));
    return tensor::write_sources(file("weights"), std::move(named));
  }

  Status read_weights() {
    TRY(const auto held, tensor::SafetensorsFile::open(file("weights")));
    for (const ir::Parameter& p : workload_.parameters) {
      TRY(weights_.emplace_back(), held.read(p.name));
    }
    return Done{};
  }

  fs::path file(const char* what) const { return folder_ / fmt::format("proof_{}.safetensors", what); }

  // Draws a batch and writes it for the origin.
  Result<referee::Inputs> draw(int64_t rows, const char* what) const {
    const auto bounds = ir::row_bounds(workload_);
    referee::Inputs inputs;
    tensor::NamedTensors named;
    for (size_t i = 0; i < workload_.inputs.size(); ++i) {
      const ir::Input& input = workload_.inputs[i];
      tensor::Rng rng(kProofSeed, fmt::format("{}/{}", what, input.name));
      if (input.name == model_.target) {  // the origin's projection
        const Tensor r = drawn(ir::with_batch(prediction_, rows), rng);
        TRY(auto raw, tensor::encode(r, tensor::DType::kF64));
        named.emplace_back(kProjection, std::move(raw));
        inputs.emplace_back(r);
        continue;
      }
      const ir::Shape shape = ir::with_batch(input.type.shape, rows);
      if (input.type.dtype == ir::DType::kF32) {
        Tensor x = drawn(shape, rng);
        TRY(auto raw, tensor::encode(x, tensor::DType::kF64));
        named.emplace_back(input.name, std::move(raw));
        inputs.emplace_back(std::move(x));
        continue;
      }
      tensor::IntTensor ids = drawn_integers(shape, bounds[i], rng, few_zeros_);
      TRY(auto raw, tensor::encode(ids, tensor::DType::kI64));
      named.emplace_back(input.name, std::move(raw));
      inputs.emplace_back(std::move(ids));
    }
    CHECK_OK(tensor::write_safetensors(file(what), named));
    return inputs;
  }

  // Draws inputs and lets the origin compute with them. Where their masks leave an attention no key, as a
  // window among keys that are masked does, masks of few zeros take their place.
  Result<referee::Inputs> computed(const fs::path& weights, int64_t rows, const std::string& what) {
    for (;; few_zeros_ = true) {
      TRY(auto inputs, draw(rows, what.c_str()));
      TRY(const bool sees, origin_.compute(weights, file(what.c_str()), what == "train", file("answer")));
      if (sees) return inputs;
      if (few_zeros_)
        return Error{.message =
                         "for drawn inputs a mask leaves an attention no key in some rows, where the origin "
                         "gives 0 or nan",
                     .remedy = "keep one key in every row, for example mask[:, 0] = True"};
    }
  }

  int64_t training_rows() const {
    const bool normed =
        std::ranges::any_of(workload_.nodes, [](const ir::Node& n) { return n.op == ir::Op::kBatchNorm; });
    int64_t rows = normed ? kProofRowsNormed : kProofRowsTrain;
    const auto cheap = [&](int64_t n) {
      const auto cost = ir::step_cost(workload_, {}, n);
      return cost && cost->flops() <= kProofFlops;
    };
    while (rows < kMostProofRows && cheap(2 * rows)) rows *= 2;
    return rows;
  }

  size_t target() const {
    for (size_t i = 0; i < workload_.inputs.size(); ++i) {
      if (workload_.inputs[i].name == model_.target) return i;
    }
    return workload_.inputs.size() - 1;
  }

  referee::EvalOptions options(bool train) const {
    return {.train = train, .gradients = train, .threads = static_cast<int>(sample::allowed_cpus().size())};
  }

  // `weights`: the file of weights_; empty: the origin has them.
  Status compare_inference(const fs::path& weights) {
    TRY(const auto inputs, computed(weights, kProofRowsPredict, "predict"));
    TRY(const auto answer, tensor::SafetensorsFile::open(file("answer")));
    TRY(const Tensor wanted, answer.read("output"));
    if (!std::ranges::all_of(wanted.data, [](double x) { return std::isfinite(x); }))
      return Error{.message =
                       "the model itself gives numbers that are not finite for inputs drawn from a normal "
                       "distribution",
                   .remedy = "keep roots, logarithms and powers to numbers above 0, for example by clamp"};
    TRY(const auto mine, referee::evaluate(projected_, weights_, inputs, options(false)));
    const double apart = import_distance(mine.prediction, wanted);
    proof_.outputs = std::max(proof_.outputs, apart);
    if (apart <= kImportOutputs) return Done{};
    return mismatch(fmt::format("the outputs in inference mode{} differ by {:.1e}",
                                weights.empty() ? " at the model's own weights" : "", apart));
  }

  Status compare_training() {
    // The origin keeps its weights and gradients meanwhile; both processes together would need twice the memory.
    weights_.clear();
    TRY(auto inputs, computed(file("weights"), training_rows(), "train"));
    CHECK_OK(read_weights());
    TRY(const auto answer, tensor::SafetensorsFile::open(file("answer")));
    TRY(const Tensor wanted, answer.read("output"));
    auto& r = std::get<Tensor>(inputs[target()]);
    if (wanted.shape != r.shape)
      return mismatch(fmt::format("the origin gives {}, the import {}", tensor::to_text(wanted.shape),
                                  tensor::to_text(r.shape)));
    for (size_t i = 0; i < r.data.size(); ++i) r.data[i] = wanted.data[i] - r.data[i] / 2;
    TRY(const double least, least_scale(answer));
    referee::EvalOptions how = options(true);
    std::map<ir::ParamId, double> gradients;  // their distances
    how.take_gradient = [&](ir::ParamId id, const Tensor& gradient) {
      const auto theirs = answer.read(gradient_of(id));
      if (theirs) gradients[id] = import_distance(gradient, *theirs, least);
    };
    TRY(const auto mine, referee::evaluate(projected_, weights_, inputs, how));
    const double apart = import_distance(mine.prediction, wanted);
    proof_.outputs = std::max(proof_.outputs, apart);
    if (apart > kImportOutputs)
      return mismatch(fmt::format("the outputs in training mode differ by {:.1e}", apart));
    CHECK_OK(compare_running(answer, mine));
    return compare_gradients(gradients);
  }

  Status compare_running(const tensor::SafetensorsFile& answer, const referee::Evaluation& mine) {
    for (size_t id = 0; id < workload_.parameters.size(); ++id) {
      const ir::Parameter& p = workload_.parameters[id];
      if (p.role != ir::Role::kRunningMean && p.role != ir::Role::kRunningVar) continue;
      TRY(const Tensor wanted, answer.read("running:" + p.name));
      const auto& running = model_.biased_variance ? mine.running.biased : mine.running.unbiased;
      const double apart = import_distance(running[id], wanted);
      proof_.running = std::max(proof_.running, apart);
      if (apart > kImportOutputs)
        return Error{.message = fmt::format("the running statistics '{}' differ by {:.1e} after a step",
                                            p.name, apart),
                     .where = reader(static_cast<ir::ParamId>(id)).where,
                     .remedy = kDefect};
    }
    return Done{};
  }

  std::string gradient_of(ir::ParamId id) const {
    return "gradient:" + workload_.parameters[static_cast<size_t>(id)].name;
  }

  // Of all gradients. They are read one by one: together they are as large as the model.
  Result<double> least_scale(const tensor::SafetensorsFile& answer) {
    double most = 0;
    for (size_t id = 0; id < workload_.parameters.size(); ++id) {
      const std::string name = gradient_of(static_cast<ir::ParamId>(id));
      if (answer.find(name) == nullptr) continue;
      ++proof_.parameters;
      TRY(const Tensor wanted, answer.read(name));
      most = std::max(most, largest(wanted));
    }
    return kGradientFloor * most;
  }

  Status compare_gradients(const std::map<ir::ParamId, double>& gradients) {
    if (static_cast<int64_t>(gradients.size()) != proof_.parameters)
      return Error{
          .message = fmt::format("{} gradients of {} were compared", gradients.size(), proof_.parameters),
          .remedy = kDefect};
    int worst = -1;
    double worst_by = 0;
    for (const auto& [id, apart] : gradients) {
      proof_.gradients = std::max(proof_.gradients, apart);
      // The last reader in the graph is the first that the gradient comes through.
      const int at = last_reader(id);
      if (apart > kImportGradients && at > worst) worst = at, worst_by = apart;
    }
    if (worst < 0) return Done{};
    const ir::Node& node = workload_.nodes[static_cast<size_t>(worst)];
    return Error{
        .message = fmt::format("the outputs agree, but gradients of the parameters of '{} = {}' and of those "
                               "before it differ by {:.1e}",
                               node.output, ir::info(node.op).name, worst_by),
        .where = line_of(node.output).where,
        .remedy = kDefect};
  }

  int last_reader(ir::ParamId id) const {
    for (size_t n = workload_.nodes.size(); n-- > 0;) {
      for (const ir::Slot& slot : workload_.nodes[n].params) {
        if (slot.param == id) return static_cast<int>(n);
      }
    }
    return -1;
  }

  OriginLine reader(ir::ParamId id) const {
    const int node = last_reader(id);
    return node < 0 ? OriginLine{} : line_of(workload_.nodes[static_cast<size_t>(node)].output);
  }

  OriginLine line_of(const std::string& value) const {
    for (const OriginLine& line : model_.lines) {
      if (line.value == value) return line;
    }
    return {};
  }

  // Compares value after value, and names the first that differs.
  Error mismatch(const std::string& what) {
    const auto found = first_difference();
    if (!found) return {.message = fmt::format("{} ({})", what, found.error().message), .remedy = kDefect};
    if (found->value.empty())
      return {.message = what + "; every value of the graph that can be compared agrees in training mode",
              .remedy = kDefect};
    return {.message = fmt::format("{}; the first value that differs is '{} = {}', which stands for {}", what,
                                   found->value, found->op, found->source),
            .where = found->where,
            .remedy = kDefect};
  }

  Result<OriginLine> first_difference() {
    TRY(const auto inputs, draw(training_rows(), "train"));
    CHECK_OK(origin_.trace(file("train"), file("trace")));
    TRY(const auto answer, tensor::SafetensorsFile::open(file("trace")));
    referee::EvalOptions wanted = options(true);
    wanted.gradients = false;
    wanted.activations = true;
    TRY(const auto mine, referee::evaluate(projected_, weights_, inputs, wanted));
    for (size_t n = 0; n < workload_.nodes.size(); ++n) {
      const std::string& name = workload_.nodes[n].output;
      if (answer.find(name) == nullptr) continue;
      const auto id = static_cast<size_t>(workload_.output_of(static_cast<int>(n)));
      const Tensor* value = std::get_if<Tensor>(&mine.activations[id]);
      if (value == nullptr) continue;
      TRY(const Tensor theirs, answer.read(name));
      // Shapes differ where a value is stored once for all rows: it cannot be compared.
      if (theirs.shape == value->shape && import_distance(*value, theirs) > kImportOutputs)
        return line_of(name);
    }
    return OriginLine{};
  }

  static constexpr const char* kDefect =
      "nothing was written: the import would not compute what the model computes; this is a defect of "
      "bakeoff, please report it with the model";

  Origin& origin_;
  const OriginModel& model_;
  const ir::Workload& workload_;
  fs::path folder_;
  ir::Shape prediction_;
  ir::Workload projected_;
  referee::Weights weights_;
  bool few_zeros_ = false;  // in masks that are drawn
  ImportProof proof_;
};

}  // namespace

void project(ir::Workload& workload) {
  ir::Node loss = ir::node_with_defaults(ir::Op::kMse);
  loss.output = workload.nodes.back().output;
  loss.inputs = workload.first_loss().inputs;
  ir::set_attribute(loss, "reduction", std::string("sum"));
  workload.nodes.resize(static_cast<size_t>(workload.model_end()));
  workload.nodes.push_back(std::move(loss));
}

tensor::IntTensor drawn_integers(const ir::Shape& shape, const ir::RowBounds& bounds, tensor::Rng& rng,
                                 bool few_zeros) {
  tensor::IntTensor ids{shape, std::vector<int64_t>(static_cast<size_t>(tensor::elements(shape)))};
  const auto end = [&](size_t k) { return bounds[k % bounds.size()].value_or(kUnboundIntegers).end; };
  const auto length = static_cast<size_t>(shape.size() > 1 ? shape.back() : 1);
  bool mask = length > 1;
  for (size_t k = 0; k < bounds.size(); ++k) mask = mask && end(k) == 2;
  for (size_t k = 0; k < ids.data.size(); ++k) ids.data[k] = mask ? 0 : rng.integer(0, end(k) - 1);
  for (size_t k = 0; mask && few_zeros && k < ids.data.size(); ++k)
    ids.data[k] = k % length % 3 == 2 ? rng.integer(0, 1) : 1;
  for (size_t k = 0; mask && !few_zeros && k < ids.data.size(); k += length)
    std::fill_n(ids.data.begin() + static_cast<long>(k), rng.integer(1, static_cast<int64_t>(length)), 1);
  return ids;
}

double import_distance(const Tensor& a, const Tensor& b, double least_scale) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (a.shape != b.shape || a.data.size() != b.data.size()) return kNever;
  double apart = 0;
  for (size_t i = 0; i < a.data.size(); ++i) {
    const double one = std::abs(a.data[i] - b.data[i]);
    if (!std::isfinite(one)) return kNever;
    apart = std::max(apart, one);
  }
  const double scale = std::max(largest(b), least_scale);
  return apart == 0 ? 0 : scale == 0 ? kNever : apart / scale;
}

Result<ImportProof> prove_import(Origin& origin, const OriginModel& model, const ir::Workload& workload,
                                 referee::Weights weights, const fs::path& folder, const Progress& progress) {
  return Proof(origin, model, workload, folder).run(std::move(weights), progress);
}

}  // namespace bakeoff
