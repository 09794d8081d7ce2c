// Random networks for the tests that compare frameworks with the referee. A network is a chain of blocks
// that keep the rank of their input: any block can follow any other. repeated() draws a block two or three
// times from a copy of the random state: the parts are alike, so emitters print them as one class
// (emit/blocks.h), and blocks meet every op.

#include <cassert>
#include <string>

#include "ir/builder.h"
#include "zoo/op_cases.h"

// Rules that keep every gradient away from zero: convolutions and linears before batch_norm have no bias, and
// a normalisation is followed by something nonlinear before the next one.

namespace bakeoff::zoo {
namespace {

using ir::Builder;
using ir::DType;
using ir::kBatch;
using ir::Op;
using ir::Shape;
using ir::ValueId;
using tensor::Rng;
using Ints = std::vector<int64_t>;

class Network {
 public:
  Network(const std::string& kind, Rng& rng) : b_("net_" + kind), rng_(rng) {}

  ir::Workload picture();
  ir::Workload sequence();
  ir::Workload vector();

 private:
  std::string layer(const std::string& kind) { return path_ + kind + std::to_string(++layers_); }
  // `block` of x, or as a list of two or three that are drawn alike, each of which takes what the one before gives.
  template <typename Block>
  ValueId repeated(ValueId x, Block block);
  int64_t axis(ValueId x, size_t i) const { return b_.shape(x)[i]; }
  ValueId nonlinear(ValueId x);
  // Any op of ir/elementwise.h, so that a gradient passes; the shape stays.
  ValueId elementwise(ValueId x);
  // A change along an axis that keeps the shape: any op over axes.
  ValueId along_axes(ValueId x);
  ValueId by_largest(ValueId x, int64_t axis);
  // A 3x3 convolution that keeps H and W, batch_norm behind it or a bias, and a nonlinearity.
  ValueId conv_block(ValueId x, int64_t channels);
  ValueId shrink(ValueId x);
  ValueId branches(ValueId x);
  ValueId gate(ValueId x);
  ValueId residual(ValueId x);
  ValueId volume(ValueId x);
  ValueId grow(ValueId x);
  ValueId resized(ValueId x);
  ValueId picture_block(ValueId x);
  // `last` < 0: nothing is padded.
  ValueId self_attention(ValueId x, ValueId last);
  ValueId sequence_block(ValueId x, ValueId last);
  ValueId vector_block(ValueId x);
  ir::Workload classify(ValueId x, ValueId y, int64_t classes);

  Builder b_;
  Rng& rng_;
  std::string path_;  // "blocks1.0."
  int layers_ = 0;
};

template <typename Block>
ValueId Network::repeated(ValueId x, Block block) {
  if (rng_.chance(0.4)) return block(x);
  const std::string list = layer("blocks");
  const int64_t count = rng_.integer(2, 3);
  const int layers = layers_;
  const Rng drawn = rng_;
  for (int64_t i = 0; i < count; ++i) {
    rng_ = drawn;
    path_ = list + "." + std::to_string(i) + ".";
    layers_ = 0;
    x = block(x);
  }
  path_.clear();
  layers_ = layers;
  return x;
}

ValueId Network::nonlinear(ValueId x) {
  switch (rng_.integer(0, 3)) {
    case 0:
      return b_.apply(Op::kGelu, {x}, {{"form", std::string(rng_.chance(0.5) ? "erf" : "tanh")}});
    case 1:
      return b_.apply(rng_.chance(0.5) ? Op::kTanh : Op::kSigmoid, {x});
    default:
      return b_.relu(x);
  }
}

ValueId Network::elementwise(ValueId x) {
  const auto& rows = ir::elementwise_ops();
  const ir::Elementwise& row =
      rows[static_cast<size_t>(rng_.integer(0, static_cast<int64_t>(rows.size()) - 1))];
  if (row.domain == ir::Domain::kPositive) x = positive(b_, x);
  std::vector<ValueId> inputs = {x};
  if (row.inputs == 2) {
    Shape sizes(b_.shape(x).size(), 1);
    sizes[1] = axis(x, 1);
    const bool trained = row.kind == ir::ElementKind::kReal && rng_.chance(0.5) && row.op != Op::kMaximum &&
                         row.op != Op::kMinimum;
    inputs.push_back(trained ? b_.apply(Op::kSigmoid, {b_.parameter_value(layer("scale"), sizes)})
                             : b_.constant(0.375));
  }
  if (row.kind == ir::ElementKind::kLogic) {
    for (ValueId& input : inputs) input = b_.apply(Op::kLess, {input, x});
  }
  const ValueId y = b_.apply(row.op, inputs, random_reals(row, rng_));
  if (row.kind == ir::ElementKind::kReal) return row.slope == nullptr ? after_step(b_, x, y) : y;
  return b_.apply(Op::kWhere, {y, x, b_.apply(Op::kMul, {x, b_.constant(0.5)})});
}

// A number for each place of the largest element, or sums of rows that have it in the same place; equal ones are told
// apart first.
ValueId Network::by_largest(ValueId x, int64_t at) {
  Shape along(b_.shape(x).size(), 1), thin = b_.shape(x);
  const int64_t size = along[static_cast<size_t>(at)] = thin[static_cast<size_t>(at)];
  thin[static_cast<size_t>(at)] = 1;
  const std::string name = layer("order");
  const ValueId apart = b_.apply(Op::kAdd, {x, b_.parameter_value(name, along)});
  b_.freeze(name);
  const ValueId places = b_.apply(Op::kArgmax, {apart}, {{"axis", at}});
  if (at > 1 && at + 1 == static_cast<int64_t>(thin.size())) {
    const ValueId sums = b_.apply(Op::kScatterAdd, {x, places}, {{"axis", at - 1}, {"size", size}});
    return b_.apply(Op::kTanh, {b_.apply(Op::kGather, {sums, places}, {{"axis", at - 1}})});
  }
  const ValueId row = b_.embedding(places, layer("table"), size, 1);
  return b_.apply(Op::kAdd, {x, b_.apply(Op::kReshape, {row}, {{"shape", thin}})});
}

ValueId Network::along_axes(ValueId x) {
  const auto rank = static_cast<int64_t>(b_.shape(x).size());
  const int64_t at = rng_.integer(1, rank - 1), size = axis(x, static_cast<size_t>(at));
  constexpr Op kReductions[] = {Op::kSum, Op::kMean, Op::kMax, Op::kMin, Op::kLogsumexp};
  switch (rng_.integer(0, 8)) {
    case 8: {
      const ValueId thin =
          b_.apply(Op::kProd, {b_.apply(Op::kTanh, {x})}, {{"axis", at}, {"keepdims", true}});
      return b_.apply(Op::kAdd, {x, thin});
    }
    case 7:
      return by_largest(x, at);
    case 6: {  // some of the places, some of them twice
      const std::string name = layer("places");
      const ValueId raw = b_.parameter_value(name, {size});
      b_.freeze(name);
      const ValueId wide = b_.apply(Op::kMul, {raw, b_.constant(static_cast<double>(size))});
      const ValueId in =
          b_.apply(Op::kClip, {wide}, {{"least", 0.0}, {"most", static_cast<double>(size - 1)}});
      const ValueId taken =
          b_.apply(Op::kTake, {x, b_.apply(Op::kCast, {b_.apply(Op::kStopGradient, {in})})}, {{"axis", at}});
      return b_.apply(Op::kAdd, {x, taken});
    }
    case 0:
      return b_.apply(Op::kFlip, {x}, {{"axes", Ints{at}}});
    case 1:
      return b_.apply(Op::kMul, {b_.apply(Op::kCumsum, {x}, {{"axis", at}}), b_.constant(0.5)});
    case 2:
      if (size > 1) return b_.apply(Op::kLogSoftmax, {b_.apply(Op::kTanh, {x})}, {{"axis", at}});
      return x;
    case 3: {  // the second half before the first
      if (size < 2) return x;
      const auto part = [&](int64_t begin, int64_t end) {
        return b_.apply(Op::kSlice, {x}, {{"axis", at}, {"begin", begin}, {"end", end}});
      };
      const ValueId back = part(size / 2, size), front = part(0, size / 2);
      return b_.apply(Op::kConcat, {back, front}, {{"axis", at}});
    }
    case 4: {
      const Op op = kReductions[rng_.integer(0, 4)];
      const ValueId thin = b_.apply(op, {x}, {{"axes", Ints{at}}, {"keepdims", true}});
      const ValueId wide = b_.apply(Op::kExpand, {b_.apply(Op::kTanh, {thin}), x}, {{"shape", b_.shape(x)}});
      return b_.apply(Op::kAdd, {x, wide});
    }
    default: {
      if (rank < 3) return x;
      Ints swapped(static_cast<size_t>(rank));
      for (int64_t i = 0; i < rank; ++i) swapped[static_cast<size_t>(i)] = i;
      std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
      const ValueId turned = b_.apply(Op::kTranspose, {x}, {{"perm", swapped}});
      const ValueId all = b_.apply(Op::kTanh, {b_.apply(Op::kMatmul, {x, turned})});
      return b_.apply(Op::kMatmul, {all, x});
    }
  }
}

ValueId Network::conv_block(ValueId x, int64_t channels) {
  const bool norm = rng_.chance(0.5);
  ValueId h = b_.conv(x, layer("conv"), {.channels = channels, .pad = {1, 1, 1, 1}, .bias = !norm});
  if (norm && rng_.chance(0.2))
    return nonlinear(b_.group_norm(h, layer("gn"), channels % 2 == 0 ? 2 : 1, 0.1));
  if (norm) h = b_.batch_norm(h, layer("bn"), 1e-3, 0.2);
  return nonlinear(h);
}

ValueId Network::grow(ValueId x) {
  const Ints stride = {1, rng_.integer(1, 2)};
  return nonlinear(b_.conv_transpose(x, layer("up"),
                                     {.channels = rng_.integer(1, 3),
                                      .kernel = {2, 3},
                                      .stride = stride,
                                      .pad = {1, 0, 0, 1},
                                      .output_pad = {0, stride[1] - 1}}));
}

ValueId Network::resized(ValueId x) {
  const bool linear = rng_.chance(0.5), twice = rng_.chance(0.5);
  const Ints size =
      twice ? Ints{2 * axis(x, 2), 2 * axis(x, 3)} : Ints{rng_.integer(4, 7), rng_.integer(4, 7)};
  const std::string coordinates[] = {"half_pixel", "asymmetric", "align_corners"};
  return b_.apply(Op::kResize, {x},
                  {{"size", size},
                   {"mode", std::string(linear ? "linear" : "nearest")},
                   {"coordinates", coordinates[rng_.integer(0, linear ? 2 : 1)]}});
}

ValueId Network::shrink(ValueId x) {
  if (axis(x, 2) < 4 || axis(x, 3) < 4) return x;
  const Ints kernel = {2, rng_.integer(2, 3)};
  const Ints stride = {2, rng_.integer(1, 2)};
  const Ints pad = {0, rng_.integer(0, 1), rng_.integer(0, 1), 0};
  switch (rng_.integer(0, 2)) {
    case 0:
      return b_.apply(Op::kMaxPool2d, {x}, {{"kernel", kernel}, {"stride", stride}, {"pad", pad}});
    case 1:
      return b_.apply(
          Op::kAvgPool2d, {x},
          {{"kernel", kernel}, {"stride", stride}, {"pad", pad}, {"count_include_pad", rng_.chance(0.5)}});
    default:
      return b_.conv(
          x, layer("down"),
          {.channels = axis(x, 1), .kernel = kernel, .stride = stride, .pad = pad, .groups = axis(x, 1)});
  }
}

ValueId Network::branches(ValueId x) {
  const ValueId left = conv_block(x, rng_.integer(1, 4));
  const ValueId right = b_.conv(x, layer("conv"), {.channels = rng_.integer(1, 4), .kernel = {1, 1}});
  return b_.apply(Op::kConcat, {left, b_.apply(Op::kTanh, {right}), x}, {{"axis", int64_t{1}}});
}

// x times a weight for each channel, place or element.
ValueId Network::gate(ValueId x) {
  const int64_t channels = rng_.chance(0.5) ? 1 : axis(x, 1);
  const bool sigmoid = channels == 1 || rng_.chance(0.5);
  ValueId g = b_.conv(x, layer("gate"), {.channels = channels, .kernel = {1, 1}, .bias = sigmoid});
  g = sigmoid ? b_.apply(Op::kSigmoid, {g}) : b_.apply(Op::kSoftmax, {g}, {{"axis", int64_t{1}}});
  return b_.apply(Op::kMul, {x, g});
}

ValueId Network::residual(ValueId x) {
  ValueId h = conv_block(x, axis(x, 1) + 1);
  h = b_.batch_norm(b_.conv(h, layer("conv"), {.channels = axis(x, 1), .pad = {1, 1, 1, 1}, .bias = false}),
                    layer("bn"));
  return nonlinear(b_.apply(Op::kAdd, {h, x}));
}

// The channels of a picture as the depth of a volume.
ValueId Network::volume(ValueId x) {
  const ir::Shape shape = b_.shape(x);
  const Ints kernel = {std::min<int64_t>(shape[1], 2), 1, std::min<int64_t>(shape[3], 2)}, stride = {1, 1, 2};
  ValueId h = b_.apply(Op::kReshape, {x}, {{"shape", Ints{kBatch, 1, shape[1], shape[2], shape[3]}}});
  h = b_.conv(h, layer("conv"), {.channels = 2, .kernel = {3, 1, 3}, .pad = {1, 1, 0, 0, 0, 2}});
  h = b_.apply(rng_.chance(0.5) ? Op::kMaxPool3d : Op::kAvgPool3d, {nonlinear(h)},
               {{"kernel", kernel}, {"stride", stride}});
  if (rng_.chance(0.5))
    h = b_.conv_transpose(h, layer("up"),
                          {.channels = 1, .kernel = {1, 2, 2}, .stride = {1, 1, 2}, .groups = 1});
  const ir::Shape out = b_.shape(h);
  return b_.apply(Op::kReshape, {h}, {{"shape", Ints{kBatch, out[1] * out[2], out[3], out[4]}}});
}

ValueId Network::picture_block(ValueId x) {
  switch (rng_.integer(0, 15)) {
    case 15:
      return resized(x);
    case 14:
      return repeated(x, [this](ValueId v) { return conv_block(v, rng_.integer(2, 6)); });
    case 13:
      return repeated(x, [this](ValueId v) { return residual(v); });
    case 12:
      return grow(x);
    case 11:
      return volume(x);
    case 8:
      return elementwise(x);
    case 9:
    case 10:
      return along_axes(x);
    case 0:
      return conv_block(x, rng_.integer(2, 6));
    case 1:
      return residual(x);
    case 2:
      return branches(x);
    case 3:
      return gate(x);
    case 4:
      return nonlinear(b_.conv(b_.apply(Op::kPad, {x}, {{"pad", Ints{0, 0, 1, 0, 0, 2}}, {"value", 0.5}}),
                               layer("conv"), {.channels = 3, .kernel = {2, 3}}));
    case 5:
      return b_.apply(Op::kTranspose, {x}, {{"perm", Ints{0, 1, 3, 2}}});
    case 6:
      return b_.apply(Op::kLrn, {x}, {{"size", rng_.integer(2, 5)}, {"alpha", 0.1}});
    default:
      return shrink(x);
  }
}

ir::Workload Network::classify(ValueId x, ValueId y, int64_t classes) {
  if (b_.shape(x).size() > 2) x = b_.apply(Op::kFlatten, {x});
  const ValueId logits = b_.named(b_.linear(x, "head", classes), "logits");
  Result<ir::Workload> workload = b_.finish(b_.softmax_cross_entropy(logits, y));
  assert(workload && "the generator made an invalid workload");
  return std::move(workload).value();
}

ir::Workload Network::picture() {
  const ValueId x =
      b_.input("x", {DType::kF32, {kBatch, rng_.integer(1, 3), rng_.integer(5, 9), rng_.integer(5, 9)}});
  const ValueId y = b_.input("y", {DType::kI32, {kBatch}});
  ValueId h = conv_block(x, rng_.integer(2, 4));
  for (int64_t left = rng_.integer(2, 4); left > 0; --left) h = picture_block(h);
  h = shrink(conv_block(h, rng_.integer(3, 5)));
  if (rng_.chance(0.4)) return classify(b_.apply(Op::kGlobalAvgPool2d, {h}), y, 5);
  if (rng_.chance(0.3)) {  // the picture as a sequence of places
    const Ints places = {kBatch, axis(h, 1), axis(h, 2) * axis(h, 3)};
    h = b_.apply(Op::kTranspose, {b_.apply(Op::kReshape, {h}, {{"shape", places}})},
                 {{"perm", Ints{0, 2, 1}}});
    h = nonlinear(b_.linear(b_.layer_norm(h, layer("ln")), layer("fc"), 3));
  }
  return classify(h, y, 5);
}

ValueId Network::self_attention(ValueId x, ValueId last) {
  const int64_t heads = rng_.integer(1, 2), size = rng_.integer(1, 3);
  const auto project = [&](const char* name, bool bias) {
    const ValueId h = b_.linear(x, layer(name), heads * size, bias);
    return b_.apply(Op::kReshape, {h}, {{"shape", Ints{kBatch, axis(x, 1), heads, size}}});
  };
  const ValueId q = project("query", true), k = project("key", false), v = project("value", true);
  std::vector<ValueId> inputs = {q, k, v};
  if (last >= 0) inputs.push_back(last);
  const ValueId h = b_.apply(Op::kAttention, inputs, {{"causal", rng_.chance(0.5)}});
  return b_.apply(Op::kReshape, {h}, {{"shape", Ints{kBatch, axis(x, 1), heads * size}}});
}

ValueId Network::sequence_block(ValueId x, ValueId last) {
  const int64_t width = axis(x, 2);
  if (rng_.chance(0.25)) {
    const bool bias = rng_.chance(0.7), reverse = rng_.chance(0.4);
    return rng_.chance(0.5) ? b_.lstm(x, layer("lstm"), width + 1, bias, reverse)
                            : b_.gru(x, layer("gru"), width + 1, bias, reverse);
  }
  const bool rms = rng_.chance(0.3);
  const int64_t dims = rng_.integer(1, 2);
  const ValueId normed = rms ? b_.rms_norm(x, layer("rms"), dims, 1e-3)
                             : b_.layer_norm(x, layer("ln"), dims, 1e-3, {true, rng_.chance(0.7)});
  ValueId h = normed;
  if (rng_.chance(0.4)) {
    h = b_.linear(self_attention(h, last), layer("out"), width);
  } else if (rng_.chance(0.5)) {  // mixes places instead of features
    h = b_.apply(Op::kTranspose, {h}, {{"perm", Ints{0, 2, 1}}});
    if (rng_.chance(0.5)) {
      h = nonlinear(b_.linear(h, layer("mix"), axis(x, 1)));
    } else {
      h = b_.conv(h, layer("conv"), {.channels = width, .kernel = {3}, .pad = {1, 1}, .bias = false});
      h = nonlinear(b_.batch_norm(h, layer("bn")));
      if (rng_.chance(0.3))
        h = b_.conv_transpose(h, layer("conv"), {.channels = width, .kernel = {3}, .pad = {1, 1}});
      h = b_.apply(rng_.chance(0.5) ? Op::kMaxPool1d : Op::kAvgPool1d, {h},
                   {{"kernel", Ints{3}}, {"stride", Ints{1}}, {"pad", Ints{1, 1}}});
    }
    h = b_.apply(Op::kTranspose, {h}, {{"perm", Ints{0, 2, 1}}});
  } else {
    h = b_.linear(nonlinear(b_.linear(h, layer("up"), width + 2)), layer("down"), width);
  }
  h = b_.apply(Op::kDropout, {h}, {{"rate", 0.1}});
  return b_.apply(Op::kAdd, {x, h});
}

ir::Workload Network::sequence() {
  const int64_t length = rng_.integer(3, 6);
  const ValueId ids = b_.input("ids", {DType::kI32, {kBatch, length}});
  const ValueId last = rng_.chance(0.5) ? b_.input("last", {DType::kI32, {kBatch}}) : -1;
  const bool ctc = rng_.chance(0.15);
  const ValueId y = b_.input("y", {DType::kI32, ctc ? Shape{kBatch, 3} : Shape{kBatch}});
  ValueId h = b_.embedding(ids, "tokens", rng_.integer(5, 9), rng_.integer(3, 6));
  if (rng_.chance(0.5)) h = b_.position_embedding(h, "positions", length + 1);
  if (last >= 0) h = b_.apply(Op::kAdd, {h, b_.linear(self_attention(h, last), layer("out"), axis(h, 2))});
  for (int64_t left = rng_.integer(1, 3); left > 0; --left)
    h = repeated(h, [&](ValueId v) { return sequence_block(v, last); });
  h = b_.layer_norm(h, layer("ln"));
  if (!ctc) return classify(h, y, 4);
  Result<ir::Workload> workload = b_.finish(b_.apply(Op::kCtc, {b_.linear(h, "head", 4), y}));
  assert(workload && "the generator made an invalid workload");
  return std::move(workload).value();
}

ValueId Network::vector_block(ValueId x) {
  const int64_t width = rng_.integer(3, 8);
  switch (rng_.integer(0, 6)) {
    case 4:
    case 5:
      return elementwise(x);
    case 6:
      return along_axes(x);
    case 0: {
      const ValueId h = b_.linear(x, layer("fc"), width, /*bias=*/false);
      return b_.apply(Op::kDropout, {nonlinear(b_.batch_norm(h, layer("bn")))}, {{"rate", 0.3}});
    }
    case 1:
      return b_.apply(Op::kJoin, {x, nonlinear(b_.linear(x, layer("fc"), width))});
    case 2:
      return nonlinear(b_.apply(Op::kAdd, {x, b_.linear(x, layer("fc"), axis(x, 1))}));
    default:
      return nonlinear(b_.layer_norm(b_.linear(x, layer("fc"), width), layer("ln")));
  }
}

ir::Workload Network::vector() {
  const ValueId x = b_.input("x", {DType::kF32, {kBatch, rng_.integer(4, 9)}});
  const int64_t outputs = rng_.integer(2, 5);
  const ValueId t = b_.input("t", {DType::kF32, {kBatch, outputs}});
  ValueId h = x;
  for (int64_t left = rng_.integer(2, 4); left > 0; --left)
    h = repeated(h, [&](ValueId v) { return vector_block(v); });
  constexpr Op kLosses[] = {Op::kMse, Op::kMse, Op::kL1, Op::kBceWithLogits};
  const Op loss = kLosses[rng_.integer(0, 3)];
  Result<ir::Workload> workload = b_.finish(b_.apply(loss, {b_.linear(h, "head", outputs), t}));
  assert(workload && "the generator made an invalid workload");
  return std::move(workload).value();
}

}  // namespace

ir::Workload random_network(Rng& rng) {
  const double kind = rng.uniform();
  if (kind < 0.5) return Network("picture", rng).picture();
  if (kind < 0.75) return Network("sequence", rng).sequence();
  return Network("vector", rng).vector();
}

}  // namespace bakeoff::zoo
