// An ONNX file becomes a workload (onnx/mapper.h), is proven against the file, and is written.
//
// Why slopes: a file has no backward pass to compare gradients with. So the proof draws a random change v
// of all trained weights and a random projection r of the outputs, and compares two numbers:
//
//   of the file       r . (f(w + h v) - f(w - h v)), two outputs in float64
//   of the referee    its gradient of r . f at w, times the change 2 h v
//
// Every tensor of which the workload trains a number is changed as a whole: what the workload keeps frozen in a copy of
// it shows.
//
// A wrong gradient of one parameter changes the second number. `bend` is r . (f(w + h v) + f(w - h v) - 2
// f(w)): at a kink (a ReLU at 0) the slopes of the two sides differ by that much, and so may the two
// numbers.
//
// In float64, weights are moved first: a bias of 0 that is never added would not show. The IR's weights are
// not always the file's (merged, transposed, split), so weights_of() maps the file again with other numbers
// in place of its initialisers.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/files.h"
#include "base/texts.h"
#include "import/import_proof.h"
#include "import/import_steps.h"
#include "ir/bounds.h"
#include "ir/op_table.h"
#include "ir/verify.h"
#include "onnx/mapper.h"
#include "onnx/onnx_model.h"
#include "sample/machine_limits.h"
#include "tensor/rng.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

using onnx::ArrayPtr;
using tensor::Tensor;

constexpr int64_t kBatchIfOpen = 32;  // of the recipe
constexpr double kStep = 1e-5;        // of the differences that gradients are compared with
constexpr const char* kDefect =
    "nothing was written: the import would not compute what the file computes; this is a defect of bakeoff, "
    "please report it with the model";

// The rows of a value of the file, N first, as the IR has them.
Tensor rows_of(const Tensor& value, const onnx::Layout& layout) {
  if (layout.n == onnx::kAdded) {
    Tensor row = value;
    row.shape.insert(row.shape.begin(), 1);
    return row;
  }
  const auto n = static_cast<size_t>(layout.n);
  onnx::Array split{.kind = onnx::Kind::kFloat, .shape = value.shape, .reals = value.data};
  const int64_t rows = value.shape[n] / (layout.before * layout.after);
  split.shape[n] = layout.before;
  split.shape.insert(split.shape.begin() + layout.n + 1, {rows, layout.after});
  onnx::Ints perm(split.shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin(), perm.begin() + layout.n + 1, perm.begin() + layout.n + 2);
  const ArrayPtr moved = onnx::transposed(split, perm);
  tensor::Shape shape = ir::with_batch(onnx::ir_shape(layout), rows);
  return Tensor{std::move(shape), moved->reals};
}

// Outputs as the IR's `join` has them: N,elements.
Tensor side_by_side(const std::vector<Tensor>& parts) {
  const auto rows = static_cast<size_t>(parts[0].shape[0]);
  Tensor all{.shape = {parts[0].shape[0], 0}, .data = {}};
  for (size_t row = 0; row < rows; ++row) {
    for (const Tensor& part : parts) {
      const auto width = static_cast<std::ptrdiff_t>(part.data.size() / rows);
      const auto begin = part.data.begin() + static_cast<std::ptrdiff_t>(row) * width;
      all.data.insert(all.data.end(), begin, begin + width);
    }
  }
  all.shape[1] = static_cast<int64_t>(all.data.size() / rows);
  return all;
}

// Rows of an input, N first, with the batch where the file has it.
ArrayPtr as_in_file(const onnx::Array& rows, const onnx::Layout& layout) {
  if (layout.n <= 0) return std::make_shared<onnx::Array>(rows);
  onnx::Ints perm(rows.shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin(), perm.begin() + 1, perm.begin() + layout.n + 1);
  return onnx::transposed(rows, perm);
}

// Every number times a factor of its own, so that none can take the place of another; zeros get small ones.
// Numbers that are not negative stay so: variances are among them.
ArrayPtr moved(const onnx::Array& array, const std::string& name) {
  auto made = std::make_shared<onnx::Array>(array);
  const bool positive = std::all_of(array.reals.begin(), array.reals.end(), [](double x) { return x >= 0; });
  tensor::Rng rng(kProofSeed, name);
  for (double& x : made->reals)
    x = x != 0 ? x * rng.uniform(0.8, 1.25) : rng.uniform(positive ? 0 : -0.05, 0.05);
  return made;
}

class OnnxProof {
 public:
  OnnxProof(const ImportRequest& request, const fs::path& folder, const onnx::ModelFile& file,
            const onnx::MapResult& mapped, const OriginModel& model, const ir::Workload& workload)
      : request_(request),
        folder_(folder),
        file_(file),
        mapped_(mapped),
        model_(model),
        workload_(workload) {}

  Result<ImportProof> run(const referee::Weights& weights, const Progress& progress) {
    TRY(Origin origin, Origin::start(request_, folder_));
    CHECK_OK(origin.request("open", {{"file", fs::absolute(request_.file).string()},
                                     {"outputs", join(mapped_.output_names, "\n")}}));
    TRY(const auto types, ir::infer(workload_));
    prediction_ = types[static_cast<size_t>(workload_.prediction())].shape;
    TRY(const referee::Inputs inputs, draw());
    progress("the import is proven against its origin: ONNX Runtime in float32");
    CHECK_OK(compare(origin, inputs, weights, {}, "float32", kImportFloat32, proof_.float32));
    progress("the import is proven against its origin: outputs in float64");
    TRY(const auto given, moved_initialisers());
    TRY(const referee::Weights shifted, weights_of(given));
    CHECK_OK(compare(origin, inputs, shifted, given, "float64", kImportOutputs, proof_.outputs));
    progress("the import is proven against its origin: slopes");
    CHECK_OK(compare_slope(origin, inputs, given));
    return proof_;
  }

  const std::vector<std::string>& notes() const { return notes_; }

 private:
  fs::path file(const std::string& what) const { return folder_ / ("onnx_" + what + ".safetensors"); }

  int64_t rows() const { return mapped_.batch > 0 ? mapped_.batch : kProofRowsPredict; }

  Result<referee::Inputs> draw() const {
    const auto bounds = ir::row_bounds(workload_);
    referee::Inputs inputs;
    tensor::NamedTensors named;
    for (size_t i = 0; i < workload_.inputs.size(); ++i) {
      const ir::Input& input = workload_.inputs[i];
      tensor::Rng rng(kProofSeed, input.name);
      const ir::Shape shape = ir::with_batch(input.type.shape, rows());
      if (input.name == model_.target) {
        inputs.emplace_back(target(rows(), bounds[i]));
        continue;
      }
      const std::string& onnx = mapped_.input_names.at(input.name);
      if (input.type.dtype == ir::DType::kI32) {
        tensor::IntTensor ids = drawn_integers(shape, bounds[i], rng);
        onnx::Array rows{.kind = onnx::Kind::kInt, .shape = shape, .ints = ids.data};
        const ArrayPtr laid = as_in_file(rows, mapped_.input_layouts.at(input.name));
        TRY(auto raw, tensor::encode(tensor::IntTensor{laid->shape, laid->ints}, tensor::DType::kI64));
        named.emplace_back(onnx, std::move(raw));
        inputs.emplace_back(std::move(ids));
        continue;
      }
      Tensor x = tensor::zeros(shape);  // numbers of float32, which both precisions hold
      for (double& one : x.data) one = static_cast<double>(static_cast<float>(rng.normal()));
      const onnx::Array rows{.kind = onnx::Kind::kFloat, .shape = shape, .reals = x.data};
      const ArrayPtr laid = as_in_file(rows, mapped_.input_layouts.at(input.name));
      TRY(auto raw, tensor::encode(Tensor{laid->shape, laid->reals}, tensor::DType::kF64));
      named.emplace_back(onnx, std::move(raw));
      inputs.emplace_back(std::move(x));
    }
    CHECK_OK(tensor::write_safetensors(file("inputs"), named));
    return inputs;
  }

  // Of the loss: any numbers will do that it takes.
  tensor::AnyTensor target(int64_t rows, const ir::RowBounds& bounds) const {
    const ir::Type& type = workload_.inputs.back().type;
    const ir::Shape shape = ir::with_batch(type.shape, rows);
    if (type.dtype == ir::DType::kF32) return tensor::zeros(shape);
    tensor::IntTensor labels{shape, std::vector<int64_t>(static_cast<size_t>(tensor::elements(shape)), 0)};
    for (size_t k = 0; k < labels.data.size() && !bounds.empty(); ++k)
      labels.data[k] = bounds[k % bounds.size()].value_or(kUnboundIntegers).begin;
    return labels;
  }

  using Given = std::map<std::string, ArrayPtr>;

  Result<Given> moved_initialisers() const {
    Given given;
    for (const std::string& source : mapped_.trained_sources) {
      TRY(const ArrayPtr array, onnx::stated(file_, source));
      if (array != nullptr) given[source] = moved(*array, source);
    }
    return given;
  }

  // The IR's weights where the file had these initialisers.
  Result<referee::Weights> weights_of(const Given& given) const {
    onnx::MapOptions options = mapped_.options;
    for (const auto& [name, array] : given) options.given[name] = array;
    options.unshared = mapped_.unshared;
    TRY(const onnx::MapResult again, onnx::Mapper(file_, options).run());
    if (again.text != mapped_.text)
      return Error{.message = "the import depends on the values of weights", .remedy = kDefect};
    return onnx::onnx_weights(again, workload_);
  }

  // From one side to the other; frees both.
  Result<referee::Weights> change_of(Given (&sides)[2]) const {
    TRY(referee::Weights change, weights_of(sides[1]));
    TRY(const referee::Weights below, weights_of(sides[0]));
    for (size_t id = 0; id < change.size(); ++id) {
      for (size_t i = 0; i < change[id].data.size(); ++i) change[id].data[i] -= below[id].data[i];
    }
    for (Given& side : sides) side.clear();
    return change;
  }

  Result<Tensor> origin_output(Origin& origin, const Given& given, const std::string& precision) const {
    tensor::NamedTensors named;
    for (const auto& [name, array] : given) {
      TRY(auto raw, tensor::encode(Tensor{array->shape, array->reals}, tensor::DType::kF64));
      named.emplace_back(name, std::move(raw));
    }
    CHECK_OK(tensor::write_safetensors(file("weights"), named));
    CHECK_OK(origin.request("compute", {{"weights", file("weights").string()},
                                        {"inputs", file("inputs").string()},
                                        {"precision", precision},
                                        {"out", file("answer").string()}}));
    TRY(const auto answer, tensor::SafetensorsFile::open(file("answer")));
    std::vector<Tensor> parts;
    for (const onnx::Layout& layout : mapped_.output_layouts) {
      TRY(const Tensor output, answer.read(fmt::format("output{}", parts.size())));
      if (output.shape.size() != layout.rank())
        return Error{.message = fmt::format("the file's output has the shape {}, the import's {}",
                                            tensor::to_text(output.shape), ir::to_text(prediction_)),
                     .remedy = kDefect};
      parts.push_back(rows_of(output, layout));
    }
    return parts.size() == 1 ? parts[0] : side_by_side(parts);
  }

  referee::EvalOptions inference(bool gradients) const {
    return {
        .train = false, .gradients = gradients, .threads = static_cast<int>(sample::allowed_cpus().size())};
  }

  Status compare(Origin& origin, const referee::Inputs& inputs, const referee::Weights& weights,
                 const Given& given, const std::string& precision, double bound, double& kept) {
    TRY(const Tensor wanted, origin_output(origin, given, precision));
    TRY(const auto mine, referee::evaluate(workload_, weights, inputs, inference(false)));
    kept = import_distance(mine.prediction, wanted);
    if (kept <= bound) return Done{};
    return Error{.message = fmt::format("the outputs in {} differ by {:.1e}, which is more than {:.0e}",
                                        precision, kept, bound),
                 .where = request_.title(),
                 .remedy = kDefect};
  }

  // The slope of a random projection of the outputs along a random change of all trained weights: by differences of
  // the origin's outputs, and by the referee's gradients. Smaller steps where they meet a kink.
  Status compare_slope(Origin& origin, const referee::Inputs& inputs, const Given& given) {
    if (given.empty()) return Done{};
    TRY(const referee::Weights at, weights_of(given));
    TRY(const auto plain, referee::evaluate(workload_, at, inputs, inference(false)));
    Tensor r = plain.prediction;
    tensor::Rng rng(kProofSeed, "projection");
    for (double& x : r.data) x = rng.normal();
    TRY(const auto mine, projected_gradients(inputs, at, plain.prediction, r));
    for (const Tensor& gradient : mine.gradients) proof_.parameters += gradient.data.empty() ? 0 : 1;
    for (const double step : {kStep, kStep / 10, kStep / 100}) {
      TRY(const Slope slope, slope_along(origin, given, step, at, mine.gradients, plain.prediction, r));
      proof_.gradients = slope.apart;
      if (slope.flat)
        notes_.push_back("slopes were not compared: the outputs hardly change with the weights");
      if (slope.flat || slope.apart <= kImportSlope) return Done{};
      if (slope.bent) continue;
      return Error{
          .message = fmt::format("the outputs agree, but their slopes differ by {:.1e}", slope.apart),
          .where = request_.title(),
          .remedy = kDefect};
    }
    notes_.push_back("slopes agree up to a kink of the outputs (a ReLU at 0, equal maxima)");
    return Done{};
  }

  struct Slope {
    double apart = 0;
    bool flat = false, bent = false;
  };

  Result<Slope> slope_along(Origin& origin, const Given& given, double step, const referee::Weights& at,
                            const std::vector<Tensor>& gradients, const Tensor& plain, const Tensor& r) {
    std::set<std::string> running;  // statistics have no gradients
    for (const onnx::GraphParameter& p : mapped_.parameters) {
      const ir::ParamId id = workload_.find_parameter(p.name);
      if (id < 0) continue;
      const ir::Role role = workload_.parameters[static_cast<size_t>(id)].role;
      if (role == ir::Role::kRunningMean || role == ir::Role::kRunningVar) running.insert(p.source);
    }
    Given sides[2] = {given, given};
    for (const auto& [name, array] : given) {
      if (running.contains(name)) continue;
      double scale = 0;
      for (const double x : array->reals) scale = std::max(scale, std::abs(x));
      for (const int side : {0, 1}) {
        auto made = std::make_shared<onnx::Array>(*array);
        tensor::Rng rng(kProofSeed, "slope/" + name);
        for (double& x : made->reals) x += (side == 0 ? -step : step) * scale * rng.uniform(-1, 1);
        sides[side][name] = std::move(made);
      }
    }
    TRY(const Tensor low, origin_output(origin, sides[0], "float64"));
    TRY(const Tensor high, origin_output(origin, sides[1], "float64"));
    TRY(const referee::Weights change, change_of(sides));
    if (import_distance(high, low) < step * 1e-4) return Slope{.flat = true};
    double wanted = 0, size = 0, bend = 0, got = 0;
    for (size_t i = 0; i < r.data.size(); ++i) {
      wanted += r.data[i] * (high.data[i] - low.data[i]);
      bend += r.data[i] * (high.data[i] + low.data[i] - 2 * plain.data[i]);
      size += std::abs(r.data[i] * plain.data[i]);
    }
    for (size_t id = 0; id < at.size(); ++id) {
      for (size_t i = 0; i < gradients[id].data.size(); ++i)
        got += gradients[id].data[i] * change[id].data[i];
    }
    // Differences of two outputs lose what rounding takes of each; at a kink (a ReLU at 0, equal maxima) the slopes on
    // the two sides differ, and the gradient may be either.
    const double scale = std::max(std::abs(wanted), step / 100 * size), apart = std::abs(got - wanted);
    return Slope{.apart = scale == 0 ? 0 : apart / scale, .bent = apart <= std::abs(bend)};
  }

  Result<referee::Evaluation> projected_gradients(const referee::Inputs& inputs,
                                                  const referee::Weights& weights, const Tensor& prediction,
                                                  const Tensor& r) const {
    // The gradient of sum (p - aim)^2 at the prediction p is r if aim = p - r / 2.
    ir::Workload changed = workload_;
    changed.inputs.back().type = {ir::DType::kF32, prediction_};
    project(changed);
    referee::Inputs all = inputs;
    Tensor aim = prediction;
    for (size_t i = 0; i < aim.data.size(); ++i) aim.data[i] -= r.data[i] / 2;
    all.back() = std::move(aim);
    return referee::evaluate(changed, weights, all, inference(true));
  }

  const ImportRequest& request_;
  fs::path folder_;
  const onnx::ModelFile& file_;
  const onnx::MapResult& mapped_;
  const OriginModel& model_;
  const ir::Workload& workload_;
  ir::Shape prediction_;
  ImportProof proof_;
  std::vector<std::string> notes_;
};

Result<onnx::MapOptions> options_of(const ImportRequest& request) {
  onnx::MapOptions options{.output = request.output};
  for (const ImportInput& input : request.inputs) {
    if (input.name.empty() && request.inputs.size() > 1)
      return Error{.message = "the inputs of an ONNX file are given by name",
                   .remedy = "for example --input 'input_ids=i32[8,128]'"};
    options.shapes[input.name] = input.type.shape;
    if (input.below > 0) options.below[input.name] = input.below;
  }
  return options;
}

}  // namespace

Status import_onnx(const ImportRequest& asked, const fs::path& folder, ImportReport& report,
                   const Progress& progress) {
  ImportRequest request = asked;
  TRY(const onnx::ModelFile file, onnx::ModelFile::open(request.file));
  TRY(const onnx::MapOptions options, options_of(request));
  TRY(const onnx::MapResult mapped, onnx::Mapper(file, options).run());
  progress(request.title() + " is read and mapped");
  const std::string name = onnx::ir_word(request.out.stem().string());
  TRY(const std::string text, onnx::workload_text(mapped, name, request.loss));
  OriginModel model{.text = text, .target = onnx::target_name(mapped)};
  model.version = onnx::producer(file);
  model.notes = mapped.notes;
  for (const auto& [op, source] : mapped.ops) model.lines.push_back({"", op, "", source});
  for (const onnx::GraphParameter& p : mapped.parameters) {
    if (!p.source.empty()) model.targets[p.name] = {p.source};
  }
  TRY(report.workload, parse_import(request, model));
  TRY(const referee::Weights weights, onnx::onnx_weights(mapped, report.workload));
  const onnx::FileNumbers& numbers = mapped.numbers;
  report.numbers = {numbers.trained, numbers.frozen, numbers.left_out};
  if (report.workload.parameter_count() != numbers.trained - numbers.summed + numbers.apart)
    return Error{
        .message = fmt::format(
            "the workload trains {} numbers, and {} of the file ({} of them in sums, {} more in copies)",
            report.workload.parameter_count(), numbers.trained, numbers.summed, numbers.apart),
        .where = request.title(),
        .remedy = kDefect};
  OnnxProof proof(request, folder, file, mapped, model, report.workload);
  TRY(report.proof, proof.run(weights, progress));
  report.notes = model.notes;
  report.notes.insert(report.notes.end(), proof.notes().begin(), proof.notes().end());
  const int64_t batch =
      !request.inputs.empty() ? request.inputs[0].type.shape[0] : std::max(mapped.batch, kBatchIfOpen);
  request.inputs = {{.type = {ir::DType::kF32, {batch}}}};
  return write_import(request, model, report, weights);
}

}  // namespace bakeoff
