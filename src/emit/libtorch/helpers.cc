// What libtorch programs call (emit/helpers.h), as programs are formatted: 100 columns.
// clang-format off
#include <torch/torch.h>

#include <optional>
#include <vector>

namespace F = torch::nn::functional;
using torch::Tensor;

// The mean over the part of each window that lies inside the picture. `pad` is before, after of
// each axis from the last; torch::avg_pool1d pads evenly only.
Tensor avg_pool1d_uneven(const Tensor& x, torch::IntArrayRef kernel, torch::IntArrayRef stride,
                         torch::IntArrayRef pad) {
  const Tensor ones = torch::ones_like(x.slice(0, 0, 1).slice(1, 0, 1));
  const Tensor inside = torch::avg_pool1d(torch::constant_pad_nd(ones, pad), kernel, stride);
  return torch::avg_pool1d(torch::constant_pad_nd(x, pad), kernel, stride) / inside;
}

// The mean over the part of each window that lies inside the picture. `pad` is before, after of
// each axis from the last; torch::avg_pool2d pads evenly only.
Tensor avg_pool2d_uneven(const Tensor& x, torch::IntArrayRef kernel, torch::IntArrayRef stride,
                         torch::IntArrayRef pad) {
  const Tensor ones = torch::ones_like(x.slice(0, 0, 1).slice(1, 0, 1));
  const Tensor inside = torch::avg_pool2d(torch::constant_pad_nd(ones, pad), kernel, stride);
  return torch::avg_pool2d(torch::constant_pad_nd(x, pad), kernel, stride) / inside;
}

// The mean over the part of each window that lies inside the picture. `pad` is before, after of
// each axis from the last; torch::avg_pool3d pads evenly only.
Tensor avg_pool3d_uneven(const Tensor& x, torch::IntArrayRef kernel, torch::IntArrayRef stride,
                         torch::IntArrayRef pad) {
  const Tensor ones = torch::ones_like(x.slice(0, 0, 1).slice(1, 0, 1));
  const Tensor inside = torch::avg_pool3d(torch::constant_pad_nd(ones, pad), kernel, stride);
  return torch::avg_pool3d(torch::constant_pad_nd(x, pad), kernel, stride) / inside;
}

// x / (k + alpha * s)^beta, where s sums x^2 over `size` channels; torch divides alpha by the size.
Tensor lrn(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  const double scaled = static_cast<double>(size) * alpha;
  return F::local_response_norm(
      x, F::LocalResponseNormFuncOptions(size).alpha(scaled).beta(beta).k(k));
}

// q, k and v are N, tokens, heads, width; torch has the heads before the tokens. Neighbouring
// heads of q share a head of k and v.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const std::optional<Tensor>& mask = {}, bool causal = false,
                 double dropout = 0.0) {
  const Tensor out = torch::scaled_dot_product_attention(
      q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), mask, dropout, causal,
      /*scale=*/{}, /*enable_gqa=*/q.size(2) != k.size(2));
  return out.transpose(1, 2);
}

// True for the last keys up to each position, as many as the window has: L, keys.
Tensor cache_mask(const Tensor& positions, int64_t keys, int64_t window = 0) {
  const Tensor places = torch::arange(keys, positions.options()), own = positions.unsqueeze(1);
  const Tensor seen = places <= own;
  return window > 0 ? seen & (places > own - window) : seen;
}

// k and v join the caches at their positions; then queries see what the mask says.
Tensor cached_attention(const Tensor& q, const Tensor& k, const Tensor& v, Tensor keys,
                        Tensor values, const Tensor& positions, const Tensor& mask) {
  keys.index_copy_(1, positions, k.to(keys.scalar_type()));
  values.index_copy_(1, positions, v.to(values.scalar_type()));
  return attention(q, keys, values, mask);
}

// True up to the last token of each row: N, 1, 1, keys.
Tensor padding_mask(const Tensor& last, int64_t keys) {
  return torch::arange(keys, last.options()) <= last.view({-1, 1, 1, 1});
}

// True up to the query and to the last token of each row: N, 1, keys, keys.
Tensor causal_padding_mask(const Tensor& last, int64_t keys) {
  const Tensor places = torch::arange(keys, last.options());
  return (places <= places.unsqueeze(1)) & (places <= last.view({-1, 1, 1, 1}));
}

// True for the last keys up to the query, as many as the window has: keys, keys.
Tensor window_mask(int64_t keys, int64_t window, const torch::Device& device) {
  const Tensor ones = torch::ones({keys, keys}, torch::dtype(torch::kBool).device(device));
  return ones.tril().triu(1 - window);
}

// Adds up what goes to the same place along an axis.
Tensor scatter_add(const Tensor& values, const Tensor& places, int64_t axis, int64_t size) {
  std::vector<int64_t> shape = values.sizes().vec();
  shape[axis] = size;
  return values.new_zeros(shape).scatter_add(axis, places.expand_as(values), values);
}

// The whole sequence from a zero state; the gates are i, f, g, o.
Tensor lstm_sequence(const Tensor& x, const Tensor& weight_ih, const Tensor& weight_hh,
                     const Tensor& bias = {}) {
  const Tensor state = x.new_zeros({1, x.size(0), weight_hh.size(1)});
  std::vector<Tensor> weights = {weight_ih, weight_hh};
  if (bias.defined()) {
    weights.push_back(bias);
    weights.push_back(torch::zeros_like(bias));  // torch has two biases
  }
  const auto [out, h, c] =
      torch::lstm(x, {state, state}, weights, bias.defined(), /*num_layers=*/1, /*dropout=*/0.0,
                  /*train=*/true, /*bidirectional=*/false, /*batch_first=*/true);
  return out;
}

// The whole sequence from a zero state; the gates are r, z, n.
Tensor gru_sequence(const Tensor& x, const Tensor& weight_ih, const Tensor& weight_hh,
                    const Tensor& bias_ih = {}, const Tensor& bias_hh = {}) {
  const Tensor state = x.new_zeros({1, x.size(0), weight_hh.size(1)});
  std::vector<Tensor> weights = {weight_ih, weight_hh};
  if (bias_ih.defined()) {
    weights.push_back(bias_ih);
    weights.push_back(bias_hh);
  }
  const auto [out, h] =
      torch::gru(x, state, weights, bias_ih.defined(), /*num_layers=*/1, /*dropout=*/0.0,
                 /*train=*/true, /*bidirectional=*/false, /*batch_first=*/true);
  return out;
}

// Along each axis in turn; F::interpolate reads other places.
Tensor resize_nearest(Tensor x, torch::IntArrayRef size, bool half_pixel) {
  for (int64_t axis = 2; axis < x.dim(); ++axis) {
    const int64_t count = size[axis - 2];
    const Tensor places = torch::arange(count, torch::dtype(torch::kLong).device(x.device()));
    const Tensor twice = (2 * places + (half_pixel ? 1 : 0)) * x.size(axis);
    x = x.index_select(axis, twice.div(2 * count, "floor"));
  }
  return x;
}

// Along each axis in turn, from place i size / n; F::interpolate has no such coordinates.
Tensor resize_linear(Tensor x, torch::IntArrayRef size) {
  for (int64_t axis = 2; axis < x.dim(); ++axis) {
    const int64_t count = size[axis - 2];
    const Tensor places =
        torch::arange(count, torch::dtype(torch::kLong).device(x.device())) * x.size(axis);
    const Tensor low = places.div(count, "floor");
    std::vector<int64_t> shape(x.dim() - axis, 1);
    shape[0] = count;
    const Tensor share = (places.remainder(count).to(x.dtype()) / count).view(shape);
    const Tensor lower = x.index_select(axis, low);
    const Tensor upper = x.index_select(axis, (low + 1).clamp_max(x.size(axis) - 1));
    x = lower + (upper - lower) * share;
  }
  return x;
}
