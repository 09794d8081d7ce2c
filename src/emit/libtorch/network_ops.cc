#include "emit/libtorch/network_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/texts.h"
#include "emit/resize.h"
#include "emit/windows.h"
#include "ir/op_table.h"
#include "ir/verify.h"

namespace bakeoff::emit::libtorch {
namespace {

using ir::Node;
using ir::Op;

constexpr const char* kAvgPoolUneven =
    R"(// The mean over the part of each window that lies inside the picture. `pad` is before, after of
// each axis from the last; torch::$pool$ pads evenly only.
Tensor $pool$_uneven(const Tensor& x, torch::IntArrayRef kernel, torch::IntArrayRef stride,
                         torch::IntArrayRef pad) {
  const Tensor ones = torch::ones_like(x.slice(0, 0, 1).slice(1, 0, 1));
  const Tensor inside = torch::$pool$(torch::constant_pad_nd(ones, pad), kernel, stride);
  return torch::$pool$(torch::constant_pad_nd(x, pad), kernel, stride) / inside;
}

)";

constexpr const char* kLrn =
    R"(// x / (k + alpha * s)^beta, where s sums x^2 over `size` channels; torch divides alpha by the size.
Tensor lrn(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  const double scaled = static_cast<double>(size) * alpha;
  return F::local_response_norm(
      x, F::LocalResponseNormFuncOptions(size).alpha(scaled).beta(beta).k(k));
}

)";

constexpr const char* kAttention =
    R"(// q, k and v are N, tokens, heads, width; torch has the heads before the tokens.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const std::optional<Tensor>& mask = {}, bool causal = false) {
  const Tensor out = torch::scaled_dot_product_attention(
      q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), mask, /*dropout_p=*/0.0, causal);
  return out.transpose(1, 2);
}

)";

constexpr const char* kPaddingMask = R"(// True up to the last token of each row: N, 1, 1, keys.
Tensor padding_mask(const Tensor& last, int64_t keys) {
  return torch::arange(keys, last.options()) <= last.view({-1, 1, 1, 1});
}

)";

constexpr const char* kCausalPaddingMask =
    R"(// True up to the query and to the last token of each row: N, 1, keys, keys.
Tensor causal_padding_mask(const Tensor& last, int64_t keys) {
  const Tensor places = torch::arange(keys, last.options());
  return (places <= places.unsqueeze(1)) & (places <= last.view({-1, 1, 1, 1}));
}

)";

constexpr const char* kLstm =
    R"(// The whole sequence from a zero state; the gates are i, f, g, o.
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

)";

constexpr const char* kGru =
    R"(// The whole sequence from a zero state; the gates are r, z, n.
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

)";

constexpr const char* kResizeNearest =
    R"(// Along each axis in turn; F::interpolate reads other places.
Tensor resize_nearest(Tensor x, torch::IntArrayRef size, bool half_pixel) {
  for (int64_t axis = 2; axis < x.dim(); ++axis) {
    const int64_t count = size[axis - 2];
    const Tensor places = torch::arange(count, torch::dtype(torch::kLong).device(x.device()));
    const Tensor twice = (2 * places + (half_pixel ? 1 : 0)) * x.size(axis);
    x = x.index_select(axis, twice.div(2 * count, "floor"));
  }
  return x;
}

)";

constexpr const char* kResizeLinear =
    R"(// Along each axis in turn, from place i size / n; F::interpolate has no such coordinates.
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

)";

// Whether some resize in this mode is one that F::interpolate does not have.
bool resizes_itself(const ir::Workload& workload, bool linear) {
  const auto types = ir::infer(workload);
  return std::any_of(workload.nodes.begin(), workload.nodes.end(), [&](const Node& node) {
    return node.op == Op::kResize && is_linear(node) == linear &&
           interpolate_mode(node, (*types)[static_cast<size_t>(node.inputs[0])].shape).empty();
  });
}

bool masked(const Node& node, bool causal) {
  return node.op == Op::kAttention && node.inputs.size() == 4 && node.flag("causal") == causal;
}

}  // namespace

void lrn(ForwardPrinter& p, const Node& node) {
  p.call("lrn", {p.use(node.inputs[0]), std::to_string(node.integer("size")), python_real(node.real("alpha")),
                 python_real(node.real("beta")), python_real(node.real("k"))});
}

void position_embedding(ForwardPrinter& p, const Node& node) {
  const int64_t rows = p.shape(node.inputs[0])[1];
  const std::string x = p.use(node.inputs[0]);
  p.binary(x, '+', fmt::format("{}.narrow(0, 0, {})", p.param(node, "weight"), rows));
}

void attention(ForwardPrinter& p, const Node& node) {
  const bool causal = node.flag("causal");
  std::vector<std::string> arguments;
  for (size_t i = 0; i < 3; ++i) arguments.push_back(p.use(node.inputs[i]));
  if (node.inputs.size() == 4) {
    const int64_t keys = p.shape(node.inputs[1])[1];
    const std::string mask = fmt::format("{}padding_mask({{}}, {})", causal ? "causal_" : "", keys);
    const std::string key = fmt::format("{} {} {}", node.inputs[3], keys, causal);
    arguments.push_back(p.once(key, "mask", node.inputs[3], mask));
  } else if (causal) {
    arguments.insert(arguments.end(), {"/*mask=*/{}", "/*causal=*/true"});
  }
  p.call("attention", arguments);
}

// nn::LSTM and nn::GRU begin at the first place. A layer that begins at the last one gets the sequence reversed.
void recurrent(ForwardPrinter& p, const Node& node) {
  const bool reverse = node.flag("reverse");
  const std::string x = p.use(node.inputs[0]) + (reverse ? ".flip(1)" : "");
  std::string head = ir::info(node.op).name + "_sequence";
  std::vector<std::string> arguments = {x};
  if (const std::string& module = p.module_of(node); !module.empty()) {
    head = "std::get<0>";
    arguments = {fmt::format("{}({})", module, x)};
  } else {
    for (const ir::Slot& slot : node.params) arguments.push_back(p.param(node, slot.name));
  }
  if (!reverse) return p.call(head, arguments);
  p.call(fmt::format("{}({}).flip", head, join(arguments, ", ")), {"1"});
}

void print_helpers(CodeWriter& out, const ir::Workload& workload, const Modules& modules) {
  const auto& nodes = workload.nodes;
  const auto any = [&nodes](auto&& is) { return std::any_of(nodes.begin(), nodes.end(), is); };
  const auto function = [&](Op op) {
    return any([&](const Node& node) { return node.op == op && modules.module_of(node).empty(); });
  };
  std::set<std::string> pools;
  for (const Node& node : nodes) {
    if (uneven_mean(node)) pools.insert(ir::info(node.op).name);
  }
  for (const std::string& pool : pools) out.print(kAvgPoolUneven, {{"pool", pool}});
  for (const auto& [needed, text] :
       {std::pair{any([](const Node& node) { return node.op == Op::kLrn; }), kLrn},
        {any([](const Node& node) { return node.op == Op::kAttention; }), kAttention},
        {any([](const Node& node) { return masked(node, false); }), kPaddingMask},
        {any([](const Node& node) { return masked(node, true); }), kCausalPaddingMask},
        {function(Op::kLstm), kLstm},
        {function(Op::kGru), kGru},
        {resizes_itself(workload, false), kResizeNearest},
        {resizes_itself(workload, true), kResizeLinear}}) {
    if (needed) out.print(text);
  }
}

}  // namespace bakeoff::emit::libtorch
