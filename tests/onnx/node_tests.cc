// Imports ONNX's own node tests: each is mapped, evaluated by the referee on its recorded inputs and compared with its
// recorded outputs.
//
//   bakeoff_onnx_node_tests FOLDER...     folders with model.onnx and test_data_set_0/
//
// One line for each: "passed NAME", "refused NAME: OP: why", "out of scope NAME: reason", "MISMATCH NAME: ...";
// then a table for docs/import.md with the reasons, and the counts at the end.
// A test has no batch. It is tried with axis 0 or axis 1 as the batch and with a batch that is added in front; with all
// inputs as inputs, with all but the first as initialisers, and with those as initialisers that have other rows than the
// first. Ops that are computed at import alone (ConstantOfShape, Range) are tried on constants. A test passes if one way
// is mapped; every way that is mapped must give the recorded outputs.

#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <numeric>

#include "ir/op_table.h"
#include "ir/text.h"
#include "onnx/mapper.h"
#include "onnx/onnx_model.h"
#include "onnx/rows.h"
#include "referee/evaluate.h"

namespace {

using namespace bakeoff;        // NOLINT: a program
using namespace bakeoff::onnx;  // NOLINT
namespace fs = std::filesystem;

// What no import is meant to take: ops of ONNX by the reason. All other ops of the tests are in scope.
const std::vector<std::pair<std::string, std::vector<std::string>>> kOutOfScope = {
    {"texts, pictures in files",
     {"StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch", "TfIdfVectorizer", "LabelEncoder",
      "ImageDecoder"}},
    {"sequences and optional values",
     {"SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
      "SequenceMap", "SplitToSequence", "ConcatFromSequence", "Optional", "OptionalGetElement",
      "OptionalHasElement"}},
    {"control flow", {"If", "Loop", "Scan"}},
    {"quantisation, arithmetic on bits",
     {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul",
      "ConvInteger", "MatMulInteger", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot",
      "BitCast"}},
    {"random numbers",
     {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}},
    {"training: optimizers, losses in the graph",
     {"Adagrad", "Adam", "Momentum", "Gradient", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}},
    {"sizes or order that depend on the data",
     {"NonZero", "Unique", "Compress", "NonMaxSuppression", "TopK"}},
    {"places that depend on the data",
     {"GatherElements", "GatherND", "Scatter", "ScatterElements", "ScatterND", "TensorScatter", "GridSample",
      "AffineGrid", "RoiAlign", "MaxRoiPool", "MaxUnpool", "DeformConv", "ReverseSequence"}},
    {"signals, matrix decompositions",
     {"DFT", "STFT", "MelWeightMatrix", "HannWindow", "HammingWindow", "BlackmanWindow", "Det"}},
    {"states from call to call, preview and other domains",
     {"LinearAttention", "CausalConvWithState", "FlexAttention", "ArrayFeatureExtractor", "Binarizer",
      "TreeEnsemble", "Normalizer", "Scaler"}},
};
const std::string kTypes = "types of 8 bits and fewer, texts, sequences";
const std::string kIntegers = "arithmetic on integers that depend on the inputs";
const std::string kEmpty = "empty tensors, no input but scalars: no batch";

void collect_ops(const wire::GraphProto& graph, std::set<std::string>& ops) {
  for (const auto& node : graph.node()) {
    ops.insert(node.op_type());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) collect_ops(attribute.g(), ops);
    }
  }
}

// Why a test that is refused is out of scope; "" where an op of it is supported in some form, or none is listed.
std::string out_of_scope(const fs::path& folder, const std::string& refusal) {
  std::ifstream in(folder / "model.onnx", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  wire::ModelProto model;
  std::set<std::string> ops;
  if (model.ParseFromString(bytes)) collect_ops(model.graph(), ops);
  for (const auto& [reason, names] : kOutOfScope) {
    for (const std::string& name : names) {
      if (ops.contains(name)) return reason;
    }
  }
  const auto integer = [](const wire::ValueInfoProto& value) {
    const int type = value.type().tensor_type().elem_type();
    return (type >= 2 && type <= 7) || type == 12 || type == 13;
  };
  const auto& graph = model.graph();
  if (graph.input_size() > 0 && integer(graph.input(0)) && std::ranges::all_of(graph.output(), integer))
    return kIntegers;
  const auto says = [&](std::string_view words) { return refusal.find(words) != std::string::npos; };
  if (says("is no type of numbers that is read") || says("put is no tensor")) return kTypes;
  if (says("computes with integers that depend") || (says("is outside 0..") && !says("'indices'")) ||
      says("got i32[") || says("an output of integers"))
    return kIntegers;
  const auto sizes = [](const wire::ValueInfoProto& value) -> const auto& {
    return value.type().tensor_type().shape().dim();
  };
  const auto empty = [&](const wire::ValueInfoProto& value) {
    return std::ranges::any_of(sizes(value),
                               [](const auto& dim) { return dim.has_dim_value() && dim.dim_value() == 0; });
  };
  if (std::ranges::any_of(graph.input(), empty) ||
      std::ranges::all_of(graph.input(), [&](const auto& value) { return sizes(value).empty(); }))
    return kEmpty;
  return "";
}

struct Recorded {
  std::vector<std::string> input_names, output_names;
  std::map<std::string, ArrayPtr> inputs, outputs;
};

Result<ArrayPtr> read_tensor(const ModelFile& file, const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  wire::TensorProto tensor;
  if (!tensor.ParseFromString(bytes)) return Error{.message = "no tensor"};
  return file.decode(tensor);
}

Result<Recorded> read_recorded(const ModelFile& file, const fs::path& folder) {
  Recorded recorded;
  const auto& g = file.model().graph();
  std::set<std::string> initialisers;
  for (const auto& tensor : g.initializer()) initialisers.insert(tensor.name());
  int at = 0;
  for (const auto& input : g.input()) {
    if (initialisers.contains(input.name())) continue;
    const fs::path path = folder / "test_data_set_0" / fmt::format("input_{}.pb", at++);
    if (!fs::exists(path)) continue;
    if (!input.type().has_tensor_type()) return Error{.message = "an input is no tensor"};
    TRY(recorded.inputs[input.name()], read_tensor(file, path));
    recorded.input_names.push_back(input.name());
  }
  at = 0;
  for (const auto& output : g.output()) {
    if (!output.type().has_tensor_type()) return Error{.message = "an output is no tensor"};
    TRY(recorded.outputs[output.name()],
        read_tensor(file, folder / "test_data_set_0" / fmt::format("output_{}.pb", at++)));
    recorded.output_names.push_back(output.name());
  }
  return recorded;
}

// Integers and booleans as numbers.
tensor::Tensor reals(const Array& array) {
  tensor::Tensor t{array.shape, {}};
  for (size_t i = 0; i < array.size(); ++i) t.data.push_back(array.real(i));
  return t;
}

// The bound of ONNX's own runner, 1e-3 of the number; 16-bit floats are recorded with their rounding.
std::string difference(const tensor::Tensor& mine, const tensor::Tensor& wanted, bool half) {
  if (mine.shape != wanted.shape)
    return fmt::format("shape {}, not {}", tensor::to_text(mine.shape), tensor::to_text(wanted.shape));
  double largest = 0;
  for (const double x : wanted.data) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  for (size_t i = 0; i < wanted.data.size(); ++i) {
    const double a = mine.data[i], b = wanted.data[i];
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    if (std::isinf(b)) return fmt::format("at {}: {}, not {}", i, a, b);
    if (!(std::abs(a - b) <=
          (half ? 2e-2 : 1e-5) * std::max(largest, 1e-3) + (half ? 2e-2 : 1e-3) * std::abs(b)))
      return fmt::format("at {}: {}, not {}", i, a, b);
  }
  return "";
}

// To the IR's order: N first.
tensor::Tensor rows_of(const tensor::Tensor& value, const Layout& layout, int64_t batch) {
  if (layout.n == kAdded) {
    tensor::Tensor row = value;
    row.shape.insert(row.shape.begin(), 1);
    return row;
  }
  Array split{.kind = Kind::kFloat, .shape = value.shape, .reals = value.data};
  split.shape[static_cast<size_t>(layout.n)] = layout.before;
  split.shape.insert(split.shape.begin() + layout.n + 1, {batch, layout.after});
  Ints perm(split.shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin(), perm.begin() + layout.n + 1, perm.begin() + layout.n + 2);
  const ArrayPtr moved = transposed(split, perm);
  return {ir::with_batch(ir_shape(layout), batch), moved->reals};
}

struct Verdict {
  bool mapped = false;
  std::string refusal = {}, mismatch = {};
};

Verdict refused_by(const Error& error) {
  std::string why = error.message;
  std::replace(why.begin(), why.end(), '\n', ' ');
  return {.refusal = why};
}

// N first.
ArrayPtr rows_of_input(const Array& array, const Layout& layout) {
  Shape shape = array.shape;
  if (layout.n == kAdded) {
    shape.insert(shape.begin(), 1);
    return shaped(array, shape);
  }
  Ints perm(shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin(), perm.begin() + layout.n, perm.begin() + layout.n + 1);
  return transposed(array, perm);
}

Result<referee::Inputs> inputs_of(const MapResult& mapped, const Recorded& recorded) {
  referee::Inputs inputs;
  for (const auto& [name, type] : mapped.inputs) {
    const ArrayPtr array =
        rows_of_input(*recorded.inputs.at(mapped.input_names.at(name)), mapped.input_layouts.at(name));
    if (type.first == Kind::kFloat)
      inputs.emplace_back(tensor::Tensor{array->shape, array->reals});
    else
      inputs.emplace_back(tensor::IntTensor{array->shape, array->ints});
  }
  return inputs;
}

// Booleans as ones and zeros; integers as rows of a table whose row i is i, where they are few and not negative.
bool output_as_float(MapResult& mapped, const tensor::Tensor& wanted) {
  const Shape shape = ir_shape(mapped.output.layout);
  if (mapped.output.kind == Kind::kBool) {
    const Shape ones(shape.size(), 1);
    mapped.text += fmt::format(
        "  one_ = parameter(; weight=one_[{}] frozen)\n  zero_ = constant() value=0\n"
        "  as_float_ = where({}, one_, zero_)\n",
        numbers_text(ones), mapped.output.name);
    mapped.parameters.push_back({"one_", filled(Kind::kFloat, ones, 1), true, ""});
  } else if (mapped.output.kind == Kind::kInt) {
    constexpr int64_t kMost = 4096;
    if (std::ranges::any_of(wanted.data, [](double x) { return x < 0 || x >= kMost; })) return false;
    Array table{.kind = Kind::kFloat, .shape = {kMost, 1}};
    for (int64_t i = 0; i < kMost; ++i) table.reals.push_back(static_cast<double>(i));
    mapped.text += fmt::format(
        "  wide_ = embedding({}; weight=integers_[{},1] frozen)\n  as_float_ = reshape(wide_) shape={}\n",
        mapped.output.name, kMost, numbers_text(shape));
    mapped.parameters.push_back({"integers_", std::make_shared<Array>(std::move(table)), true, ""});
  } else {
    return true;
  }
  mapped.output.name = "as_float_";
  mapped.output.kind = Kind::kFloat;
  return true;
}

Verdict evaluated(MapResult mapped, const Recorded& recorded, const std::string& output, bool half) {
  const tensor::Tensor wanted = reals(*recorded.outputs.at(output));
  if (mapped.output.is_const()) {
    const std::string wrong = difference(reals(*mapped.output.at[0]), wanted, half);
    return {.mapped = true, .mismatch = wrong};
  }
  for (const auto& [op, source] : mapped.ops) {
    if (ir::find_op(op) == nullptr) return {.refusal = fmt::format("{}: the IR lacks '{}'", source, op)};
  }
  if (!output_as_float(mapped, wanted))
    return {.refusal = "an output of integers that depends on the inputs"};
  // A node's output that is an input, or no node at all.
  const auto text = workload_text(mapped, "test", "mse");
  if (!text) return refused_by(text.error());
  const auto workload = ir::parse(*text, "test.ir");
  if (!workload) return {.refusal = "IR: " + workload.error().message};
  const auto weights = onnx_weights(mapped, *workload);
  if (!weights) return refused_by(weights.error());
  auto inputs = inputs_of(mapped, recorded);
  const int64_t batch = tensor::shape_of(inputs->front())[0];
  const auto shape = ir::with_batch(workload->inputs.back().type.shape, batch);
  inputs->emplace_back(tensor::zeros(shape));
  const auto made = referee::evaluate(*workload, *weights, *inputs, {.train = false, .gradients = false});
  // Integers of the inputs that no row of a table belongs to: an import refuses such data.
  if (!made && made.error().message.find("is outside 0..") != std::string::npos)
    return {.refusal = "the referee: " + made.error().message};
  if (!made) return {.mapped = true, .mismatch = "the referee: " + made.error().message};
  if (mapped.output.layout.rank() != wanted.shape.size())
    return {.mapped = true,
            .mismatch = fmt::format("rank {}, not {}", mapped.output.layout.rank(), wanted.shape.size())};
  return {.mapped = true,
          .mismatch = difference(made->prediction, rows_of(wanted, mapped.output.layout, batch), half)};
}

// A way to see a test as a network: where its batch is, and which of its inputs are inputs of the network.
enum class Given { kNone, kAllButFirst, kOtherRows, kAll };
struct Way {
  int axis = 0;  // of the batch; kAdded: in front of all
  Given given =
      Given::kNone;  // as initialisers: those that have other rows than the first input, for example
};

std::string to_text(const Way& way) {
  const char* names[] = {"inputs", "all but the first given", "other rows given", "all given"};
  return fmt::format("{}, {}", way.axis == kAdded ? "row" : fmt::format("batch on axis {}", way.axis),
                     names[static_cast<size_t>(way.given)]);
}

Verdict tried(const ModelFile& file, const Recorded& recorded, const std::string& output, const Way& way,
              bool half) {
  MapOptions options{.added_batch = way.axis == kAdded, .output = output};
  const auto axis = static_cast<size_t>(std::max(way.axis, 0));
  const auto rows = [&](const Array& array) { return axis < array.shape.size() ? array.shape[axis] : -1; };
  for (size_t i = 0; i < recorded.input_names.size(); ++i) {
    const std::string& name = recorded.input_names[i];
    const Array& array = *recorded.inputs.at(name);
    const bool constant =
        way.given == Given::kAll || (way.given == Given::kAllButFirst && i > 0) ||
        array.kind == Kind::kBool ||
        (way.given == Given::kOtherRows && rows(array) != rows(*recorded.inputs.at(recorded.input_names[0])));
    if (constant) {
      options.given[name] = recorded.inputs.at(name);
    } else {
      options.shapes[name] = array.shape;
      options.batch_axes[name] = std::max(way.axis, 0);
      if (array.kind == Kind::kInt && array.size() > 0)
        options.below[name] = std::max<int64_t>(std::ranges::max(array.ints) + 1, 2);
    }
  }
  auto mapped = Mapper(file, options).run();
  if (!mapped) return refused_by(mapped.error());
  return evaluated(std::move(*mapped), recorded, output, half);
}

// Ops that exist for constants alone, as those that make shapes and tables: computed when a model is imported.
bool is_of_constants(const ModelFile& file) {
  const auto& nodes = file.model().graph().node();
  return nodes.size() == 1 && folds().contains(nodes[0].op_type()) && !rows().contains(nodes[0].op_type());
}

std::vector<Way> ways_of(const ModelFile& file, const Recorded& recorded) {
  std::vector<Way> ways;
  for (const int axis : {0, kAdded, 1}) {
    for (const Given given : {Given::kAllButFirst, Given::kNone, Given::kOtherRows}) {
      const bool exists =
          recorded.input_names.empty() ||
          recorded.inputs.at(recorded.input_names[0])->shape.size() > static_cast<size_t>(std::max(axis, 0));
      if (axis < 1 || exists) ways.push_back({axis, given});
    }
  }
  if (is_of_constants(file)) ways.push_back({kAdded, Given::kAll});
  return ways;
}

bool is_half(const ModelFile& file) {
  for (const auto& input : file.model().graph().input()) {
    const int type = input.type().tensor_type().elem_type();
    if (type == 10 || type == 16) return true;
  }
  for (const auto& output : file.model().graph().output()) {
    const int type = output.type().tensor_type().elem_type();
    if (type == 10 || type == 16) return true;
  }
  return false;
}

// Of all ways and outputs.
Verdict verdict_of(const fs::path& folder) {
  // Recorded with a random mask; an import is compared in inference.
  const std::string name = folder.filename().string();
  if (name.starts_with("test_training_dropout") && name.find("zero_ratio") == std::string::npos)
    return {.refusal = "Dropout: recorded in training mode, with a random mask"};
  const auto file = ModelFile::open(folder / "model.onnx");
  if (!file) return refused_by(file.error());
  const auto recorded = read_recorded(*file, folder);
  if (!recorded) return refused_by(recorded.error());
  Verdict all{.mapped = true};
  for (const std::string& output : recorded->output_names) {
    bool mapped = false;
    for (const Way& way : ways_of(*file, *recorded)) {
      const Verdict one = tried(*file, *recorded, output, way, is_half(*file));
      if (!one.mismatch.empty())
        return {.mapped = true, .mismatch = fmt::format("{} ({}): {}", output, to_text(way), one.mismatch)};
      mapped = mapped || one.mapped;
      if (!one.mapped && all.refusal.find(one.refusal) == std::string::npos)
        all.refusal += (all.refusal.empty() ? "" : " | ") + one.refusal;
    }
    all.mapped = all.mapped && mapped;
    if (!mapped) break;
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  int passed = 0, refused = 0, wrong = 0, beyond = 0;
  std::map<std::string, int> reasons;
  for (int i = 1; i < argc; ++i) {
    const fs::path folder(argv[i]);
    const std::string name = folder.filename().string();
    const Verdict verdict = verdict_of(folder);
    if (!verdict.mismatch.empty()) {
      ++wrong;
      std::cout << fmt::format("MISMATCH {}: {}\n", name, verdict.mismatch) << std::flush;
    } else if (verdict.mapped) {
      ++passed;
      std::cout << fmt::format("passed {}\n", name) << std::flush;
    } else if (const std::string reason = out_of_scope(folder, verdict.refusal); !reason.empty()) {
      ++beyond, ++reasons[reason];
      std::cout << fmt::format("out of scope {}: {}: {}\n", name, reason, verdict.refusal) << std::flush;
    } else {
      ++refused;
      std::cout << fmt::format("refused {}: {}\n", name, verdict.refusal) << std::flush;
    }
  }
  std::vector<std::pair<std::string, int>> rows(reasons.begin(), reasons.end());
  std::ranges::sort(rows, std::greater{}, &std::pair<std::string, int>::second);
  std::cout << "\n| node tests of ONNX | count |\n|---|---|\n"
            << fmt::format("| pass | {} |\n| refused though the op is in scope | {} |\n| wrong | {} |\n",
                           passed, refused, wrong);
  for (const auto& [reason, count] : rows)
    std::cout << fmt::format("| out of scope: {} | {} |\n", reason, count);
  std::cout << fmt::format(
      "\npassed {}, refused {}, out of scope {}, mismatched {}: {:.1f} % of those in scope\n", passed,
      refused, beyond, wrong, 100.0 * passed / std::max(1, passed + refused + wrong));
  return wrong == 0 ? 0 : 1;
}
