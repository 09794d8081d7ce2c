#include "emit/torch/network_ops.h"

#include <fmt/format.h>

#include <utility>

#include "emit/spelling.h"

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

constexpr const char* kAvgPoolUneven =
    R"(def $pool$_uneven(x: Tensor, kernel, stride, pad: tuple[int, ...]) -> Tensor:
    """Mean over the part of each window that lies inside the picture.

    `pad` is before, after of each axis from the last; F.$pool$ pads evenly only.
    """
    inside = F.$pool$(F.pad(torch.ones_like(x[:1, :1]), pad), kernel, stride)
    return F.$pool$(F.pad(x, pad), kernel, stride) / inside
)";

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

void lstm(ForwardPrinter& p, const ir::Node& node) {
  const std::string x = p.use(node.inputs[0]);
  if (const std::string module = p.module_of(node); !module.empty()) return p.call(module, {x}, "[0]");
  std::vector<std::string> arguments = {x};
  for (const ir::Slot& slot : node.params) arguments.push_back(p.parameter(node, slot.name));
  p.call("lstm", arguments);
}

void print_helpers(CodeWriter& out, const ir::Workload& workload, const Modules& modules) {
  bool padding = false, both = false, function = false;
  std::set<std::string> pools;
  for (const ir::Node& node : workload.nodes) {
    const bool padded = node.op == Op::kAttention && node.inputs.size() == 4;
    padding = padding || (padded && !node.flag("causal"));
    both = both || (padded && node.flag("causal"));
    if (uneven_mean(node)) pools.insert(ir::info(node.op).name);
    function = function || (node.op == Op::kLstm && modules.module_of(node).empty());
  }
  for (const std::string& pool : pools) {
    out.print(kAvgPoolUneven, {{"pool", pool}});
    out.blank(2);
  }
  for (const auto& [needed, text] :
       {std::pair{padding, kPaddingMask}, {both, kCausalPaddingMask}, {function, kLstm}}) {
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
