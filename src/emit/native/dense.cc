// Convolutions, fully connected layers, tables, matrix products.
//
// Nearly all time is spent in these, in kernels/ that read weights in an order of their own. So the program
// keeps each weight a second time as its products read it (Pack), once for forwards and once for the gradient
// of x, and packs them again after each update. A ReLU behind a layer, its bias, and the ReLU's mask in front
// of the next gradient are done where the kernel writes its tile (Finish), and not in passes over memory of
// their own.
//
// A transposed convolution is the way back of an ordinary one: its result is that one's gradient of x, and
// its own gradient of x is that one's result.

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/native/ops.h"

namespace bakeoff::emit::native {

bool transposed(const Call& c) { return ir::is_conv_transpose(c.node().op); }

std::string shape_of_conv(const Call& c) {
  const ir::Node& node = c.node();
  const ir::Shape &in = (transposed(c) ? c.result() : c.in(0)).sizes,
                  &out = (transposed(c) ? c.in(0) : c.result()).sizes;
  const size_t axes = node.integers("stride").size(), first = 3 - axes;
  std::vector<std::string> fields;
  const auto add = [&](const std::string& name, int64_t value, int64_t otherwise = 1) {
    if (value != otherwise) fields.push_back(fmt::format(".{} = {}", name, value));
  };
  const char *const names[] = {"d", "h", "w"}, *const taps[] = {"q", "r", "s"},
                    *const before[] = {"front", "top", "left"};
  const auto along = [&](const std::string& head, const std::vector<int64_t>& values, size_t from) {
    for (size_t i = 0; i < axes; ++i) add(head + names[first + i], values[from + i]);
  };
  along("", in, 1);
  add("c", in.back());
  along("o", out, 1);
  add("k", out.back());
  for (size_t i = 0; i < axes; ++i) add(taps[first + i], c.shape_of_w("weight")[i + 2]);
  along("stride_", node.integers("stride"), 0);
  for (size_t i = 0; i < axes; ++i) add(before[first + i], node.integers("pad")[2 * i], 0);
  along("dilation_", node.integers("dilation"), 0);
  add("groups", node.integer("groups"));
  return fmt::format("{}{{{}}}", axes == 3 ? "Volume" : "native::Conv", join(fields, ", "));
}

namespace {

using ir::Op;

Count pixels(const Value& v) { return count_of(v.sizes, 0, v.sizes.size() - 1); }

// Transposed, all is the other way round: forwards reads the weights as the gradient of x does.
std::pair<Pack, Pack> conv_packs(const Call& c) {
  const std::string shape = shape_of_conv(c);
  const auto pack = [&](const char* name) {
    return Pack{{},
                fmt::format("native::{}ed<Real, {}>()", name, shape),
                fmt::format("native::{}<Real, {}>({}, $$);", name, shape, c.w("weight"))};
  };
  std::pair<Pack, Pack> packs = {pack("conv2d_pack"), pack("conv2d_dx_pack")};
  if (transposed(c)) std::swap(packs.first, packs.second);
  return packs;
}

// "native::kBias | native::kRelu" and "{.bias = b}".
struct Finish {
  std::string flags, beside;
};
Finish forward_finish(const Call& c) {
  std::vector<std::string> flags;
  if (c.w("bias") != "nullptr") flags.emplace_back("native::kBias");
  if (c.step.relu) flags.emplace_back("native::kRelu");
  return {flags.empty() ? "native::kPlain" : join(flags, " | "),
          c.w("bias") != "nullptr" ? fmt::format("{{.bias = {}}}", c.w("bias")) : "{}"};
}
Finish backward_finish(const Call& c) {
  if (c.step.masks) return {"native::kMask", fmt::format("{{.mask = {}}}", c.x())};
  return {c.begins(0) ? "native::kPlain" : "native::kAdd", "{}"};
}

void conv(const Call& c) {
  const Finish finish = forward_finish(c);
  call(c, transposed(c) ? "conv2d_dx" : "conv2d", {shape_of_conv(c), finish.flags},
       {"rows", c.x(), c.step.packed, finish.beside, c.y()});
}

// The gradient behind a ReLU, where no reader has masked it.
void mask(const Call& c) {
  if (!c.step.relu || c.step.masked) return;
  loops(c, c.result().sizes, {{.strides = strides_of(c.result().sizes)}},
        {fmt::format("{0}[@0] = {1}[@0] > 0 ? {0}[@0] : Real{{0}};", c.g(), c.y())});
}

void bias_backward(const Call& c, const Count& rows, int64_t width) {
  if (c.trains("bias")) call(c, "column_sums", {std::to_string(width)}, {rows.text(), c.g(), c.dw("bias")});
}

void conv_backward(const Call& c) {
  mask(c);
  bias_backward(c, pixels(c.result()), c.result().sizes.back());
  const std::string x = transposed(c) ? c.g() : c.x(), g = transposed(c) ? c.x() : c.g();
  if (c.trains("weight")) call(c, "conv2d_dw", {shape_of_conv(c)}, {"rows", x, g, c.dw("weight")});
  if (!c.wants(0)) return;
  const Finish finish = backward_finish(c);
  call(c, transposed(c) ? "conv2d" : "conv2d_dx", {shape_of_conv(c), finish.flags},
       {"rows", c.g(), c.step.turned, finish.beside, c.dx()});
}

// Weights are held I,O; one that a table shares is O,I, and then everything is turned.
struct Linear {
  bool turned;
  Count rows;
  int64_t in, out;

  explicit Linear(const Call& c)
      : turned(c.graph.layout.params[static_cast<size_t>(c.node().param("weight"))].identity()),
        rows(pixels(c.in(0))),
        in(c.in(0).sizes.back()),
        out(c.result().sizes.back()) {}
  std::vector<std::string> arguments(const std::vector<std::string>& pointers, bool back = false) const {
    std::vector<std::string> all = {rows.text(), std::to_string(back ? out : in),
                                    std::to_string(back ? in : out)};
    all.insert(all.end(), pointers.begin(), pointers.end());
    return all;
  }
};

std::pair<Pack, Pack> linear_packs(const Call& c) {
  const Linear l(c);
  const auto pack = [&](bool back) {
    const int64_t from = back ? l.out : l.in, to = back ? l.in : l.out;
    const bool across = back != l.turned;  // the weights lie the other way round
    return Pack{{},
                fmt::format("native::packed_size<Real>({}, {})", from, to),
                fmt::format("native::linear{}_pack<Real>({}, {}, {}, $$);", across ? "_dx" : "",
                            across ? to : from, across ? from : to, c.w("weight"))};
  };
  return {pack(false), pack(true)};
}

void linear(const Call& c) {
  const Finish finish = forward_finish(c);
  invoke(c, "linear", Linear(c).arguments({c.x(), c.step.packed, finish.beside, c.y(), finish.flags}));
}

void linear_backward(const Call& c) {
  const Linear l(c);
  mask(c);
  bias_backward(c, l.rows, l.out);
  if (c.trains("weight"))
    invoke(c, "linear_dw",
           l.turned ? l.arguments({c.g(), c.x(), c.dw("weight")}, true)
                    : l.arguments({c.x(), c.g(), c.dw("weight")}));
  if (!c.wants(0)) return;
  const Finish finish = backward_finish(c);
  invoke(c, "linear", l.arguments({c.g(), c.step.turned, finish.beside, c.dx(), finish.flags}, true));
}

void embedding(const Call& c) {
  call(c, "embedding", {std::to_string(c.shape_of_w("weight")[1])},
       {count_of(c.in(0).sizes).text(), c.x(), c.w("weight"), c.y()});
}
void embedding_backward(const Call& c) {
  if (!c.trains("weight")) return;
  call(c, "embedding_dw", {std::to_string(c.shape_of_w("weight")[1])},
       {count_of(c.in(0).sizes).text(), c.x(), std::to_string(ir::padding_idx(c.node()).value_or(-1)), c.g(),
        c.dw("weight")});
}

// A matrix product for every place of the axes before the last two. `a` and `b`: operands with their matrices' strides of
// rows and columns, `y` where the product is added.
struct Factor {
  std::string pointer;
  const ir::Shape& sizes;
  bool turned = false;
};
void products(const Call& c, const Factor& a, const Factor& b, const Factor& y) {
  const auto size = [](const ir::Shape& sizes, size_t from_end) {
    return count_of(sizes, sizes.size() - from_end, sizes.size() - from_end + 1).text();
  };
  const auto matrix = [](const Factor& f, const char* at) {
    const std::string width = std::to_string(f.sizes.back());
    return fmt::format("{{{} + {}, {}}}", f.pointer, at, f.turned ? "1, " + width : width + ", 1");
  };
  ir::Shape outer(c.result().sizes.begin(), c.result().sizes.end() - 2);
  std::vector<Operand> operands;
  for (const Factor* f : {&a, &b, &y}) {
    Operand operand = broadcast(f->sizes, c.result().sizes);
    operand.strides.resize(outer.size());
    operands.push_back(operand);
  }
  const std::string inner = size(a.sizes, a.turned ? 2 : 1);
  loops(c, outer, operands,
        {fmt::format("product({}, {}, {}, {}, {}, {} + @2, {});", size(y.sizes, 2), inner, size(y.sizes, 1),
                     matrix(a, "@0"), matrix(b, "@1"), y.pointer, size(y.sizes, 1))});
}

void matmul(const Call& c) {
  fill(c.out, c.y(), count_of(c.result().sizes));
  products(c, {c.x(0), c.in(0).sizes}, {c.x(1), c.in(1).sizes}, {c.y(), c.result().sizes});
}
void matmul_backward(const Call& c) {
  const Factor g = {c.g(), c.result().sizes};
  if (c.wants(0)) products(c, g, {c.x(1), c.in(1).sizes, true}, {c.dx(0), c.in(0).sizes});
  if (c.wants(1)) products(c, {c.x(0), c.in(0).sizes, true}, g, {c.dx(1), c.in(1).sizes});
}

}  // namespace

OpRows dense_rows() {
  const auto first = [](const Call&, size_t i) { return i == 0; };
  const OpRow convolution = {conv, conv_backward, true, false, nullptr, nullptr, conv_packs, first};
  return {{Op::kConv1d, convolution},
          {Op::kConv2d, convolution},
          {Op::kConvTranspose1d, convolution},
          {Op::kConvTranspose2d, convolution},
          {Op::kLinear, {linear, linear_backward, true, false, nullptr, nullptr, linear_packs, first}},
          {Op::kEmbedding, {embedding, embedding_backward, true, false}},
          {Op::kMatmul, {matmul, matmul_backward, true, false}}};
}

}  // namespace bakeoff::emit::native
