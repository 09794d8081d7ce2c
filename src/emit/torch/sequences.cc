#include "emit/torch/sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "emit/code_writer.h"
#include "emit/torch_rules.h"
#include "emit/windows.h"

namespace bakeoff::emit::torch {
namespace {

using ir::Op;

Call pool_module(const ir::Node& node, const std::string& name) {
  const auto &kernel = node.integers("kernel"), &stride = node.integers("stride"),
             &pad = node.integers("pad");
  if (!symmetric(pad)) return {};
  Call call{fmt::format("nn.{}Pool{}d", name, kernel.size()), {per_axis(kernel)}};
  if (stride != kernel) call.arguments.push_back("stride=" + per_axis(stride));
  if (all_are(pad, 0)) return call;
  call.arguments.push_back("padding=" + per_axis(pads_of_side(pad, false)));
  if (name == "Avg")
    call.arguments.push_back("count_include_pad=" + python_bool(node.flag("count_include_pad")));
  return call;
}

// A layer that forward() calls with its input alone.
bool plain_layer(const ir::Node& node) {
  if (ir::is_conv(node.op)) return symmetric(node.integers("pad"));
  return node.op == Op::kLinear || node.op == Op::kBatchNorm || node.op == Op::kLayerNorm ||
         node.op == Op::kRmsNorm || node.op == Op::kGroupNorm || node.op == Op::kEmbedding;
}

std::optional<int> place(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || std::to_string(number) != text) return std::nullopt;
  return number;
}

class Finder {
 public:
  Finder(const Request& request, const std::vector<ir::Type>& types, const Stretch& stretch,
         const Blocks& blocks)
      : workload_(request.workload), types_(types), stretch_(stretch), blocks_(blocks) {}

  std::vector<Sequence> find() {
    for (int n = stretch_.first; n < stretch_.end; ++n) {
      if (const Block* block = blocks_.at(n, stretch_)) {
        n = block->stretch.end - 1;
        continue;
      }
      outside_blocks_.push_back(n);
      add_layer(n);
    }
    std::vector<Sequence> all;
    for (const auto& [path, layers] : layers_) {
      if (path.empty() || !only_layers(path, layers)) continue;
      if (const auto found = chain(path, layers)) all.push_back(*found);
    }
    std::sort(all.begin(), all.end(), [](const Sequence& a, const Sequence& b) { return a.first < b.first; });
    for (size_t i = 1; i < all.size();) {  // two that share nodes behind the first one's layers
      if (all[i].first < all[i - 1].end)
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
      else
        ++i;
    }
    return all;
  }

 private:
  using Layers = std::map<int, std::vector<int>>;  // place -> nodes

  const ir::Node& node(int n) const { return workload_.nodes[static_cast<size_t>(n)]; }

  void add_layer(int n) {
    const std::string whole = torch_layer(workload_, node(n), true);
    if (whole.empty()) return;
    const std::string layer = stretch_.relative(whole);
    const std::string path = layer.find('.') == std::string::npos ? "" : layer_of(layer);
    if (const auto at = place(leaf_of(layer))) layers_[path][*at].push_back(n);
  }

  // Every parameter below the path is that of one of the layers, each of which is called once.
  bool only_layers(const std::string& path, const Layers& layers) const {
    std::vector<ir::ParamId> known;
    for (const auto& [_, nodes] : layers) {
      if (nodes.size() != 1 || !plain_layer(node(nodes[0]))) return false;
      for (const ir::Slot& slot : node(nodes[0]).params) known.push_back(slot.param);
    }
    const std::string below = (stretch_.path.empty() ? "" : stretch_.path + ".") + path + ".";
    for (size_t id = 0; id < workload_.parameters.size(); ++id) {
      if (!workload_.parameters[id].name.starts_with(below)) continue;
      const auto own = static_cast<ir::ParamId>(id);
      if (std::find(known.begin(), known.end(), own) == known.end()) return false;
      const auto readers =
          std::count_if(workload_.nodes.begin(), workload_.nodes.end(), [&](const ir::Node& n) {
            return std::any_of(n.params.begin(), n.params.end(),
                               [&](const ir::Slot& s) { return s.param == own; });
          });
      if (readers != 1) return false;
    }
    return true;
  }

  // Whether a node reads the one before it, which nothing else does.
  bool follows(int n) const {
    if (n - 1 < stretch_.first || node(n).inputs.size() != 1) return false;
    const ir::ValueId before = workload_.output_of(n - 1);
    return node(n).inputs[0] == before && ir::consumers(workload_, before).size() == 1 &&
           before != workload_.prediction();
  }
  bool between(int n) const {
    return std::binary_search(outside_blocks_.begin(), outside_blocks_.end(), n) &&
           !module_without_parameters(node(n), types_[static_cast<size_t>(node(n).inputs[0])].shape)
                .head.empty();
  }

  std::optional<Sequence> chain(const std::string& path, const Layers& layers) const {
    const auto& [place_of_first, nodes] = *layers.begin();
    const int first = nodes[0] - place_of_first;
    const bool listed = place(leaf_of(path)).has_value();
    if (first < stretch_.first || (!listed && layers.size() + static_cast<size_t>(place_of_first) < 2))
      return std::nullopt;
    const auto& [place_of_last, last] = *layers.rbegin();
    int end = last[0] + 1;
    if (end - first != place_of_last + 1) return std::nullopt;
    for (int n = first; n < end; ++n) {
      const auto layer = layers.find(n - first);
      if (layer == layers.end() ? !between(n) : layer->second[0] != n) return std::nullopt;
      if (n > first && !follows(n)) return std::nullopt;
    }
    const bool others = listed || layers.size() < static_cast<size_t>(end - first);
    while (others && end < stretch_.end && follows(end) && between(end) && node(end).op != Op::kFlatten)
      ++end;
    if (end - first < 2) return std::nullopt;
    return Sequence{path, first, end};
  }

  const ir::Workload& workload_;
  const std::vector<ir::Type>& types_;
  const Stretch& stretch_;
  const Blocks& blocks_;
  std::vector<int> outside_blocks_;
  std::map<std::string, Layers> layers_;  // by the path of their list
};

}  // namespace

Call module_without_parameters(const ir::Node& node, const ir::Shape& in) {
  switch (node.op) {
    case Op::kGroupNorm:
      if (!node.params.empty()) return {};
      return {"nn.GroupNorm",
              {std::to_string(node.integer("groups")), std::to_string(in[1]),
               "eps=" + python_real(node.real("eps")), "affine=False"}};
    case Op::kRelu:
      return {"nn.ReLU", {}};
    case Op::kGelu:
      return node.word("form") == "tanh" ? Call{"nn.GELU", {"approximate=\"tanh\""}} : Call{"nn.GELU", {}};
    case Op::kSigmoid:
      return {"nn.Sigmoid", {}};
    case Op::kTanh:
      return {"nn.Tanh", {}};
    case Op::kSilu:
      return {"nn.SiLU", {}};
    case Op::kElu:
      return {"nn.ELU", {python_real(node.real("alpha"))}};
    case Op::kLeakyRelu:
      return {"nn.LeakyReLU", {python_real(node.real("slope"))}};
    case Op::kDropout:
      return {"nn.Dropout", {"p=" + python_real(node.real("rate"))}};
    case Op::kFlatten:
      return {"nn.Flatten", {}};
    case Op::kMaxPool1d:
    case Op::kMaxPool2d:
    case Op::kMaxPool3d:
      return pool_module(node, "Max");
    case Op::kAvgPool1d:
    case Op::kAvgPool2d:
    case Op::kAvgPool3d:
      return pool_module(node, "Avg");
    default:
      return {};
  }
}

std::vector<Sequence> find_sequences(const Request& request, const std::vector<ir::Type>& types,
                                     const Stretch& stretch, const Blocks& blocks) {
  return Finder(request, types, stretch, blocks).find();
}

}  // namespace bakeoff::emit::torch
