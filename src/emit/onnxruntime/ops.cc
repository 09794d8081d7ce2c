// From ops of the IR to nodes of ONNX, opset 21. Attributes that ONNX has as defaults are left out.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/texts.h"
#include "emit/onnxruntime/graph_printer.h"
#include "emit/resize.h"
#include "emit/spelling.h"
#include "emit/windows.h"
#include "ir/resize.h"

namespace bakeoff::emit::onnxruntime {
namespace {

using ir::Node;
using ir::Op;
using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;
using P = GraphPrinter;

// The IR's before and after of each axis as ONNX's befores, afters.
Ints begins_and_ends(const Ints& pad) {
  Ints all = pads_of_side(pad, false);
  for (const int64_t after : pads_of_side(pad, true)) all.push_back(after);
  return all;
}

std::string attribute(const char* name, const Ints& numbers) {
  return fmt::format("{}={}", name, list_of(numbers));
}

std::string int64_array(const Ints& numbers) {
  return fmt::format("np.array({}, np.int64)", list_of(numbers));
}

void conv(P& p, const Node& node) {
  Strings inputs = {p.input(), p.param("weight")};
  if (node.has("bias")) inputs.push_back(p.param("bias"));
  Strings options;
  if (!all_are(node.integers("stride"), 1)) options.push_back(attribute("strides", node.integers("stride")));
  if (!all_are(node.integers("pad"), 0))
    options.push_back(attribute("pads", begins_and_ends(node.integers("pad"))));
  if (!all_are(node.integers("dilation"), 1)) {
    options.push_back(attribute("dilations", node.integers("dilation")));
  }
  if (node.integer("groups") != 1) options.push_back(fmt::format("group={}", node.integer("groups")));
  const bool transposed = ir::is_conv_transpose(node.op);
  if (transposed && !all_are(node.integers("output_pad"), 0))
    options.push_back(attribute("output_padding", node.integers("output_pad")));
  p.add(transposed ? "ConvTranspose" : "Conv", inputs, options);
}

void linear(P& p, const Node& node) {
  if (p.input_shape().size() == 2) {
    Strings inputs = {p.input(), p.param("weight")};
    if (node.has("bias")) inputs.push_back(p.param("bias"));
    return p.add("Gemm", inputs, {"transB=1"});
  }
  const std::string weight = p.param("weight");
  const std::string turned = p.constant("T", fmt::format("np.transpose(constants[\"{}\"])", weight), weight);
  if (!node.has("bias")) return p.add("MatMul", {p.input(), turned});
  p.add("Add", {p.step("MatMul", "product", {p.input(), turned}), p.param("bias")});
}

void batch_norm(P& p, const Node& node) {
  p.add("BatchNormalization",
        {p.input(), p.param("weight"), p.param("bias"), p.param("mean"), p.param("var")},
        {"epsilon=" + python_real(node.real("eps"))});
}

// A parameter of a norm, or a constant for one that it lacks.
std::string param_or(P& p, const char* slot, const ir::Shape& sizes, const char* filler) {
  if (p.node().has(slot)) return p.param(slot);
  return p.constant(slot, fmt::format("np.{}({}, real)", filler, list_of(sizes)));
}

ir::Shape last_sizes(const P& p) {
  const ir::Shape& x = p.output_shape();
  return {x.end() - p.node().integer("dims"), x.end()};
}

void layer_norm(P& p, const Node& node) {
  Strings inputs = {p.input(), param_or(p, "weight", last_sizes(p), "ones")};
  if (node.has("bias")) inputs.push_back(p.param("bias"));
  p.add("LayerNormalization", inputs,
        {fmt::format("axis={}", -node.integer("dims")), "epsilon=" + python_real(node.real("eps"))});
}

void rms_norm(P& p, const Node& node) {
  Ints axes;
  for (int64_t axis = -node.integer("dims"); axis < 0; ++axis) axes.push_back(axis);
  const std::string squares = p.step("Mul", "squares", {p.input(), p.input()});
  const std::string mean =
      p.step("ReduceMean", "mean", {squares, p.constant("axes", int64_array(axes))}, {"keepdims=1"});
  const std::string eps = p.constant("eps", fmt::format("np.array({}, real)", python_real(node.real("eps"))));
  const std::string root = p.step("Sqrt", "root", {p.step("Add", "moved", {mean, eps})});
  if (!node.has("weight")) return p.add("Div", {p.input(), root});
  p.add("Mul", {p.step("Div", "normal", {p.input(), root}), p.param("weight")});
}

void group_norm(P& p, const Node& node) {
  const ir::Shape channels = {p.output_shape()[1]};
  p.add("GroupNormalization",
        {p.input(), param_or(p, "weight", channels, "ones"), param_or(p, "bias", channels, "zeros")},
        {"epsilon=" + python_real(node.real("eps")), fmt::format("num_groups={}", node.integer("groups")),
         "stash_type=helper.np_dtype_to_tensor_dtype(np.dtype(real))"});
}

void embedding(P& p, const Node&) { p.add("Gather", {p.param("weight"), p.input()}); }
void dropout(P& p, const Node&) { p.alias(); }
void relu(P& p, const Node&) { p.add("Relu", {p.input()}); }
void sigmoid(P& p, const Node&) { p.add("Sigmoid", {p.input()}); }
void tanh(P& p, const Node&) { p.add("Tanh", {p.input()}); }

void gelu(P& p, const Node& node) {
  p.add("Gelu", {p.input()}, node.word("form") == "tanh" ? Strings{"approximate=\"tanh\""} : Strings{});
}

void softmax(P& p, const Node& node) {
  p.add("Softmax", {p.input()}, {fmt::format("axis={}", node.integer("axis"))});
}

Strings window(const Node& node) {
  Strings options = {attribute("kernel_shape", node.integers("kernel"))};
  if (!all_are(node.integers("stride"), 1)) options.push_back(attribute("strides", node.integers("stride")));
  if (!all_are(node.integers("pad"), 0))
    options.push_back(attribute("pads", begins_and_ends(node.integers("pad"))));
  return options;
}

void max_pool(P& p, const Node& node) { p.add("MaxPool", {p.input()}, window(node)); }

void avg_pool(P& p, const Node& node) {
  Strings options = window(node);
  if (node.flag("count_include_pad")) options.push_back("count_include_pad=1");
  p.add("AveragePool", {p.input()}, options);
}

void global_avg_pool2d(P& p, const Node&) {
  p.add("Flatten", {p.step("GlobalAveragePool", "mean", {p.input()})});
}

// ONNX Runtime computes places in float32; where that reads others they are listed.
void resize(P& p, const Node& node) {
  const Ints& size = node.integers("size");
  Ints axes(size.size());
  std::iota(axes.begin(), axes.end(), 2);
  if (is_linear(node) || nearest_is(NearestForm::kOnnx, node, p.input_shape())) {
    const bool half_pixel = node.word("coordinates") == "half_pixel";
    Strings options = {fmt::format("mode=\"{}\"", node.word("mode")),
                       fmt::format("coordinate_transformation_mode=\"{}\"", node.word("coordinates")),
                       attribute("axes", axes)};
    if (!is_linear(node))
      options.push_back(fmt::format("nearest_mode=\"{}\"", half_pixel ? "round_prefer_ceil" : "floor"));
    return p.add("Resize", {p.input(), "", "", p.constant("size", int64_array(size))}, options);
  }
  std::string x = p.input();
  for (size_t i = 0; i < size.size(); ++i) {
    Ints places;
    for (const ir::Tap& tap : ir::resize_taps(node, p.input_shape()[i + 2], size[i]))
      places.push_back(tap.low);
    const Strings inputs = {x, p.constant("places", int64_array(places))};
    const Strings options = {fmt::format("axis={}", i + 2)};
    if (i + 1 == size.size()) return p.add("Gather", inputs, options);
    x = p.step("Gather", "taken", inputs, options);
  }
}

void flatten(P& p, const Node&) { p.add("Flatten", {p.input()}); }

// The batch size is -1 to the IR and to ONNX alike; where the number of words is not known either, ONNX reads the batch
// size of the input, which is 0.
void reshape(P& p, const Node& node) {
  Ints sizes = node.integers("shape");
  if (const auto words = std::ranges::find(sizes, ir::kSteps); words != sizes.end()) {
    *words = -1;
    if (sizes[0] == ir::kBatch && words != sizes.begin()) sizes[0] = 0;
  }
  p.add("Reshape", {p.input(), p.constant("shape", int64_array(sizes))});
}

void transpose(P& p, const Node& node) {
  p.add("Transpose", {p.input()}, {attribute("perm", node.integers("perm"))});
}

void pad(P& p, const Node& node) {
  const Ints& pads = node.integers("pad");  // before, after for each axis but N
  Ints before = pads_of_side(pads, false), after = pads_of_side(pads, true);
  before.insert(before.begin(), 0);
  before.push_back(0);
  before.insert(before.end(), after.begin(), after.end());
  Strings inputs = {p.input(), p.constant("pads", int64_array(before))};
  if (node.real("value") != 0)
    inputs.push_back(p.constant("value", fmt::format("np.array({}, real)", python_real(node.real("value")))));
  p.add("Pad", inputs);
}

void concat(P& p, const Node& node) {
  Strings parts;
  for (size_t i = 0; i < node.inputs.size(); ++i) parts.push_back(p.input(i));
  p.add("Concat", parts, {fmt::format("axis={}", node.integer("axis"))});
}

void join_values(P& p, const Node& node) {
  Strings parts;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    parts.push_back(p.step("Flatten", std::to_string(i), {p.input(i)}));
  p.add("Concat", parts, {"axis=1"});
}

struct Parts {
  Strings inputs, attributes;
};

// The inputs and attributes of a call whose arguments are values in braces, numbers, integers,
// attributes and calls: prints a node for each call inside it.
Parts parts_of(P& p, const Spelled& call) {
  Parts parts;
  for (const std::string& text : call.arguments) {
    if (text.starts_with("{")) {
      parts.inputs.push_back(text.substr(1, text.size() - 2));
    } else if (text.starts_with("[")) {
      parts.inputs.push_back(p.constant("integers", fmt::format("np.array({}, np.int64)", text)));
    } else if (text.starts_with("#")) {
      parts.inputs.push_back(p.constant("integer", fmt::format("np.array({}, np.int64)", text.substr(1))));
    } else if (is_literal(text) || text.starts_with("float(")) {
      const std::string value = is_literal(text) ? python_real(number_in(text)) : text;
      parts.inputs.push_back(p.constant("number", fmt::format("np.array({}, real)", value)));
    } else if (text.find('=') < text.find('(')) {
      parts.attributes.push_back(text);
    } else {
      const Spelled inner = spell({.call = text}, {}, {});
      const Parts within = parts_of(p, inner);
      parts.inputs.push_back(p.step(inner.head, lowered(inner.head), within.inputs, within.attributes));
    }
  }
  return parts;
}

// "Mul({0}, Sigmoid({0}))": a node for each call, from the innermost.
void spelled(P& p, const Node& node) {
  Strings inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back("{" + p.input(i) + "}");
  const Spelled made =
      spell(ir::spellings(node.op)->onnx, node, inputs, Language::kOnnx, {.rank = p.input_shape().size()});
  const Parts parts = parts_of(p, made);
  p.add(made.head, parts.inputs, parts.attributes);
}
void constant(P& p, const Node& node) {
  p.name_constant(p.constant("value", fmt::format("np.array({}, real)", real_literal(node.real("value")))));
}
void parameter(P& p, const Node&) { p.name_constant(p.param("weight")); }
void where(P& p, const Node&) { p.add("Where", {p.input(0), p.input(1), p.input(2)}); }

void add(P& p, const Node&) { p.add("Add", {p.input(0), p.input(1)}); }
void mul(P& p, const Node&) { p.add("Mul", {p.input(0), p.input(1)}); }

// ONNX divides alpha by the size. Of an even number of channels its window begins one later than the IR's:
// there the mean comes from an AveragePool over the channels.
void lrn(P& p, const Node& node) {
  const int64_t size = node.integer("size");
  const double alpha = node.real("alpha") * static_cast<double>(size);
  if (size % 2 == 1) {
    return p.add("LRN", {p.input()},
                 {fmt::format("size={}", size), "alpha=" + python_real(alpha),
                  "beta=" + python_real(node.real("beta")), "bias=" + python_real(node.real("k"))});
  }
  const ir::Shape& shape = p.output_shape();
  const Ints flat = {-1, 1, shape[1], shape[2] * shape[3]};
  const std::string squares = p.step("Mul", "squares", {p.input(), p.input()});
  const std::string planes =
      p.step("Reshape", "planes", {squares, p.constant("plane_shape", int64_array(flat))});
  const std::string mean = p.step("AveragePool", "mean", {planes},
                                  {attribute("kernel_shape", {size, 1}),
                                   attribute("pads", {size / 2, 0, size / 2 - 1, 0}), "count_include_pad=1"});
  const std::string back = p.step("Reshape", "mean_square", {mean, p.constant("shape", int64_array(shape))});
  const auto real = [&](const char* part, double value) {
    return p.constant(part, fmt::format("np.array({}, real)", python_real(value)));
  };
  const std::string scaled = p.step("Mul", "scaled", {back, real("alpha", alpha)});
  const std::string base = p.step("Add", "base", {scaled, real("k", node.real("k"))});
  p.add("Div", {p.input(), p.step("Pow", "divisor", {base, real("beta", node.real("beta"))})});
}

void position_embedding(P& p, const Node&) {
  const std::string table = p.param("weight");
  const int64_t rows = p.output_shape()[1];
  if (p.param_shape("weight")[0] == rows) return p.add("Add", {p.input(), table});
  p.add("Add", {p.input(), p.constant("first", fmt::format("constants[\"{}\"][:{}]", table, rows), table)});
}

// What is added to the scores of all heads that share one of keys: -inf where a key comes after a query or before its
// window. The same for all layers that are alike, so it is printed once.
std::string seen_of_positions(P& p, int64_t places, int64_t sharing) {
  const int64_t window = p.node().integer("window");
  std::string& bias = p.shared(fmt::format("seen {} {} {}", places, sharing, window));
  if (!bias.empty()) return bias;
  const auto number = [&p](const char* part, int64_t value) {
    return p.constant(part, fmt::format("np.array({}, np.int32)", value));
  };
  std::string all = p.constant("all", fmt::format("np.arange({}, dtype=np.int32)", places));
  if (p.caches_grow()) {
    const std::string last = p.step("ReduceMax", "last", {p.input(3)}, {"keepdims=0"});
    const std::string end = p.step("Add", "end", {last, number("one", 1)});
    all = p.step("Range", "read", {number("zero", 0), end, number("one", 1)});
  }
  const std::string column = p.constant("column", int64_array({-1, 1}));
  const std::string own = p.step("Reshape", "own", {p.input(3), column});
  std::string seen = p.step("LessOrEqual", "seen", {all, own});
  if (window != 0) {
    const std::string before = p.step("Sub", "before", {own, number("window", window)});
    seen = p.step("And", "near", {seen, p.step("Greater", "after", {all, before})});
  }
  const std::string zero = p.constant("zero", "np.array(0, real)");
  bias = p.step("Where", "bias", {seen, zero, p.constant("never", "np.array(-np.inf, real)")});
  if (sharing > 1) bias = p.step("Concat", "biases", Strings(static_cast<size_t>(sharing), bias), {"axis=0"});
  return bias;
}

// Caches are N,heads,T,D, as others export them. The heads of q that share one of keys are rows of one product.
void cached_attention(P& p) {
  const ir::Shape &q = p.input_shape(0), &k = p.input_shape(1), &cache = p.param_shape("keys");
  const auto turned = [&p](const std::string& x, const char* part, const char* perm = "[0, 2, 1, 3]") {
    return p.step("Transpose", part, {x}, {fmt::format("perm={}", perm)});
  };
  const auto joined = [&](size_t i, const char* part, const char* slot) {
    const std::string rows = turned(p.input(i), part);
    if (p.caches_grow()) return p.update(slot, "Concat", {rows});
    std::string& places = p.shared("places " + list_of({k[2], k[3]}));
    if (places.empty()) {
      const std::string shape = p.constant("four", int64_array({1, 1, -1, 1}));
      const std::string wide = p.step("Reshape", "positions", {p.input(3), shape});
      places = p.step("Expand", "places", {wide, p.step("Shape", "sizes", {rows})});
    }
    return p.update(slot, "ScatterElements", {places, rows});
  };
  const std::string keys = joined(1, "k", "keys"), values = joined(2, "v", "values");
  std::string queries = turned(p.input(0), "q");
  const int64_t sharing = q[2] / k[2];
  if (sharing > 1)
    queries = p.step("Reshape", "rows", {queries, p.constant("grouped", int64_array({0, k[2], -1, q[3]}))});
  const std::string product = p.step("MatMul", "product", {queries, turned(keys, "keys", "[0, 1, 3, 2]")});
  const std::string scale = p.constant("scale", fmt::format("np.array({}**-0.5, real)", q[3]));
  const std::string scores = p.step("Mul", "scores", {product, scale});
  const std::string seen = p.step("Add", "seen_scores", {scores, seen_of_positions(p, cache[1], sharing)});
  std::string mixed = p.step("MatMul", "mixed", {p.step("Softmax", "weights", {seen}), values});
  if (sharing > 1)
    mixed = p.step("Reshape", "heads", {mixed, p.constant("each", int64_array({0, q[2], -1, q[3]}))});
  p.add("Transpose", {mixed}, {"perm=[0, 2, 1, 3]"});
}

void attention(P& p, const Node& node) {
  if (node.has("keys")) return cached_attention(p);
  const ir::Shape &q = p.input_shape(0), &k = p.input_shape(1);
  const auto turned = [&](size_t i, const char* part, const char* perm) {
    std::string heads = p.input(i);
    if (const int64_t shared = q[2] / k[2]; i > 0 && shared > 1) {
      const std::string each = fmt::format("np.arange({}) // {}", q[2], shared);
      heads =
          p.step("Gather", fmt::format("{}_of_heads", part), {heads, p.constant("shared", each)}, {"axis=2"});
    }
    return p.step("Transpose", part, {heads}, {fmt::format("perm={}", perm)});
  };
  const std::string queries = turned(0, "q", "[0, 2, 1, 3]"), keys = turned(1, "k", "[0, 2, 3, 1]");
  const std::string values = turned(2, "v", "[0, 2, 1, 3]");
  const std::string product = p.step("MatMul", "product", {queries, keys});
  const std::string scale = p.constant("scale", fmt::format("np.array({}**-0.5, real)", q[3]));
  std::string scores = p.step("Mul", "scores", {product, scale});
  if (node.flag("causal")) {
    const std::string mask =
        p.constant("causal", fmt::format("causal_mask({}, {}, real)", q[1], node.integer("window")));
    scores = p.step("Add", "causal_scores", {scores, mask});
  }
  if (node.inputs.size() == 4) {
    const std::string axes = p.constant("axes", int64_array({1, 2, 3}));
    const std::string last = p.step("Unsqueeze", "last", {p.input(3), axes});
    const std::string places = p.constant("places", fmt::format("np.arange({}, dtype=np.int32)", k[1]));
    const std::string seen = p.step("LessOrEqual", "seen", {places, last});
    scores = p.step("Where", "seen_scores", {seen, scores, p.constant("never", "np.array(-np.inf, real)")});
  }
  const std::string weights = p.step("Softmax", "weights", {scores});
  p.add("Transpose", {p.step("MatMul", "mixed", {weights, values})}, {"perm=[0, 2, 1, 3]"});
}

std::string by_time(P& p) { return p.step("Transpose", "by_time", {p.input()}, {"perm=[1, 0, 2]"}); }

void recurrent(P& p, const char* op, const Strings& inputs, const std::string& more = "") {
  const Node& node = p.node();
  Strings options = {fmt::format("hidden_size={}", p.output_shape()[2])};
  if (!more.empty()) options.push_back(more);
  if (node.flag("reverse")) options.push_back("direction=\"reverse\"");
  const std::string states = p.step(op, "states", inputs, options);
  const std::string one = p.step("Squeeze", "one", {states, p.constant("direction", int64_array({1}))});
  p.add("Transpose", {one}, {"perm=[1, 0, 2]"});
}

void lstm(P& p, const Node& node) {
  const auto gates = [&](const char* slot) {
    return p.constant("onnx", fmt::format("lstm_gates(constants[\"{}\"])", p.param(slot)), p.param(slot));
  };
  Strings inputs = {by_time(p), gates("weight_ih"), gates("weight_hh")};
  if (node.has("bias")) {
    const std::string bias = p.param("bias");
    inputs.push_back(p.constant("onnx", fmt::format("lstm_biases(constants[\"{}\"])", bias), bias));
  }
  recurrent(p, "LSTM", inputs);
}

void gru(P& p, const Node& node) {
  const auto gates = [&](const char* slot) {
    return p.constant("onnx", fmt::format("gru_gates(constants[\"{}\"])", p.param(slot)), p.param(slot));
  };
  Strings inputs = {by_time(p), gates("weight_ih"), gates("weight_hh")};
  if (node.has("bias_ih")) {
    inputs.push_back(p.constant("onnx",
                                fmt::format("gru_biases(constants[\"{}\"], constants[\"{}\"])",
                                            p.param("bias_ih"), p.param("bias_hh")),
                                p.param("bias_ih")));
  }
  recurrent(p, "GRU", inputs, "linear_before_reset=1");
}

void nothing(P&, const Node&) {}  // losses are no part of a prediction

}  // namespace

const OpFunctions<GraphPrinter>& op_functions() {
  static const OpFunctions<GraphPrinter> table = op_table<GraphPrinter>(
      {
          {{Op::kConv1d, Op::kConv2d, Op::kConv3d, Op::kConvTranspose1d, Op::kConvTranspose2d,
            Op::kConvTranspose3d},
           conv},
          {{Op::kLinear}, linear},
          {{Op::kBatchNorm}, batch_norm},
          {{Op::kLayerNorm}, layer_norm},
          {{Op::kRmsNorm}, rms_norm},
          {{Op::kEmbedding}, embedding},
          {{Op::kDropout}, dropout},
          {{Op::kRelu}, relu},
          {{Op::kGelu}, gelu},
          {{Op::kSigmoid}, sigmoid},
          {{Op::kTanh}, tanh},
          {{Op::kSoftmax}, softmax},
          {{Op::kMaxPool1d, Op::kMaxPool2d, Op::kMaxPool3d}, max_pool},
          {{Op::kAvgPool1d, Op::kAvgPool2d, Op::kAvgPool3d}, avg_pool},
          {{Op::kGlobalAvgPool2d}, global_avg_pool2d},
          {{Op::kResize}, resize},
          {{Op::kFlatten}, flatten},
          {{Op::kReshape}, reshape},
          {{Op::kTranspose}, transpose},
          {{Op::kPad}, pad},
          {{Op::kConcat}, concat},
          {{Op::kJoin}, join_values},
          {{Op::kAdd}, add},
          {{Op::kMul}, mul},
          {{Op::kLrn}, lrn},
          {{Op::kPositionEmbedding}, position_embedding},
          {{Op::kAttention}, attention},
          {{Op::kLstm}, lstm},
          {{Op::kGru}, gru},
          {{Op::kConstant}, constant},
          {{Op::kParameter}, parameter},
          {{Op::kWhere}, where},
          {kLosses, nothing},
          {{Op::kGroupNorm}, group_norm},
      },
      spelled);
  return table;
}

}  // namespace bakeoff::emit::onnxruntime
