#include "zoo/op_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <numeric>

#include "ir/builder.h"
#include "ir/elementwise.h"
#include "ir/op_table.h"

namespace bakeoff::zoo {
namespace {

using ir::Attribute;
using ir::Builder;
using ir::DType;
using ir::kBatch;
using ir::Op;
using ir::Shape;
using ir::ValueId;
using tensor::Rng;
using Ints = std::vector<int64_t>;
using Values = std::vector<ValueId>;

// A graph up to the op's output, as something that can be built twice: once to learn the shape of the target,
// which must be declared before the first node, and once for good. All random choices are made before.
struct Draft {
  std::vector<ir::Input> inputs;
  std::function<ValueId(Builder&, const Values&)> body;
};

// [N, a, b, ...] of `rank` axes with sizes in [least, most].
Shape random_shape(Rng& rng, int64_t rank, int64_t least = 1, int64_t most = 6) {
  Shape shape = {kBatch};
  while (static_cast<int64_t>(shape.size()) < rank) shape.push_back(rng.integer(least, most));
  return shape;
}

ir::Input floats(std::string name, Shape shape) { return {std::move(name), {DType::kF32, std::move(shape)}}; }
ir::Input integers(std::string name, Shape shape) {
  return {std::move(name), {DType::kI32, std::move(shape)}};
}

// A parameterised op that keeps the shape.
ValueId pre(Builder& b, ValueId x, bool bias = true, const std::string& layer = "pre") {
  const Shape shape = b.shape(x);
  if (shape.size() == 4) return b.conv(x, layer, {.channels = shape[1], .kernel = {1, 1}, .bias = bias});
  return b.linear(x, layer, shape.back(), bias);
}

ir::Workload close(Builder& b, ValueId loss) {
  Result<ir::Workload> workload = b.finish(loss);
  assert(workload && "the generator made an invalid workload");
  return std::move(workload).value();
}

ir::Workload with_mse(Op op, const Draft& draft) {
  const auto run = [&](Builder& b, const Shape* target) {
    Values inputs;
    for (const ir::Input& input : draft.inputs) inputs.push_back(b.input(input.name, input.type));
    ValueId t = -1;
    if (target != nullptr) t = b.input("t", {DType::kF32, *target});
    ValueId y = draft.body(b, inputs);
    if (b.shape(y).size() > 2) y = b.apply(Op::kFlatten, {y});
    return std::pair{y, t};
  };
  Builder probe("probe");
  const Shape target = probe.shape(run(probe, nullptr).first);
  Builder b("case_" + ir::info(op).name);
  const auto [y, t] = run(b, &target);
  return close(b, b.apply(Op::kMse, {y, t}));
}

// x -> pre -> op with these attributes -> mse.
ir::Workload unary(Op op, Shape shape, const std::vector<Attribute>& attributes = {}, bool bias = true) {
  const auto body = [=](Builder& b, const Values& in) {
    return b.apply(op, {pre(b, in[0], bias)}, attributes);
  };
  return with_mse(op, {{floats("x", std::move(shape))}, body});
}

// ids -> op (a change of shape) -> embedding -> mse.
ir::Workload on_integers(Op op, Shape shape, const std::vector<Attribute>& attributes = {}) {
  const auto body = [=](Builder& b, const Values& in) {
    return b.embedding(b.apply(op, {in[0]}, attributes), "table", 7, 3);
  };
  return with_mse(op, {{integers("ids", std::move(shape))}, body});
}

template <Op op, size_t axes>
ir::Workload conv_case(Rng& rng) {
  Builder::Conv conv{
      .kernel = Ints(axes), .stride = Ints(axes), .pad = Ints(2 * axes), .dilation = Ints(axes)};
  conv.groups = rng.chance(0.5) ? 1 : rng.integer(2, 3);
  const int64_t in = conv.groups * rng.integer(1, 3);
  conv.channels = conv.groups * rng.integer(1, 3);
  Shape shape = {kBatch, in};
  for (size_t axis = 0; axis < axes; ++axis) {
    conv.kernel[axis] = rng.integer(1, 4);
    conv.stride[axis] = rng.integer(1, 3);
    conv.dilation[axis] = rng.chance(0.6) ? 1 : rng.integer(2, 3);
    for (const size_t side : {2 * axis, 2 * axis + 1})
      conv.pad[side] = rng.chance(0.5) ? 0 : rng.integer(1, 2);
    const int64_t span = conv.dilation[axis] * (conv.kernel[axis] - 1) + 1;
    const int64_t least = std::max<int64_t>(3, span - conv.pad[2 * axis] - conv.pad[2 * axis + 1]);
    shape.push_back(rng.integer(least, std::max<int64_t>(axes == 3 ? 5 : 9, least)));
  }
  conv.bias = rng.chance(0.6);
  const bool frozen = rng.chance(0.2);
  const auto body = [=](Builder& b, const Values& x) {
    const ValueId y = b.conv(pre(b, x[0]), "conv", conv);
    if (frozen) b.freeze("conv.");
    return y;
  };
  return with_mse(op, {{floats("x", shape)}, body});
}

ir::Workload linear_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4));
  const int64_t features = rng.integer(1, 9);
  const bool bias = rng.chance(0.6), frozen = rng.chance(0.2);
  const auto body = [=](Builder& b, const Values& x) {
    const ValueId y = b.linear(pre(b, x[0]), "fc", features, bias);
    if (frozen) b.freeze("fc.");
    return y;
  };
  return with_mse(Op::kLinear, {{floats("x", shape)}, body});
}

template <Op op, size_t axes>
ir::Workload conv_transpose_case(Rng& rng) {
  Builder::Conv conv{
      .kernel = Ints(axes), .stride = Ints(axes), .pad = Ints(2 * axes), .dilation = Ints(axes)};
  conv.output_pad = Ints(axes);
  conv.groups = rng.chance(0.6) ? 1 : rng.integer(2, 3);
  Shape shape = {kBatch, conv.groups * rng.integer(1, 3)};
  conv.channels = conv.groups * rng.integer(1, 3);
  for (size_t axis = 0; axis < axes; ++axis) {
    conv.kernel[axis] = rng.integer(1, 4);
    conv.stride[axis] = rng.integer(1, 3);
    conv.dilation[axis] = rng.chance(0.7) ? 1 : 2;
    conv.output_pad[axis] = rng.chance(0.6) ? 0 : conv.stride[axis] - 1;
    for (const size_t side : {2 * axis, 2 * axis + 1}) conv.pad[side] = rng.chance(0.5) ? 0 : 1;
    shape.push_back(rng.integer(3, axes == 3 ? 4 : 6));
  }
  conv.bias = rng.chance(0.6);
  const auto body = [=](Builder& b, const Values& x) { return b.conv_transpose(pre(b, x[0]), "conv", conv); };
  return with_mse(op, {{floats("x", shape)}, body});
}

ir::Workload batch_norm_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.chance(0.4) ? 2 : rng.integer(3, 5), 3, 5);
  const double eps = rng.chance(0.5) ? 1e-3 : 1e-5;
  const double momentum = static_cast<double>(rng.integer(1, 99)) / 100;
  const auto body = [=](Builder& b, const Values& x) {
    return b.batch_norm(pre(b, x[0], /*bias=*/false), "bn", eps, momentum);
  };
  return with_mse(Op::kBatchNorm, {{floats("x", shape)}, body});
}

Builder::Affine random_affine(Rng& rng) {
  const bool weight = rng.chance(0.8);
  return {weight, rng.chance(0.7)};
}

template <Op op>
ir::Workload tail_norm_case(Rng& rng) {
  const int64_t rank = rng.integer(2, 4);
  const Shape shape = random_shape(rng, rank, 3, 5);
  const int64_t dims = rng.integer(1, rank - 1);
  const double eps = rng.chance(0.5) ? 1e-3 : 1e-5;
  const Builder::Affine has = random_affine(rng);
  const auto body = [=](Builder& b, const Values& x) {
    const ValueId h = pre(b, x[0], /*bias=*/false);
    return op == Op::kLayerNorm ? b.layer_norm(h, "ln", dims, eps, has)
                                : b.rms_norm(h, "rms", dims, eps, has.weight);
  };
  return with_mse(op, {{floats("x", shape)}, body});
}

ir::Workload embedding_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(1, 3));
  const int64_t rows = rng.integer(2, 9);
  const int64_t width = rng.integer(1, 6);
  const auto padding = rng.chance(0.4) ? std::optional(rng.integer(0, rows - 1)) : std::nullopt;
  const auto body = [=](Builder& b, const Values& x) {
    return b.embedding(x[0], "table", rows, width, padding);
  };
  return with_mse(Op::kEmbedding, {{integers("ids", shape)}, body});
}

ir::Workload dropout_case(Rng& rng) {
  const double rate = static_cast<double>(rng.integer(0, 8)) / 10;
  return unary(Op::kDropout, random_shape(rng, rng.integer(2, 4), 2), {{"rate", rate}});
}

template <Op op>
ir::Workload activation_case(Rng& rng) {
  return unary(op, random_shape(rng, rng.integer(2, 4), 4));  // enough elements that some stay alive
}

ir::Workload gelu_case(Rng& rng) {
  const std::string form = rng.chance(0.5) ? "erf" : "tanh";
  return unary(Op::kGelu, random_shape(rng, rng.integer(2, 4)), {{"form", form}});
}

ir::Workload softmax_case(Rng& rng) {
  const int64_t rank = rng.integer(2, 4);
  return unary(Op::kSoftmax, random_shape(rng, rank, 2), {{"axis", rng.integer(1, rank - 1)}},
               /*bias=*/false);
}

// Kernel, stride and pads of a pooling and a picture that they fit.
std::pair<Shape, std::vector<Attribute>> random_window(Rng& rng, size_t axes) {
  Ints kernel(axes), stride(axes), pad(2 * axes);
  Shape shape = random_shape(rng, 2);
  for (size_t axis = 0; axis < axes; ++axis) {
    kernel[axis] = rng.integer(1, 4);
    stride[axis] = rng.integer(1, 4);
    for (const size_t side : {2 * axis, 2 * axis + 1}) pad[side] = rng.integer(0, kernel[axis] / 2);
    shape.push_back(rng.integer(kernel[axis], axes == 3 ? 5 : 9));
  }
  return {shape, {{"kernel", kernel}, {"stride", stride}, {"pad", pad}}};
}

template <Op op, size_t axes>
ir::Workload max_pool_case(Rng& rng) {
  auto [shape, attributes] = random_window(rng, axes);
  return unary(op, shape, attributes);
}

template <Op op, size_t axes>
ir::Workload avg_pool_case(Rng& rng) {
  auto [shape, attributes] = random_window(rng, axes);
  attributes.push_back({"count_include_pad", rng.chance(0.5)});
  return unary(op, shape, attributes);
}

ir::Workload global_avg_pool2d_case(Rng& rng) { return unary(Op::kGlobalAvgPool2d, random_shape(rng, 4)); }

ir::Workload resize_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(3, 5), 1, 5);
  const bool whole = rng.chance(0.4), nearest = rng.chance(0.5);
  Ints size;
  for (size_t axis = 2; axis < shape.size(); ++axis)
    size.push_back(whole ? shape[axis] * rng.integer(1, 3) : rng.integer(1, 9));
  const std::string coordinates[] = {"half_pixel", "asymmetric", "align_corners"};
  return unary(Op::kResize, shape,
               {{"size", size},
                {"mode", std::string(nearest ? "nearest" : "linear")},
                {"coordinates", coordinates[rng.integer(0, nearest ? 1 : 2)]}});
}

ir::Workload flatten_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4));
  return rng.chance(0.2) ? on_integers(Op::kFlatten, shape) : unary(Op::kFlatten, shape);
}

// Of what has no N.
ir::Workload fixed_reshape_case(const Shape& shape) {
  Shape fixed = shape;
  fixed[0] = 1;
  const auto body = [=](Builder& b, const Values& in) {
    const ValueId flat = b.parameter_value("scale", {36});
    return b.apply(Op::kMul, {pre(b, in[0]), b.apply(Op::kReshape, {flat}, {{"shape", fixed}})});
  };
  return with_mse(Op::kReshape, {{floats("x", shape)}, body});
}

ir::Workload reshape_case(Rng& rng) {
  // The same primes, dealt out to the axes anew.
  Shape from(static_cast<size_t>(rng.integer(2, 4)), 1);
  Shape to(static_cast<size_t>(rng.integer(2, 4)), 1);
  for (const int64_t prime : {2, 2, 3, 3}) {
    from[static_cast<size_t>(rng.integer(1, static_cast<int64_t>(from.size()) - 1))] *= prime;
    to[static_cast<size_t>(rng.integer(1, static_cast<int64_t>(to.size()) - 1))] *= prime;
  }
  from[0] = to[0] = kBatch;
  const std::vector<Attribute> attributes = {{"shape", to}};
  if (to.size() < 4 && rng.chance(0.2)) return on_integers(Op::kReshape, from, attributes);
  if (rng.chance(0.25)) return fixed_reshape_case(to);
  return unary(Op::kReshape, from, attributes);
}

ir::Workload transpose_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4));
  Ints perm(shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  for (size_t i = perm.size() - 1; i > 1; --i) {
    std::swap(perm[i], perm[static_cast<size_t>(rng.integer(1, static_cast<int64_t>(i)))]);
  }
  if (shape.size() < 4 && rng.chance(0.2)) return on_integers(Op::kTranspose, shape, {{"perm", perm}});
  return unary(Op::kTranspose, shape, {{"perm", perm}});
}

ir::Workload pad_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4), 1, 4);
  Ints pads(2 * (shape.size() - 1));
  for (int64_t& pad : pads) pad = rng.chance(0.4) ? 0 : rng.integer(1, 3);
  const double value = rng.chance(0.5) ? 0.0 : static_cast<double>(rng.integer(-8, 8)) / 4;
  return unary(Op::kPad, shape, {{"pad", pads}, {"value", value}});
}

// Several inputs, each behind a layer of its own, or one value taken twice.
ir::Workload joined(Op op, const std::vector<Shape>& shapes, const std::vector<Attribute>& attributes,
                    bool twice) {
  static const char* const kNames[] = {"a", "b", "c", "d"};
  Draft draft;
  for (size_t i = 0; i < (twice ? 1 : shapes.size()); ++i)
    draft.inputs.push_back(floats(kNames[i], shapes[i]));
  draft.body = [=](Builder& b, const Values& in) {
    Values values;
    for (size_t i = 0; i < in.size(); ++i)
      values.push_back(pre(b, in[i], true, std::string("pre_") + kNames[i]));
    if (twice) values.push_back(values[0]);
    return b.apply(op, values, attributes);
  };
  return with_mse(op, draft);
}

ir::Workload concat_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4), 1, 4);
  const auto axis = rng.integer(1, static_cast<int64_t>(shape.size()) - 1);
  const bool twice = rng.chance(0.1);
  std::vector<Shape> shapes(static_cast<size_t>(rng.integer(2, 4)), shape);
  for (Shape& each : shapes) each[static_cast<size_t>(axis)] = rng.integer(1, 4);
  return joined(Op::kConcat, shapes, {{"axis", axis}}, twice);
}

ir::Workload join_case(Rng& rng) {
  std::vector<Shape> shapes(static_cast<size_t>(rng.integer(2, 4)));
  for (Shape& each : shapes) each = random_shape(rng, rng.integer(2, 4), 1, 4);
  return joined(Op::kJoin, shapes, {}, rng.chance(0.1));
}

template <Op op>
ir::Workload broadcast_case(Rng& rng) {
  Shape a = random_shape(rng, rng.integer(2, 4));
  Shape b = a;
  if (rng.chance(0.7)) {
    for (size_t axis = 1; axis < a.size(); ++axis) {
      if (rng.chance(0.4)) (rng.chance(0.5) ? a : b)[axis] = 1;
    }
  }
  return joined(op, {a, b}, {}, a == b && rng.chance(0.2));
}

ir::Workload lrn_case(Rng& rng) {
  const auto real = [&](int64_t least, int64_t most) {
    return static_cast<double>(rng.integer(least, most)) / 20;
  };
  return unary(
      Op::kLrn, random_shape(rng, 4),
      {{"size", rng.integer(1, 7)}, {"alpha", real(1, 20)}, {"beta", real(5, 25)}, {"k", real(10, 40)}});
}

ir::Workload position_embedding_case(Rng& rng) {
  const Shape shape = random_shape(rng, 3);
  const int64_t rows = shape[1] + rng.integer(0, 2);
  const auto body = [=](Builder& b, const Values& x) {
    return b.position_embedding(pre(b, x[0]), "position", rows);
  };
  return with_mse(Op::kPositionEmbedding, {{floats("x", shape)}, body});
}

// A bias of the keys would add the same to all scores of a query: its gradient is zero.
ir::Workload attention_case(Rng& rng) {
  const int64_t groups = rng.integer(1, 3), width = rng.integer(1, 4);
  Shape q = {kBatch, rng.integer(2, 5), groups, width};
  const bool causal = rng.chance(0.4), padded = rng.chance(0.5), itself = rng.chance(0.3);
  const int64_t window = causal && !padded && rng.chance(0.5) ? rng.integer(1, q[1]) : 0;
  const double rate = rng.chance(0.3) ? static_cast<double>(rng.integer(1, 5)) / 10 : 0;
  Shape k = q;
  if (!causal && !itself) k[1] = rng.integer(2, 6);
  if (!itself) q[2] *= rng.integer(1, 3);
  Draft draft{.inputs = {floats("q", q)}, .body = {}};
  if (!itself) draft.inputs.push_back(floats("k", k));
  if (padded) draft.inputs.push_back(integers("last", {kBatch}));
  draft.body = [=](Builder& b, const Values& in) {
    const ValueId from = itself ? in[0] : in[1];
    Values values = {b.linear(in[0], "query", q[3]), b.linear(from, "key", q[3], /*bias=*/false),
                     b.linear(from, "value", q[3])};
    if (padded) values.push_back(in.back());
    return b.apply(Op::kAttention, values, {{"causal", causal}, {"window", window}, {"rate", rate}});
  };
  return with_mse(Op::kAttention, draft);
}

template <Op op>
ir::Workload recurrent_case(Rng& rng) {
  const Shape shape = {kBatch, rng.integer(2, 5), rng.integer(1, 5)};
  const int64_t units = rng.integer(1, 5);
  const bool bias = rng.chance(0.7), reverse = rng.chance(0.4);
  const auto body = [=](Builder& b, const Values& x) {
    const ValueId h = pre(b, x[0]);
    return op == Op::kLstm ? b.lstm(h, "lstm", units, bias, reverse) : b.gru(h, "gru", units, bias, reverse);
  };
  return with_mse(op, {{floats("x", shape)}, body});
}

ir::Workload softmax_cross_entropy_case(Rng& rng) {
  Shape logits = random_shape(rng, rng.integer(2, 4), 1, 4);
  logits.back() = rng.integer(2, 9);
  std::vector<Attribute> attributes = {{"reduction", std::string(rng.chance(0.5) ? "mean" : "sum")},
                                       {"label_smoothing", rng.chance(0.5) ? 0.0 : 0.15}};
  const int64_t ignored[] = {-100, -1, 0, logits.back()};
  if (rng.chance(0.5)) attributes.push_back({"ignore_index", ignored[rng.integer(0, 3)]});
  Builder b("case_softmax_cross_entropy");
  const ValueId x = b.input("x", {DType::kF32, logits});
  const ValueId y = b.input("y", {DType::kI32, Shape(logits.begin(), logits.end() - 1)});
  const ValueId z = b.linear(x, "pre", logits.back(), rng.chance(0.6));
  return close(b, b.apply(Op::kSoftmaxCrossEntropy, {z, y}, attributes));
}

ir::Workload ctc_case(Rng& rng) {
  const int64_t frames = rng.integer(1, 6), classes = rng.integer(2, 5);
  Builder b("case_ctc");
  const ValueId x = b.input("x", {DType::kF32, {kBatch, frames, rng.integer(1, 4)}});
  const ValueId y = b.input("y", {DType::kI32, {kBatch, rng.integer(1, 5)}});
  const ValueId z = b.linear(x, "pre", classes, rng.chance(0.6));
  return close(b, b.apply(Op::kCtc, {z, y}, {{"reduction", std::string(rng.chance(0.5) ? "mean" : "sum")}}));
}

// Places in [0, most], from a frozen vector.
ValueId random_places(Builder& b, int64_t count, int64_t most) {
  const ValueId raw = b.parameter_value("places", {count});
  b.freeze("places");
  const ValueId wide = b.apply(Op::kMul, {raw, b.constant(static_cast<double>(most + 1))});
  const std::vector<Attribute> range = {{"least", 0.0}, {"most", static_cast<double>(most)}};
  return b.apply(Op::kCast, {b.apply(Op::kClip, {wide}, range)});
}

ir::Workload cast_case(Rng& rng) {
  const int64_t count = rng.integer(2, 5);
  const Shape shape = {kBatch, rng.integer(1, 4), 3};
  const auto body = [=](Builder& b, const Values& in) {
    const ValueId x = pre(b, in[0]);
    const ValueId one =
        b.apply(Op::kSlice, {x}, {{"axis", int64_t{1}}, {"begin", int64_t{0}}, {"end", int64_t{1}}});
    return b.apply(Op::kTake, {one, random_places(b, count, 2)}, {{"axis", int64_t{2}}});
  };
  return with_mse(Op::kCast, {{floats("x", shape)}, body});
}

// x s + x^2, where s is x stopped: a framework that lets the gradient through gives 4 x, not 3 x.
ir::Workload stop_gradient_case(Rng& rng) {
  const auto body = [](Builder& b, const Values& in) {
    const ValueId x = pre(b, in[0]);
    return after_step(b, x, b.apply(Op::kStopGradient, {x}));
  };
  return with_mse(Op::kStopGradient, {{floats("x", random_shape(rng, rng.integer(2, 4), 3))}, body});
}

ir::Workload take_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4), 2);
  const int64_t axis = rng.integer(1, static_cast<int64_t>(shape.size()) - 1), count = rng.integer(1, 6);
  const int64_t most = shape[static_cast<size_t>(axis)] - 1;
  const auto body = [=](Builder& b, const Values& in) {
    return b.apply(Op::kTake, {pre(b, in[0]), random_places(b, count, most)}, {{"axis", axis}});
  };
  return with_mse(Op::kTake, {{floats("x", shape)}, body});
}

// x N,V,C and places N,E along axis 1, or with more axes before.
template <Op op>
ir::Workload placed_case(Rng& rng) {
  const int64_t axis = rng.chance(0.7) ? 1 : 2, count = rng.integer(1, 5), size = rng.integer(1, 5);
  Shape shape = random_shape(rng, axis + rng.integer(1, 4), 1, 3);
  shape.back() += 2;
  Shape places(shape.begin(), shape.begin() + axis + 1);
  std::vector<Attribute> attributes = {{"axis", axis}};
  if (op == Op::kGather)
    places.back() = count;
  else
    attributes.emplace_back("size", size);
  const auto body = [=](Builder& b, const Values& in) {
    return b.apply(op, {pre(b, in[0]), in[1]}, attributes);
  };
  return with_mse(op, {{floats("x", shape), integers("places", places)}, body});
}

ir::Workload group_norm_case(Rng& rng) {
  const int64_t groups = rng.integer(1, 3);
  Shape shape = {kBatch, groups * rng.integer(1, 3)};
  for (int64_t axis = rng.integer(1, 3); axis > 0; --axis) shape.push_back(rng.integer(2, 5));
  const double eps = rng.chance(0.5) ? 1e-3 : 1e-5;
  const Builder::Affine has = random_affine(rng);
  const auto body = [=](Builder& b, const Values& in) {
    return b.group_norm(pre(b, in[0], /*bias=*/false), "gn", groups, eps, has);
  };
  return with_mse(Op::kGroupNorm, {{floats("x", shape)}, body});
}

template <Op op>
ir::Workload loss_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4));
  Builder b("case_" + ir::info(op).name);
  const ValueId x = b.input("x", {DType::kF32, shape});
  const ValueId t = b.input("t", {DType::kF32, shape});
  return close(b,
               b.apply(op, {pre(b, x), t}, {{"reduction", std::string(rng.chance(0.5) ? "mean" : "sum")}}));
}

}  // namespace

ValueId positive(Builder& b, ValueId x) { return b.apply(Op::kExp, {b.apply(Op::kTanh, {x})}); }

ValueId after_step(Builder& b, ValueId x, ValueId y) {
  return b.apply(Op::kAdd, {b.apply(Op::kMul, {x, y}), b.apply(Op::kSquare, {x})});
}

std::vector<Attribute> random_reals(const ir::Elementwise& row, Rng& rng) {
  std::vector<Attribute> all;
  for (const ir::AttrSpec& spec : row.attributes) {
    const double fallback = std::get<double>(spec.fallback);
    const double factor = static_cast<double>(rng.integer(3, 7)) / 5;
    const double bound = static_cast<double>(rng.integer(1, 4)) / 4 * (fallback < 0 ? -1 : 1);
    all.push_back({spec.name, std::isinf(fallback) ? bound : fallback * factor});
  }
  return all;
}

namespace {

// The op; of a comparison, a choice that it makes.
ir::Workload elementwise_case(const ir::Elementwise& row, Rng& rng) {
  Shape a = random_shape(rng, rng.integer(2, 4), 4);
  Shape c = a;
  if (row.inputs == 2 && rng.chance(0.5)) {
    for (size_t axis = 1; axis < a.size(); ++axis) {
      if (rng.chance(0.4)) c[axis] = 1;
    }
  }
  const bool scalar = row.inputs == 2 && row.kind == ir::ElementKind::kReal && rng.chance(0.3);
  const bool first = rng.chance(0.5);
  const double number = static_cast<double>(rng.integer(1, 4)) / 8;
  const std::vector<Attribute> attributes = random_reals(row, rng);
  Draft draft{.inputs = {floats("a", a)}, .body = {}};
  if (row.inputs == 2 && !scalar) draft.inputs.push_back(floats("b", c));
  draft.body = [=, &row](Builder& b, const Values& in) {
    Values values;
    for (size_t i = 0; i < in.size(); ++i) {
      ValueId x = pre(b, in[i], true, i == 0 ? "pre_a" : "pre_b");
      if (row.domain == ir::Domain::kPositive) x = positive(b, x);
      values.push_back(x);
    }
    const ValueId x = values[0], other = values.back();
    if (scalar) values.insert(first ? values.begin() : values.end(), b.constant(number));
    if (row.kind == ir::ElementKind::kLogic) {
      const ValueId zero = b.constant(0);
      for (ValueId& value : values) value = b.apply(Op::kLess, {value, zero});
    }
    const ValueId y = b.apply(row.op, values, attributes);
    if (row.kind == ir::ElementKind::kReal) return row.slope == nullptr ? after_step(b, x, y) : y;
    const ValueId sum = b.apply(Op::kAdd, {x, b.apply(Op::kMul, {other, b.constant(0.375)})});
    return b.apply(Op::kWhere, {y, sum, b.apply(Op::kMul, {sum, b.constant(-0.25)})});
  };
  return with_mse(row.op, draft);
}

ir::Workload constant_case(Rng& rng) {
  const double number = static_cast<double>(rng.integer(-12, 12)) / 8;
  const auto body = [=](Builder& b, const Values& in) {
    return b.apply(Op::kAdd, {pre(b, in[0]), b.constant(number)});
  };
  return with_mse(Op::kConstant, {{floats("x", random_shape(rng, rng.integer(2, 4)))}, body});
}

ir::Workload parameter_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4));
  Shape sizes = shape;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (axis == 0 || rng.chance(0.4)) sizes[axis] = 1;
  }
  const bool frozen = rng.chance(0.3);
  const auto body = [=](Builder& b, const Values& in) {
    const ValueId y = b.apply(Op::kMul, {pre(b, in[0]), b.parameter_value("scale", sizes)});
    if (frozen) b.freeze("scale");
    return y;
  };
  return with_mse(Op::kParameter, {{floats("x", shape)}, body});
}

ir::Workload where_case(Rng& rng) {
  const int64_t number = rng.integer(0, 5);  // which of the choices is a number: 0, 1 or none
  const Shape shape = random_shape(rng, rng.integer(2, 4), 4);
  Shape thin = shape;
  for (size_t axis = 2; axis < thin.size(); ++axis) {
    if (rng.chance(0.5)) thin[axis] = 1;
  }
  const auto body = [=](Builder& b, const Values& in) {
    const ValueId x = pre(b, in[0], true, "pre_x"), c = pre(b, in[1], true, "pre_c");
    const ValueId condition = b.apply(Op::kLess, {c, b.constant(0.25)});
    const ValueId sum = b.apply(Op::kAdd, {x, c});
    return b.apply(Op::kWhere, {condition, number == 0 ? b.constant(-0.5) : sum,
                                number == 0   ? sum
                                : number == 1 ? b.constant(-0.5)
                                              : c});
  };
  return with_mse(Op::kWhere, {{floats("x", shape), floats("c", thin)}, body});
}

// Some of the axes after N, in order.
Ints random_axes(Rng& rng, size_t rank) {
  Ints axes;
  for (size_t axis = 1; axis < rank; ++axis) {
    if (rng.chance(0.5)) axes.push_back(static_cast<int64_t>(axis));
  }
  if (axes.empty()) axes.push_back(rng.integer(1, static_cast<int64_t>(rank) - 1));
  return axes;
}

template <Op op>
ir::Workload reduction_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4), 2);
  const Ints axes = random_axes(rng, shape.size());
  const bool keep = axes.size() + 1 == shape.size() || rng.chance(0.5);
  return unary(op, shape, {{"axes", axes}, {"keepdims", keep}});
}

// Initial biases are 0: a norm of zeros with a bias alone gives the products an element of 0 that is trained.
ir::Workload prod_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4), 2, 4);
  const int64_t axis = rng.integer(1, static_cast<int64_t>(shape.size()) - 1);
  const std::vector<Attribute> attributes = {{"axis", axis},
                                             {"keepdims", shape.size() == 2 || rng.chance(0.5)}};
  const auto body = [=](Builder& b, const Values& in) {
    const ValueId x = pre(b, in[0]);
    const ValueId zero = b.layer_norm(b.apply(Op::kMul, {in[0], b.constant(0)}), "zero", 1, 1e-5,
                                      {.weight = false, .bias = true});
    const ValueId one =
        b.apply(Op::kSlice, {zero}, {{"axis", axis}, {"begin", int64_t{0}}, {"end", int64_t{1}}});
    const ValueId longer = b.apply(Op::kConcat, {x, one}, {{"axis", axis}});
    return b.apply(Op::kAdd, {b.apply(Op::kProd, {x}, attributes), b.apply(Op::kProd, {longer}, attributes)});
  };
  return with_mse(Op::kProd, {{floats("x", shape)}, body});
}

// Of clipped numbers, so that some are equal.
ir::Workload argmax_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4), 2);
  const int64_t axis = rng.integer(1, static_cast<int64_t>(shape.size()) - 1);
  const double most = rng.chance(0.5) ? 0.2 : 9.0;
  const auto body = [=](Builder& b, const Values& in) {
    const ValueId x = b.apply(Op::kClip, {pre(b, in[0])}, {{"least", -9.0}, {"most", most}});
    const ValueId row = b.embedding(b.apply(Op::kArgmax, {x}, {{"axis", axis}}), "table",
                                    shape[static_cast<size_t>(axis)], 3);
    Shape one = b.shape(row);
    one.back() = 1;
    const ValueId sum = b.apply(Op::kSum, {x}, {{"axes", Ints{axis}}, {"keepdims", true}});
    return b.apply(Op::kMul, {row, b.apply(Op::kReshape, {sum}, {{"shape", one}})});
  };
  return with_mse(Op::kArgmax, {{floats("x", shape)}, body});
}

ir::Workload log_softmax_case(Rng& rng) {
  const int64_t rank = rng.integer(2, 4);
  return unary(Op::kLogSoftmax, random_shape(rng, rank, 2), {{"axis", rng.integer(1, rank - 1)}},
               /*bias=*/false);
}

ir::Workload cumsum_case(Rng& rng) {
  const int64_t rank = rng.integer(2, 4);
  return unary(Op::kCumsum, random_shape(rng, rank), {{"axis", rng.integer(1, rank - 1)}});
}

ir::Workload slice_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4), 1, 7);
  const int64_t axis = rng.integer(1, static_cast<int64_t>(shape.size()) - 1);
  const int64_t size = shape[static_cast<size_t>(axis)];
  const int64_t begin = rng.integer(0, size - 1), end = rng.integer(begin + 1, size);
  return unary(Op::kSlice, shape,
               {{"axis", axis}, {"begin", begin}, {"end", end}, {"step", rng.integer(1, 3)}});
}

ir::Workload flip_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4));
  return unary(Op::kFlip, shape, {{"axes", random_axes(rng, shape.size())}});
}

// A learned token or a number beside every row, or a thin value made wide.
ir::Workload expand_case(Rng& rng) {
  const Shape shape = random_shape(rng, rng.integer(2, 4));
  Shape thin = shape;
  const bool learned = rng.chance(0.5), states_number = rng.chance(0.3);
  const double number = static_cast<double>(rng.integer(-2, 2)) / 4;
  for (size_t axis = 0; axis < thin.size(); ++axis) {
    if (axis == 0 ? learned : rng.chance(0.4)) thin[axis] = 1;
  }
  const auto body = [=](Builder& b, const Values& in) {
    const ValueId x = pre(b, in[0]);
    ValueId token = states_number ? b.constant(number) : learned ? b.parameter_value("token", thin) : x;
    for (size_t axis = 1; !states_number && !learned && axis < thin.size(); ++axis) {
      if (thin[axis] == shape[axis]) continue;
      token = b.apply(Op::kMean, {token}, {{"axes", Ints{static_cast<int64_t>(axis)}}, {"keepdims", true}});
    }
    const ValueId wide = b.apply(Op::kExpand, {token, x}, {{"shape", shape}});
    return b.apply(Op::kConcat, {wide, x}, {{"axis", int64_t{1}}});
  };
  return with_mse(Op::kExpand, {{floats("x", shape)}, body});
}

ir::Workload matmul_case(Rng& rng) {
  Shape a = random_shape(rng, rng.integer(3, 4));
  Shape b = a;
  const size_t rank = a.size();
  b[rank - 2] = a[rank - 1];
  b[rank - 1] = rng.integer(1, 6);
  if (rank == 4 && rng.chance(0.3)) (rng.chance(0.5) ? a : b)[1] = 1;
  return joined(Op::kMatmul, {a, b}, {}, false);
}

struct Row {
  Op op;
  ir::Workload (*make)(Rng&);
};

constexpr Row kRows[] = {
    {Op::kConv1d, conv_case<Op::kConv1d, 1>},
    {Op::kConv2d, conv_case<Op::kConv2d, 2>},
    {Op::kConv3d, conv_case<Op::kConv3d, 3>},
    {Op::kConvTranspose1d, conv_transpose_case<Op::kConvTranspose1d, 1>},
    {Op::kConvTranspose2d, conv_transpose_case<Op::kConvTranspose2d, 2>},
    {Op::kConvTranspose3d, conv_transpose_case<Op::kConvTranspose3d, 3>},
    {Op::kLinear, linear_case},
    {Op::kBatchNorm, batch_norm_case},
    {Op::kLayerNorm, tail_norm_case<Op::kLayerNorm>},
    {Op::kRmsNorm, tail_norm_case<Op::kRmsNorm>},
    {Op::kEmbedding, embedding_case},
    {Op::kDropout, dropout_case},
    {Op::kRelu, activation_case<Op::kRelu>},
    {Op::kGelu, gelu_case},
    {Op::kSigmoid, activation_case<Op::kSigmoid>},
    {Op::kTanh, activation_case<Op::kTanh>},
    {Op::kSoftmax, softmax_case},
    {Op::kMaxPool1d, max_pool_case<Op::kMaxPool1d, 1>},
    {Op::kMaxPool2d, max_pool_case<Op::kMaxPool2d, 2>},
    {Op::kMaxPool3d, max_pool_case<Op::kMaxPool3d, 3>},
    {Op::kAvgPool1d, avg_pool_case<Op::kAvgPool1d, 1>},
    {Op::kAvgPool2d, avg_pool_case<Op::kAvgPool2d, 2>},
    {Op::kAvgPool3d, avg_pool_case<Op::kAvgPool3d, 3>},
    {Op::kGlobalAvgPool2d, global_avg_pool2d_case},
    {Op::kResize, resize_case},
    {Op::kFlatten, flatten_case},
    {Op::kReshape, reshape_case},
    {Op::kTranspose, transpose_case},
    {Op::kPad, pad_case},
    {Op::kConcat, concat_case},
    {Op::kJoin, join_case},
    {Op::kAdd, broadcast_case<Op::kAdd>},
    {Op::kMul, broadcast_case<Op::kMul>},
    {Op::kLrn, lrn_case},
    {Op::kPositionEmbedding, position_embedding_case},
    {Op::kAttention, attention_case},
    {Op::kLstm, recurrent_case<Op::kLstm>},
    {Op::kGru, recurrent_case<Op::kGru>},
    {Op::kConstant, constant_case},
    {Op::kParameter, parameter_case},
    {Op::kWhere, where_case},
    {Op::kSum, reduction_case<Op::kSum>},
    {Op::kMean, reduction_case<Op::kMean>},
    {Op::kMax, reduction_case<Op::kMax>},
    {Op::kMin, reduction_case<Op::kMin>},
    {Op::kLogsumexp, reduction_case<Op::kLogsumexp>},
    {Op::kProd, prod_case},
    {Op::kArgmax, argmax_case},
    {Op::kCumsum, cumsum_case},
    {Op::kLogSoftmax, log_softmax_case},
    {Op::kSlice, slice_case},
    {Op::kFlip, flip_case},
    {Op::kExpand, expand_case},
    {Op::kMatmul, matmul_case},
    {Op::kCast, cast_case},
    {Op::kTake, take_case},
    {Op::kGather, placed_case<Op::kGather>},
    {Op::kScatterAdd, placed_case<Op::kScatterAdd>},
    {Op::kStopGradient, stop_gradient_case},
    {Op::kGroupNorm, group_norm_case},
    {Op::kSoftmaxCrossEntropy, softmax_cross_entropy_case},
    {Op::kMse, loss_case<Op::kMse>},
    {Op::kL1, loss_case<Op::kL1>},
    {Op::kBceWithLogits, loss_case<Op::kBceWithLogits>},
    {Op::kCtc, ctc_case},
};

const Row* find_row(Op op) {
  for (const Row& row : kRows) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

}  // namespace

bool has_random_case(Op op) { return ir::find_elementwise(op) != nullptr || find_row(op) != nullptr; }

ir::Workload random_losses(Rng& rng) {
  Builder b("losses");
  const ValueId x = b.input("x", {DType::kF32, {kBatch, 2, 4, 5}}), y = b.input("y", {DType::kI32, {kBatch}}),
                t = b.input("t", {DType::kF32, {kBatch, 3, 4, 5}});
  // 0: classes, 1: classes of another head, 2 and 3: the picture.
  std::vector<int> kinds = {0, 1, 2, 3};
  std::swap(kinds[0], kinds[static_cast<size_t>(rng.integer(0, 3))]);
  kinds.resize(static_cast<size_t>(rng.integer(1, 4)));
  const auto any = [&](int least, int most) {
    return std::any_of(kinds.begin(), kinds.end(), [&](int kind) { return kind >= least && kind <= most; });
  };
  const ValueId trunk = b.relu(b.conv(x, "trunk", {.channels = 3, .pad = {1, 1, 1, 1}}));
  ValueId logits[] = {-1, -1}, picture = -1;
  if (any(2, 3)) picture = b.named(b.conv(trunk, "decoder", {.channels = 3, .kernel = {1, 1}}), "picture");
  if (any(0, 0)) logits[0] = b.named(b.linear(b.apply(Op::kFlatten, {trunk}), "head", 4), "logits");
  if (any(1, 1))
    logits[1] = b.linear(b.relu(b.linear(b.apply(Op::kFlatten, {trunk}), "aux.hidden", 3)), "aux.head", 4);
  const int64_t ignored = rng.integer(-1, 0);
  std::vector<ValueId> parts;
  for (const int kind : kinds) {
    const std::vector<Attribute> sum = {{"reduction", std::string("sum")}};
    const std::vector<Attribute> classes = {{"label_smoothing", 0.1 * kind}, {"ignore_index", ignored}};
    const ValueId made = kind > 1 ? b.apply(kind == 2 ? Op::kMse : Op::kL1, {picture, t},
                                            kind == 2 ? std::vector<Attribute>() : sum)
                                  : b.apply(Op::kSoftmaxCrossEntropy, {logits[kind], y}, classes);
    const ValueId loss = b.named(made, parts.empty() ? "main_loss" : fmt::format("aux_{}", parts.size()));
    const double weights[] = {0.3, -0.25, 2.0};
    const bool weighted = kinds.size() == 1 || rng.chance(0.6);
    const ValueId weight = weighted ? b.constant(weights[rng.integer(0, 2)]) : -1;
    const Values factors = rng.chance(0.5) ? Values{loss, weight} : Values{weight, loss};
    parts.push_back(weighted ? b.apply(Op::kMul, factors) : loss);
  }
  ValueId sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) sum = b.apply(Op::kAdd, {sum, parts[i]});
  return close(b, sum);
}

ir::Workload random_case(Op op, Rng& rng) {
  if (const ir::Elementwise* elementwise = ir::find_elementwise(op))
    return elementwise_case(*elementwise, rng);
  const Row* row = find_row(op);
  assert(row != nullptr && "the op has no generator");
  return row->make(rng);
}

}  // namespace bakeoff::zoo
