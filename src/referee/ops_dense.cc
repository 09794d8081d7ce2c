// A convolution here is a product of matrices whose second factor is never made: the address of element (k,
// p) of the matrix of windows is taps[k] + places[p], so gemm reads the padded picture through two tables of
// offsets. One code thus serves one to three axes, strides, dilations and groups, and the gradients are the
// same product with the tables exchanged. Sums are in float64 and in a fixed order whatever the number of
// threads: partial weight gradients of kBatchPieces pieces of the batch are added in the order of the pieces.

#include <cassert>
#include <limits>

#include "referee/gemm.h"
#include "referee/ops.h"
#include "referee/parallel.h"

namespace bakeoff::referee {
namespace {

using Offsets = std::vector<int64_t>;

constexpr int64_t kBatchPieces = 16;  // partial weight gradients of a convolution
constexpr int64_t kRowGrain = 64;     // rows of a product that one piece computes

// out += addend, elementwise.
void accumulate(double* out, const double* addend, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] += addend[i];
}

// Numbers of depth, height, width; those of axes that a picture lacks are `missing`.
struct Three {
  int64_t d, h, w;
  int64_t product() const { return d * h * w; }
};
Three three(const std::vector<int64_t>& numbers, int64_t missing) {
  const size_t n = numbers.size();
  return {n > 2 ? numbers[n - 3] : missing, n > 1 ? numbers[n - 2] : missing, numbers[n - 1]};
}
Three places_of(const Shape& shape) { return three(Shape(shape.begin() + 2, shape.end()), 1); }

// Sizes and address tables of a convolution over one to three axes. The windows form a matrix of (channel,
// place in the kernel) by (place in the output) whose element lies at taps[k] + places[p] of a group's padded
// channels.
struct Conv {
  int64_t batch, channels, outputs, groups, places_count, tap_count;
  Three size{}, before{}, padded_size{};
  bool padded;
  Offsets taps, places, tap_rows, place_rows, ones_taps, ones_places;

  // `image`: of the larger picture, `out`: of the windows' places, which transposed convolutions read.
  Conv(const NodeContext& c, const Shape& image, const Shape& out);
  int64_t group_channels() const { return channels / groups; }
  int64_t group_outputs() const { return outputs / groups; }
  int64_t image() const { return channels * size.product(); }
  int64_t padded_plane() const { return padded_size.product(); }
  int64_t padded_image() const { return channels * padded_plane(); }
  int64_t output_image() const { return outputs * places_count; }
  int64_t operations() const { return batch * output_image() * tap_count; }
  // Where the place d, h, w lies in a padded channel.
  int64_t address(int64_t d, int64_t h, int64_t w) const {
    return (d * padded_size.h + h) * padded_size.w + w;
  }
  // visit(row of the picture, row of the padded picture): first elements of every row of all channels.
  template <typename Visit>
  void each_row(const Visit& visit) const {
    int64_t row = 0;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t d = 0; d < size.d; ++d) {
        for (int64_t h = 0; h < size.h; ++h) {
          visit(row, c * padded_plane() + address(d + before.d, h + before.h, before.w));
          row += size.w;
        }
      }
    }
  }
};

Conv::Conv(const NodeContext& c, const Shape& x, const Shape& y) {
  const Shape& w = c.param("weight")->shape;
  const Three stride = three(c.node.integers("stride"), 1), dilation = three(c.node.integers("dilation"), 1);
  const auto& pad = c.node.integers("pad");
  std::vector<int64_t> befores, afters;
  for (size_t i = 0; i < pad.size(); i += 2) {
    befores.push_back(pad[i]);
    afters.push_back(pad[i + 1]);
  }
  const Three after = three(afters, 0), kernel = places_of(w), out = places_of(y);
  batch = x[0];
  channels = x[1];
  size = places_of(x);
  before = three(befores, 0);
  outputs = w[0];
  groups = c.node.integer("groups");
  padded_size = {size.d + before.d + after.d, size.h + before.h + after.h, size.w + before.w + after.w};
  padded = padded_plane() != size.product();
  for (int64_t i = 0; i < w[1]; ++i) {
    for (int64_t d = 0; d < kernel.d; ++d) {
      for (int64_t h = 0; h < kernel.h; ++h) {
        for (int64_t v = 0; v < kernel.w; ++v)
          taps.push_back(i * padded_plane() + address(d * dilation.d, h * dilation.h, v * dilation.w));
      }
    }
  }
  for (int64_t d = 0; d < out.d; ++d) {
    for (int64_t h = 0; h < out.h; ++h) {
      for (int64_t v = 0; v < out.w; ++v) places.push_back(address(d * stride.d, h * stride.h, v * stride.w));
    }
  }
  tap_count = static_cast<int64_t>(taps.size());
  places_count = static_cast<int64_t>(places.size());
  tap_rows = strided(group_outputs(), tap_count);       // rows of a group's weights
  place_rows = strided(group_outputs(), places_count);  // rows of a group's output
  ones_taps = strided(tap_count, 1);
  ones_places = strided(places_count, 1);
}

Conv forward_conv(const NodeContext& c) { return {c, c.input(0).shape, c.shape}; }
// The convolution whose input's gradient a transposed one is.
Conv backward_conv(const NodeContext& c) { return {c, c.shape, c.input(0).shape}; }

// The image with zeros around it, in `buffer`; the image itself where there is no padding.
const double* with_padding(const Conv& conv, const double* image, std::vector<double>& buffer) {
  if (!conv.padded) return image;
  buffer.assign(static_cast<size_t>(conv.padded_image()), 0.0);
  conv.each_row([&](int64_t row, int64_t padded_row) {
    std::copy(image + row, image + row + conv.size.w, buffer.data() + padded_row);
  });
  return buffer.data();
}

// image += the inside of the padded gradient.
void add_without_padding(const Conv& conv, const std::vector<double>& buffer, double* image) {
  conv.each_row([&](int64_t row, int64_t padded_row) {
    accumulate(image + row, buffer.data() + padded_row, conv.size.w);
  });
}

// out += W windows, one image.
void conv_products(const Conv& conv, const double* w, const double* image, double* out) {
  for (int64_t g = 0; g < conv.groups; ++g) {
    const int64_t first = g * conv.group_outputs();
    gemm(conv.group_outputs(), conv.places_count, conv.tap_count,
         {w + first * conv.tap_count, conv.tap_rows.data(), conv.ones_taps.data()},
         {image + g * conv.group_channels() * conv.padded_plane(), conv.taps.data(), conv.places.data()},
         {out + first * conv.places_count, conv.place_rows.data(), conv.ones_places.data()});
  }
}

AnyTensor convolution(const NodeContext& c) {
  const Conv conv = forward_conv(c);
  const Tensor& x = c.input(0);
  const double* const w = c.param("weight")->data.data();
  const Tensor* const bias = c.param("bias");
  Tensor y = c.make();
  const int threads = threads_for(conv.operations(), c.options.threads);
  for_each_range(conv.batch, 4, threads, [&](int64_t begin, int64_t end) {
    std::vector<double> buffer;
    for (int64_t n = begin; n < end; ++n) {
      const double* const image = with_padding(conv, x.data.data() + n * conv.image(), buffer);
      double* const out = y.data.data() + n * conv.output_image();
      for (int64_t o = 0; bias != nullptr && o < conv.outputs; ++o) {
        std::fill_n(out + o * conv.places_count, conv.places_count, bias->data[static_cast<size_t>(o)]);
      }
      conv_products(conv, w, image, out);
    }
  });
  return y;
}

// dW += grad windows^T, one image.
void conv_weight_gradient(const Conv& conv, const double* image, const double* grad, double* to) {
  for (int64_t g = 0; g < conv.groups; ++g) {
    const int64_t first = g * conv.group_outputs();
    gemm(conv.group_outputs(), conv.tap_count, conv.places_count,
         {grad + first * conv.places_count, conv.place_rows.data(), conv.ones_places.data()},
         {image + g * conv.group_channels() * conv.padded_plane(), conv.places.data(), conv.taps.data()},
         {to + first * conv.tap_count, conv.tap_rows.data(), conv.ones_taps.data()});
  }
}

// d(padded image) += W^T grad, scattered over the windows.
void conv_input_gradient(const Conv& conv, const double* w, const double* grad, double* to) {
  for (int64_t g = 0; g < conv.groups; ++g) {
    const int64_t first = g * conv.group_outputs();
    gemm(conv.tap_count, conv.places_count, conv.group_outputs(),
         {w + first * conv.tap_count, conv.ones_taps.data(), conv.tap_rows.data()},
         {grad + first * conv.places_count, conv.place_rows.data(), conv.ones_places.data()},
         {to + g * conv.group_channels() * conv.padded_plane(), conv.taps.data(), conv.places.data()});
  }
}

// image += W^T grad, one image.
void add_input_gradient(const Conv& conv, const double* w, const double* grad, std::vector<double>& buffer,
                        double* image) {
  if (!conv.padded) return conv_input_gradient(conv, w, grad, image);
  buffer.assign(static_cast<size_t>(conv.padded_image()), 0.0);
  conv_input_gradient(conv, w, grad, buffer.data());
  add_without_padding(conv, buffer, image);
}

void convolution_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  const Conv conv = forward_conv(c);
  const Tensor& x = c.input(0);
  const Tensor& w = *c.param("weight");
  Tensor* const dx = to.inputs[0];
  Tensor *const dw = to.param(c.node, "weight"), *const db = to.param(c.node, "bias");
  const int64_t weight_count = conv.outputs * conv.tap_count;
  const int64_t grain = (conv.batch + kBatchPieces - 1) / kBatchPieces;
  const int64_t pieces = (conv.batch + grain - 1) / grain;
  std::vector<std::vector<double>> partial(static_cast<size_t>(pieces));
  const int threads = threads_for(conv.operations(), c.options.threads);
  for_each_range(conv.batch, grain, threads, [&](int64_t begin, int64_t end) {
    std::vector<double>& sums = partial[static_cast<size_t>(begin / grain)];  // weights, then biases
    sums.assign(static_cast<size_t>(weight_count + conv.outputs), 0.0);
    std::vector<double> buffer;
    for (int64_t n = begin; n < end; ++n) {
      const double* const g = grad.data.data() + n * conv.output_image();
      if (dw != nullptr)
        conv_weight_gradient(conv, with_padding(conv, x.data.data() + n * conv.image(), buffer), g,
                             sums.data());
      for (int64_t i = 0; db != nullptr && i < conv.output_image(); ++i) {
        sums[static_cast<size_t>(weight_count + i / conv.places_count)] += g[i];
      }
      if (dx != nullptr)
        add_input_gradient(conv, w.data.data(), g, buffer, dx->data.data() + n * conv.image());
    }
  });
  for (const std::vector<double>& sums : partial) {
    if (dw != nullptr) accumulate(dw->data.data(), sums.data(), weight_count);
    if (db != nullptr) accumulate(db->data.data(), sums.data() + weight_count, conv.outputs);
  }
}

AnyTensor transposed_convolution(const NodeContext& c) {
  const Conv conv = backward_conv(c);
  const double* const w = c.param("weight")->data.data();
  const Tensor* const bias = c.param("bias");
  Tensor y = c.make();
  const int threads = threads_for(conv.operations(), c.options.threads);
  for_each_range(conv.batch, 4, threads, [&](int64_t begin, int64_t end) {
    std::vector<double> buffer;
    for (int64_t n = begin; n < end; ++n) {
      double* const image = y.data.data() + n * conv.image();
      for (int64_t i = 0; bias != nullptr && i < conv.image(); ++i)
        image[i] = bias->data[static_cast<size_t>(i / conv.size.product())];
      add_input_gradient(conv, w, c.input(0).data.data() + n * conv.output_image(), buffer, image);
    }
  });
  return y;
}

// With the roles of the input and the output's gradient exchanged, those of a convolution.
void transposed_convolution_backward(const NodeContext& c, const Tensor&, const Tensor& grad,
                                     const Gradients& to) {
  const Conv conv = backward_conv(c);
  const double* const w = c.param("weight")->data.data();
  Tensor *const dw = to.param(c.node, "weight"), *const db = to.param(c.node, "bias");
  std::vector<double> buffer;
  for (int64_t n = 0; n < conv.batch; ++n) {
    const double* const g = grad.data.data() + n * conv.image();
    for (int64_t i = 0; db != nullptr && i < conv.image(); ++i)
      db->data[static_cast<size_t>(i / conv.size.product())] += g[i];
    const double* const padded = with_padding(conv, g, buffer);
    if (dw != nullptr)
      conv_weight_gradient(conv, padded, c.input(0).data.data() + n * conv.output_image(), dw->data.data());
    if (to.inputs[0] != nullptr)
      conv_products(conv, w, padded, to.inputs[0]->data.data() + n * conv.output_image());
  }
}

AnyTensor linear(const NodeContext& c) {
  const Tensor& x = c.input(0);
  const Tensor& w = *c.param("weight");
  const Tensor* const bias = c.param("bias");
  const int64_t outputs = w.shape[0], inputs = w.shape[1];
  const int64_t rows = static_cast<int64_t>(x.data.size()) / inputs;
  const int threads = threads_for(rows * inputs * outputs, c.options.threads);
  Tensor y = c.make();
  const Offsets x_rows = strided(rows, inputs), y_rows = strided(rows, outputs),
                w_rows = strided(outputs, inputs);
  const Offsets ones = strided(std::max(inputs, outputs), 1);
  for_each_range(rows, kRowGrain, threads, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; bias != nullptr && r < end; ++r) {
      std::copy(bias->data.begin(), bias->data.end(), y.data.begin() + r * outputs);
    }
    gemm(end - begin, outputs, inputs, {x.data.data(), x_rows.data() + begin, ones.data()},
         {w.data.data(), ones.data(), w_rows.data()}, {y.data.data(), y_rows.data() + begin, ones.data()});
  });
  return y;
}

void linear_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  const Tensor& x = c.input(0);
  const Tensor& w = *c.param("weight");
  const int64_t outputs = w.shape[0], inputs = w.shape[1];
  const int64_t rows = static_cast<int64_t>(x.data.size()) / inputs;
  const Offsets x_rows = strided(rows, inputs), y_rows = strided(rows, outputs),
                w_rows = strided(outputs, inputs);
  const Offsets ones = strided(std::max(inputs, outputs), 1);
  Tensor* const dw = to.param(c.node, "weight");
  const int threads = threads_for(rows * inputs * outputs, c.options.threads);
  for_each_range(dw == nullptr ? 0 : outputs, kRowGrain, threads, [&](int64_t begin, int64_t end) {
    gemm(end - begin, inputs, rows, {grad.data.data() + begin, ones.data(), y_rows.data()},
         {x.data.data(), x_rows.data(), ones.data()}, {dw->data.data(), w_rows.data() + begin, ones.data()});
  });
  if (Tensor* const db = to.param(c.node, "bias"); db != nullptr) {
    for (int64_t r = 0; r < rows; ++r) accumulate(db->data.data(), grad.data.data() + r * outputs, outputs);
  }
  Tensor* const dx = to.inputs[0];
  if (dx == nullptr) return;
  for_each_range(rows, kRowGrain, threads, [&](int64_t begin, int64_t end) {
    gemm(end - begin, inputs, outputs, {grad.data.data(), y_rows.data() + begin, ones.data()},
         {w.data.data(), w_rows.data(), ones.data()}, {dx->data.data(), x_rows.data() + begin, ones.data()});
  });
}

AnyTensor embedding(const NodeContext& c) {
  const Tensor& table = *c.param("weight");
  const int64_t width = table.shape[1];
  Tensor y = c.make();
  double* to = y.data.data();
  for (const int64_t id : c.integers(0).data) {
    if (id >= 0 && id < table.shape[0])
      to = std::copy_n(table.data.data() + id * width, width, to);
    else  // of computed ids
      to = std::fill_n(to, width, std::numeric_limits<double>::quiet_NaN());
  }
  return y;
}

void embedding_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  Tensor* const table = to.param(c.node, "weight");
  if (table == nullptr) return;
  const int64_t width = table->shape[1], padding = ir::padding_idx(c.node).value_or(-1);
  const double* from = grad.data.data();
  for (const int64_t id : c.integers(0).data) {
    if (id >= 0 && id < table->shape[0] && id != padding)
      accumulate(table->data.data() + id * width, from, width);
    from += width;
  }
}

}  // namespace

std::vector<OpFunctions> dense_ops() {
  return {{ir::Op::kConv1d, convolution, convolution_backward},
          {ir::Op::kConv2d, convolution, convolution_backward},
          {ir::Op::kConv3d, convolution, convolution_backward},
          {ir::Op::kConvTranspose1d, transposed_convolution, transposed_convolution_backward},
          {ir::Op::kConvTranspose2d, transposed_convolution, transposed_convolution_backward},
          {ir::Op::kConvTranspose3d, transposed_convolution, transposed_convolution_backward},
          {ir::Op::kLinear, linear, linear_backward},
          {ir::Op::kEmbedding, embedding, embedding_backward}};
}

}  // namespace bakeoff::referee
