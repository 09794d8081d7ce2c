#include "emit/libtorch/network_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "emit/windows.h"
#include "ir/op_table.h"

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

void lstm(ForwardPrinter& p, const Node& node) {
  const std::string x = p.use(node.inputs[0]);
  if (const std::string& module = p.module_of(node); !module.empty())
    return p.call("std::get<0>", {fmt::format("{}({})", module, x)});
  std::vector<std::string> arguments = {x};
  for (const ir::Slot& slot : node.params) arguments.push_back(p.param(node, slot.name));
  p.call("lstm_sequence", arguments);
}

void print_helpers(CodeWriter& out, const ir::Workload& workload, const Modules& modules) {
  const auto& nodes = workload.nodes;
  const auto any = [&nodes](auto&& is) { return std::any_of(nodes.begin(), nodes.end(), is); };
  const bool function =
      any([&modules](const Node& node) { return node.op == Op::kLstm && modules.module_of(node).empty(); });
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
        {function, kLstm}}) {
    if (needed) out.print(text);
  }
}

}  // namespace bakeoff::emit::libtorch
