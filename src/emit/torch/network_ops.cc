#include "emit/torch/network_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emit/resize.h"
#include "emit/spelling.h"
#include "ir/verify.h"

namespace bakeoff::emit::torch {
namespace {

using ir::Op;

constexpr const char* kPaddingMask = R"(def padding_mask(last: Tensor, keys: int) -> Tensor:
    """True up to the last token of each row: N, 1, 1, keys."""
    return torch.arange(keys, device=last.device) <= last[:, None, None, None]
)";
constexpr const char* kCausalPaddingMask = R"(def causal_padding_mask(last: Tensor, keys: int) -> Tensor:
    """True up to the query and to the last token of each row: N, 1, keys, keys."""
    places = torch.arange(keys, device=last.device)
    return (places <= places[:, None]) & (places <= last[:, None, None, None])
)";
constexpr const char* kLstm =
    R"(def lstm(x: Tensor, weight_ih: Tensor, weight_hh: Tensor, *bias: Tensor) -> Tensor:
    """The whole sequence from a zero state; the gates are i, f, g, o."""
    state = x.new_zeros(1, len(x), weight_hh.shape[1])
    weights = [weight_ih, weight_hh, *bias]
    weights += [torch.zeros_like(b) for b in bias]  # torch has two biases
    return torch.lstm(
        x, (state, state), weights, len(bias) > 0, 1, 0.0, True, False, True
    )[0]
)";

constexpr const char* kGru =
    R"(def gru(x: Tensor, weight_ih: Tensor, weight_hh: Tensor, *bias: Tensor) -> Tensor:
    """The whole sequence from a zero state; the gates are r, z, n."""
    state = x.new_zeros(1, len(x), weight_hh.shape[1])
    weights = [weight_ih, weight_hh, *bias]
    return torch.gru(x, state, weights, len(bias) > 0, 1, 0.0, True, False, True)[0]
)";

constexpr const char* kAvgPoolUneven =
    R"(def $pool$_uneven(x: Tensor, kernel, stride, pad: tuple[int, ...]) -> Tensor:
    """Mean over the part of each window that lies inside the picture.

    `pad` is before, after of each axis from the last; F.$pool$ pads evenly only.
    """
    inside = F.$pool$(F.pad(torch.ones_like(x[:1, :1]), pad), kernel, stride)
    return F.$pool$(F.pad(x, pad), kernel, stride) / inside
)";

constexpr const char* kResize =
    R"(def resize(x: Tensor, size: tuple[int, ...], mode: str, coordinates: str) -> Tensor:
    """Along each axis in turn; F.interpolate reads other places."""
    shift = 1 if coordinates == "half_pixel" else 0
    for axis, new in enumerate(size, 2):
        old = x.shape[axis]
        places = (2 * torch.arange(new, device=x.device) + shift) * old
        low = places // (2 * new)
        lower = x.index_select(axis, low)
        if mode == "nearest":
            x = lower
            continue
        upper = x.index_select(axis, (low + 1).clamp(max=old - 1))
        share = (places % (2 * new)).to(x.dtype) / (2 * new)
        x = lower + (upper - lower) * share.view(-1, *[1] * (x.ndim - axis - 1))
    return x
)";

// Whether some resize is one that F.interpolate does not have.
bool resizes_itself(const ir::Workload& workload) {
  const auto types = ir::infer(workload);
  return std::any_of(workload.nodes.begin(), workload.nodes.end(), [&](const ir::Node& node) {
    return node.op == Op::kResize &&
           interpolate_mode(node, (*types)[static_cast<size_t>(node.inputs[0])].shape).empty();
  });
}

}  // namespace

// torch divides alpha by the size.
void lrn(ForwardPrinter& p, const ir::Node& node) {
  const int64_t size = node.integer("size");
  p.call("F.local_response_norm",
         {p.use(node.inputs[0]), std::to_string(size),
          fmt::format("alpha={} * {}", size, python_real(node.real("alpha"))),
          "beta=" + python_real(node.real("beta")), "k=" + python_real(node.real("k"))});
}

void position_embedding(ForwardPrinter& p, const ir::Node& node) {
  const std::string rows = fmt::format("[:{}]", p.shape(node.inputs[0])[1]);
  p.binary(p.use(node.inputs[0]), "+", p.parameter(node, "weight") + rows, "torch.add");
}

// torch has the heads before the tokens.
void attention(ForwardPrinter& p, const ir::Node& node) {
  const bool causal = node.flag("causal");
  std::vector<std::string> arguments;
  for (size_t i = 0; i < 3; ++i) arguments.push_back(p.use(node.inputs[i]) + ".transpose(1, 2)");
  if (node.inputs.size() == 4) {
    const int64_t keys = p.shape(node.inputs[1])[1];
    const std::string mask = fmt::format("{}padding_mask({{}}, {})", causal ? "causal_" : "", keys);
    const std::string key = fmt::format("{} {} {}", node.inputs[3], keys, causal);
    arguments.push_back("attn_mask=" + p.once(key, "mask", node.inputs[3], mask));
  } else if (causal) {
    arguments.push_back("is_causal=True");
  }
  p.call("F.scaled_dot_product_attention", arguments, ".transpose(1, 2)");
}

// nn.LSTM and nn.GRU begin at the first place. A layer that begins at the last one gets the sequence reversed.
void recurrent(ForwardPrinter& p, const ir::Node& node) {
  const std::string turn = node.flag("reverse") ? ".flip(1)" : "", x = p.use(node.inputs[0]) + turn;
  if (const std::string module = p.module_of(node); !module.empty()) return p.call(module, {x}, "[0]" + turn);
  std::vector<std::string> arguments = {x};
  for (const ir::Slot& slot : node.params) arguments.push_back(p.parameter(node, slot.name));
  p.call(ir::info(node.op).name, arguments, turn);
}

void print_helpers(CodeWriter& out, const ir::Workload& workload, const Modules& modules) {
  bool padding = false, both = false;
  std::set<Op> functions;
  std::set<std::string> pools;
  for (const ir::Node& node : workload.nodes) {
    const bool padded = node.op == Op::kAttention && node.inputs.size() == 4;
    padding = padding || (padded && !node.flag("causal"));
    both = both || (padded && node.flag("causal"));
    if (uneven_mean(node)) pools.insert(ir::info(node.op).name);
    if (modules.module_of(node).empty()) functions.insert(node.op);
  }
  for (const std::string& pool : pools) {
    out.print(kAvgPoolUneven, {{"pool", pool}});
    out.blank(2);
  }
  for (const auto& [needed, text] : {std::pair{padding, kPaddingMask},
                                     {both, kCausalPaddingMask},
                                     {functions.contains(Op::kLstm), kLstm},
                                     {functions.contains(Op::kGru), kGru},
                                     {resizes_itself(workload), kResize}}) {
    if (!needed) continue;
    out.print(text);
    out.blank(2);
  }
  for (const std::string& helper : spelled_helpers(nodes_of(workload), &ir::Spellings::torch)) {
    out.print(helper);
    out.blank(2);
  }
}

}  // namespace bakeoff::emit::torch
