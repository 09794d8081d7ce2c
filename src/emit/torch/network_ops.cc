#include "emit/torch/network_ops.h"

#include <fmt/format.h>

#include "emit/generation.h"
#include "ir/dropout.h"
#include "ir/op_table.h"

namespace bakeoff::emit::torch {

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

// A step of decoding: the caches are buffers of the module, or modules of their own that grow.
void cached_attention(ForwardPrinter& p, const ir::Node& node) {
  const int64_t keys = p.shape_of(node, "keys")[1], window = node.integer("window");
  const std::string mask = window > 0 ? fmt::format("cache_mask({{}}, {}, {})", keys, window)
                                      : fmt::format("cache_mask({{}}, {})", keys);
  std::vector<std::string> arguments;
  for (size_t i = 0; i < 3; ++i) arguments.push_back(p.use(node.inputs[i]));
  for (const char* cache : {"keys", "values"}) arguments.push_back(p.parameter(node, cache));
  const std::string key = fmt::format("cache {} {} {}", node.inputs[3], keys, window);
  const bool grows = cache_grows(p.request().settings);
  if (!grows) arguments.push_back(p.use(node.inputs[3]));
  arguments.push_back(p.once(key, "mask", node.inputs[3], mask));
  p.call(grows ? "growing_attention" : "cached_attention", arguments);
}

// torch has the heads before the tokens.
void attention(ForwardPrinter& p, const ir::Node& node) {
  if (node.has("keys")) return cached_attention(p, node);
  const bool causal = node.flag("causal");
  std::vector<std::string> arguments;
  for (size_t i = 0; i < 3; ++i) arguments.push_back(p.heads_first(node.inputs[i]));
  if (node.inputs.size() == 4) {
    const int64_t keys = p.shape(node.inputs[1])[1];
    const std::string mask = fmt::format("{}padding_mask({{}}, {})", causal ? "causal_" : "", keys);
    const std::string key = fmt::format("{} {} {}", node.inputs[3], keys, causal);
    arguments.push_back("attn_mask=" + p.once(key, "mask", node.inputs[3], mask));
  } else if (const int64_t window = node.integer("window"); window > 0) {
    const int64_t keys = p.shape(node.inputs[1])[1];
    const ir::ValueId device = keeps_name(p.request().workload, 0) ? 0 : node.inputs[0];
    const std::string mask = fmt::format("window_mask({}, {}, {{}}.device)", keys, window);
    arguments.push_back("attn_mask=" +
                        p.once(fmt::format("window {} {}", keys, window), "mask", device, mask));
  } else if (causal) {
    arguments.push_back("is_causal=True");
  }
  if (ir::drops(node))
    arguments.push_back(
        fmt::format("dropout_p={} if self.training else 0.0", python_real(node.real("rate"))));
  if (p.shape(node.inputs[0])[2] != p.shape(node.inputs[1])[2]) arguments.push_back("enable_gqa=True");
  p.call("F.scaled_dot_product_attention", arguments, ".transpose(1, 2)");
}

// nn.LSTM and nn.GRU begin at the first place: those that begin at the last one get the sequence turned.
void recurrent(ForwardPrinter& p, const ir::Node& node) {
  const std::string turn = node.flag("reverse") ? ".flip(1)" : "", x = p.use(node.inputs[0]) + turn;
  if (const std::string module = p.module_of(node); !module.empty()) return p.call(module, {x}, "[0]" + turn);
  std::vector<std::string> arguments = {x};
  for (const ir::Slot& slot : node.params) arguments.push_back(p.parameter(node, slot.name));
  p.call(ir::info(node.op).name, arguments, turn);
}

}  // namespace bakeoff::emit::torch
