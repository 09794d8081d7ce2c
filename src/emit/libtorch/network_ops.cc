#include "emit/libtorch/network_ops.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "ir/dropout.h"
#include "ir/op_table.h"

namespace bakeoff::emit::libtorch {
using ir::Node;

void lrn(ForwardPrinter& p, const Node& node) {
  p.call("lrn", {p.use(node.inputs[0]), std::to_string(node.integer("size")), python_real(node.real("alpha")),
                 python_real(node.real("beta")), python_real(node.real("k"))});
}

void position_embedding(ForwardPrinter& p, const Node& node) {
  const int64_t rows = p.shape(node.inputs[0])[1];
  const std::string x = p.use(node.inputs[0]);
  p.binary(x, '+', fmt::format("{}.narrow(0, 0, {})", p.param(node, "weight"), rows));
}

// A step of decoding.
void cached_attention(ForwardPrinter& p, const Node& node) {
  const int64_t keys = p.workload().parameters[static_cast<size_t>(node.param("keys"))].shape[1];
  const int64_t window = node.integer("window");
  const std::string mask = window > 0 ? fmt::format("cache_mask({{}}, {}, {})", keys, window)
                                      : fmt::format("cache_mask({{}}, {})", keys);
  std::vector<std::string> arguments;
  for (size_t i = 0; i < 3; ++i) arguments.push_back(p.use(node.inputs[i]));
  for (const char* cache : {"keys", "values"}) arguments.push_back(p.param(node, cache));
  arguments.push_back(p.use(node.inputs[3]));
  arguments.push_back(
      p.once(fmt::format("cache {} {} {}", node.inputs[3], keys, window), "mask", node.inputs[3], mask));
  p.call("cached_attention", arguments);
}

void attention(ForwardPrinter& p, const Node& node) {
  if (node.has("keys")) return cached_attention(p, node);
  const bool causal = node.flag("causal");
  std::vector<std::string> arguments;
  for (size_t i = 0; i < 3; ++i) arguments.push_back(p.use(node.inputs[i]));
  if (node.inputs.size() == 4) {
    const int64_t keys = p.shape(node.inputs[1])[1];
    const std::string mask = fmt::format("{}padding_mask({{}}, {})", causal ? "causal_" : "", keys);
    const std::string key = fmt::format("{} {} {}", node.inputs[3], keys, causal);
    arguments.push_back(p.once(key, "mask", node.inputs[3], mask));
  } else if (const int64_t window = node.integer("window"); window > 0) {
    const int64_t keys = p.shape(node.inputs[1])[1];
    const ir::ValueId device = keeps_name(p.workload(), 0) ? 0 : node.inputs[0];
    const std::string mask = fmt::format("window_mask({}, {}, {{}}.device())", keys, window);
    arguments.push_back(p.once(fmt::format("window {} {}", keys, window), "mask", device, mask));
  } else if (causal) {
    arguments.insert(arguments.end(), {"/*mask=*/{}", "/*causal=*/true"});
  }
  if (ir::drops(node)) {
    if (arguments.size() == 3) arguments.push_back("/*mask=*/{}");
    if (arguments.size() == 4) arguments.push_back("/*causal=*/false");
    arguments.push_back(fmt::format("is_training() ? {}->options.p() : 0.0", p.module_of(node)));
  }
  p.call("attention", arguments);
}

// nn::LSTM and nn::GRU begin at the first place: those that begin at the last one get the sequence turned.
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

}  // namespace bakeoff::emit::libtorch
