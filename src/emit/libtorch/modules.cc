#include "emit/libtorch/modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/texts.h"
#include "emit/libtorch/autocast.h"
#include "emit/libtorch/cpp.h"
#include "emit/precision.h"
#include "emit/torch_rules.h"
#include "emit/windows.h"
#include "ir/dropout.h"

namespace bakeoff::emit::libtorch {
namespace {

using ir::Op;
using ir::Role;

// "block1.conv1" -> "block1"; "conv1" -> "".
std::string parent_of(std::string_view path) {
  const size_t dot = path.rfind('.');
  return std::string(dot == std::string_view::npos ? "" : path.substr(0, dot));
}

// "nn::Conv2d"
std::string conv_class(const ir::Node& node, const ir::Shape& w) {
  return fmt::format("nn::Conv{}{}d", ir::is_conv_transpose(node.op) ? "Transpose" : "", w.size() - 2);
}

std::string conv_options(const ir::Node& node, const ir::Shape& w) {
  const auto &stride = node.integers("stride"), &pad = node.integers("pad");
  const auto& dilation = node.integers("dilation");
  const int64_t groups = node.integer("groups");
  const ir::Shape kernel(w.begin() + 2, w.end());
  const bool transposed = ir::is_conv_transpose(node.op);
  const int64_t in = transposed ? w[0] : w[1] * groups, out = transposed ? w[1] * groups : w[0];
  std::string text = fmt::format("{}Options({}, {}, {})", conv_class(node, w), in, out, per_axis(kernel));
  text += fmt::format(".stride({})", per_axis(stride));
  // Other pads are added by forward().
  text += fmt::format(".padding({})",
                      per_axis(pads_of_side(symmetric(pad) ? pad : ir::Shape(pad.size(), 0), false)));
  if (transposed) text += fmt::format(".output_padding({})", per_axis(node.integers("output_pad")));
  text += fmt::format(".dilation({}).groups({})", per_axis(dilation), groups);
  if (!node.has("bias")) text += ".bias(false)";
  return text;
}

struct Layer {
  std::string type;     // "nn::Linear"
  std::string options;  // "4096, 128"
};

Layer layer_for(const Request& request, const ir::Node& node, const std::vector<ir::Type>& types) {
  const bool explicit_values = request.training.track == ir::Track::kEqualised;
  const char* slot = ir::is_recurrent(node.op) ? "weight_ih" : "weight";
  const ir::Shape& w = request.workload.parameters[static_cast<size_t>(node.param(slot))].shape;
  const auto eps = [&] {
    return explicit_values ? fmt::format(".eps({})", python_real(node.real("eps"))) : std::string();
  };
  switch (node.op) {
    case Op::kConv1d:
    case Op::kConv2d:
    case Op::kConv3d:
    case Op::kConvTranspose1d:
    case Op::kConvTranspose2d:
    case Op::kConvTranspose3d:
      return {conv_class(node, w), conv_options(node, w)};
    case Op::kLinear:
      if (node.has("bias")) return {"nn::Linear", fmt::format("{}, {}", w[1], w[0])};
      return {"nn::Linear", fmt::format("nn::LinearOptions({}, {}).bias(false)", w[1], w[0])};
    case Op::kBatchNorm: {
      const size_t rank = types[static_cast<size_t>(node.inputs[0])].shape.size();
      const std::string type = fmt::format("nn::BatchNorm{}d", std::max<size_t>(rank, 3) - 2);
      const std::string momentum =
          explicit_values ? fmt::format(".momentum({})", python_real(node.real("momentum"))) : "";
      return {type, fmt::format("{}Options({}){}{}", type, w[0], eps(), momentum)};
    }
    case Op::kLayerNorm:
      return {"nn::LayerNorm", fmt::format("nn::LayerNormOptions({}){}", braces(w), eps())};
    case Op::kGroupNorm:
      return {"nn::GroupNorm",
              fmt::format("nn::GroupNormOptions({}, {}){}", node.integer("groups"), w[0], eps())};
    case Op::kLstm:
      return {"nn::LSTM", fmt::format("nn::LSTMOptions({}, {}){}.batch_first(true)", w[1], w[0] / 4,
                                      node.has("bias") ? "" : ".bias(false)")};
    case Op::kGru:
      return {"nn::GRU", fmt::format("nn::GRUOptions({}, {}){}.batch_first(true)", w[1], w[0] / 3,
                                     node.has("bias_ih") ? "" : ".bias(false)")};
    case Op::kPositionEmbedding:
    case Op::kEmbedding:
      if (const auto row = ir::padding_idx(node))
        return {"nn::Embedding",
                fmt::format("nn::EmbeddingOptions({}, {}).padding_idx({})", w[0], w[1], *row)};
      return {"nn::Embedding", fmt::format("{}, {}", w[0], w[1])};
    default:
      return {};
  }
}

}  // namespace

Modules::Modules(const Request& request, const std::vector<ir::Type>& types, const Stretch& stretch,
                 const Blocks& blocks, Namer& names)
    : request_(request), stretch_(stretch), blocks_(blocks), names_(names) {
  struct Item {
    std::vector<const Block*> blocks;  // several, or one with its number: a list
    std::string list;
    const ir::Node* node;
  };
  std::vector<Item> items;
  loops_ = Loops(request.workload, types, all_nodes(request.workload)).in(stretch, blocks);
  cells_ = find_cells(request, types, stretch, blocks, loops_);
  for (int n = stretch.first; n < stretch.end; ++n) {
    const ir::Node& node = request.workload.nodes[static_cast<size_t>(n)];
    const Block* block = blocks.at(n, stretch);
    if (block == nullptr) {
      if (ir::drops(node) && in_other_iteration(n)) continue;
      if (ir::drops(node)) dropouts_[node.real("rate")];
      items.push_back({{}, "", &node});
      continue;
    }
    n = block->stretch.end - 1;
    // Blocks 0, 1, 2, ... of one path are a list.
    const std::string path = stretch_.relative(block->stretch.path), parent = parent_of(path);
    const bool numbered =
        !parent.empty() && leaf_of(path).find_first_not_of("0123456789") == std::string::npos;
    const auto list = std::find_if(items.begin(), items.end(),
                                   [&](const Item& item) { return numbered && item.list == parent; });
    const size_t index = list == items.end() ? 0 : list->blocks.size();
    if (!numbered || leaf_of(path) != std::to_string(index)) {
      items.push_back({{block}, "", nullptr});
    } else if (list == items.end()) {
      items.push_back({{block}, parent, nullptr});
    } else {
      list->blocks.push_back(block);
    }
  }
  // What else lies below the path of a list would need a module of the same name.
  for (Item& item : items) {
    const std::string path = stretch.path.empty() ? item.list : stretch.path + "." + item.list;
    size_t below = 0;
    for (const Item& other : items) {
      for (const Block* block : other.blocks) below += block->stretch.path.starts_with(path + ".") ? 1 : 0;
      for (const ir::Slot& slot : other.node == nullptr ? std::vector<ir::Slot>() : other.node->params)
        below +=
            request.workload.parameters[static_cast<size_t>(slot.param)].name.starts_with(path + ".") ? 1 : 0;
    }
    if (item.node != nullptr) {
      add_node(*item.node, types);
    } else if (!item.list.empty() && below == item.blocks.size()) {
      add_list(item.list, item.blocks);
    } else {
      for (const Block* block : item.blocks) add_block(*block);
    }
  }
}

void Modules::add_block(const Block& block) {
  const std::string path = stretch_.relative(block.stretch.path);
  const std::string name = names_.name("member " + path, path);
  const std::string values = join(block.values, ", ");
  const std::string made = values.empty() ? "" : "{" + values + "}";
  members_.push_back({name, path, blocks_.family(block).name + " " + name + made, "register_module"});
  calls_[&block] = name;
}

void Modules::add_list(const std::string& path, const std::vector<const Block*>& blocks) {
  const std::string name = names_.name("member " + path, path);
  Member member{name, path, "nn::ModuleList " + name, "register_module"};
  const auto push = [&](const Block& block) {
    return fmt::format("{}->push_back({}({}));", name, blocks_.family(block).name, join(block.values, ", "));
  };
  const bool equal = blocks.size() > 1 && std::all_of(blocks.begin(), blocks.end(), [&](const Block* b) {
                       return push(*b) == push(*blocks[0]);
                     });
  if (equal) {
    member.init = {fmt::format("for (int i = 0; i < {}; ++i) {}", blocks.size(), push(*blocks[0]))};
  } else {
    for (const Block* block : blocks) member.init.push_back(push(*block));
  }
  for (size_t i = 0; i < blocks.size(); ++i)
    calls_[blocks[i]] = fmt::format("{}->at<{}Impl>({}).forward", name, blocks_.family(*blocks[i]).name, i);
  lists_[name] = blocks;
  members_.push_back(std::move(member));
}

std::string Modules::list_of(const std::vector<const Block*>& blocks) const {
  const bool alike = std::all_of(blocks.begin(), blocks.end(),
                                 [&](const Block* b) { return b->family == blocks[0]->family; });
  for (const auto& [name, list] : lists_) {
    if (alike && list == blocks) return name;
  }
  return "";
}

const std::string& Modules::module_of(const ir::Node& node) const {
  static const std::string none;
  const auto found = module_of_.find(&node);
  return found == module_of_.end() ? none : found->second;
}

void Modules::add_node(const ir::Node& node, const std::vector<ir::Type>& types) {
  if (ir::drops(node)) add_dropout(node);
  if (node.params.empty() || add_cell(node)) return;
  // LibTorch's nn::LayerNorm has both parameters, and it has no module of root mean squares.
  const bool loose = node.op == Op::kRmsNorm || (node.op == Op::kLayerNorm && node.params.size() < 2);
  const std::string path = loose ? "" : stretch_.relative(torch_layer(request_.workload, node));
  if (const auto old = layers_.find(path); !path.empty() && old != layers_.end()) {
    const ir::Node& first = *old->second;
    if (first.op == node.op && first.params == node.params && first.attributes == node.attributes &&
        types[static_cast<size_t>(first.inputs[0])].shape.size() ==
            types[static_cast<size_t>(node.inputs[0])].shape.size()) {
      module_of_[&node] = module_of_[&first];
    }
    return;
  }
  const bool held = std::any_of(node.params.begin(), node.params.end(),
                                [this](const ir::Slot& slot) { return held_.contains(slot.param); });
  if (!path.empty() && !held) return add_layer(node, path, types);
  for (const ir::Slot& slot : node.params) {
    if (!held_.contains(slot.param)) add_loose(slot.param);
  }
}

void Modules::add_layer(const ir::Node& node, const std::string& path, const std::vector<ir::Type>& types) {
  const std::string name = names_.name("member " + path, path);
  Layer layer = layer_for(request_, node, types);
  // In a block, what other blocks of the family say must be said.
  if (stretch_.path.empty()) leave_out_fallbacks(layer.options);
  Member member{name, path, fmt::format("{} {}{{{}}}", layer.type, name, layer.options), "register_module"};
  const auto of_recurrent = [&name](const std::string& leaf) {  // its tensors are no members
    return fmt::format("{}->named_parameters()[{}]", name, quote(leaf));
  };
  for (const ir::Slot& slot : node.params) {
    const std::string leaf = torch_leaf(node.op, slot.name);
    held_[slot.param] = ir::is_recurrent(node.op) ? of_recurrent(leaf) : name + "->" + leaf;
  }
  if (node.op == Op::kLstm && node.has("bias")) {
    if (!freezes_biases_)
      member.init = {"// One bias, as in other frameworks: torch's second one stays zero."};
    member.init.push_back(
        fmt::format("nn::init::zeros_({}).requires_grad_(false);", of_recurrent("bias_hh_l0")));
    freezes_biases_ = true;
  }
  if (node.has("weight") && stored_in_half(request_)[static_cast<size_t>(node.param("weight"))])
    member.init.push_back(fmt::format("{}->to({});", name, half_type(precision_of(request_).half)));
  members_.push_back(std::move(member));
  layers_[path] = &node;
  module_of_[&node] = name;
}

bool Modules::add_cell(const ir::Node& node) {
  const auto cell = std::find_if(cells_.begin(), cells_.end(), [&node](const Cell& one) {
    return one.leaves.contains(node.params[0].param);
  });
  if (cell == cells_.end()) return false;
  const std::string path = stretch_.relative(cell->path), name = names_.name("member " + path, path);
  if (!names_of_cells_.emplace(cell->path, name).second) return true;
  std::string options = fmt::format("{}, {}", cell->inputs, cell->units);
  if (!cell->bias || cell->relu)
    options = fmt::format("nn::{}Options({}){}{}", cell->type, options, cell->bias ? "" : ".bias(false)",
                          cell->relu ? ".nonlinearity(torch::kReLU)" : "");
  for (const auto& [param, leaf] : cell->leaves) held_[param] = name + "->" + leaf;
  members_.push_back(
      {name, path, fmt::format("nn::{} {}{{{}}}", cell->type, name, options), "register_module"});
  return true;
}

const Cell* Modules::cell_at(int node) const {
  const auto found =
      std::find_if(cells_.begin(), cells_.end(), [node](const Cell& cell) { return cell.first == node; });
  return found == cells_.end() ? nullptr : &*found;
}

void Modules::add_loose(ir::ParamId id) {
  const ir::Parameter& p = request_.workload.parameters[static_cast<size_t>(id)];
  const std::string path = stretch_.relative(p.name);
  const std::string name = names_.name("member " + path, path);
  const bool ones = p.role == Role::kScale || p.role == Role::kRunningVar;
  const bool zeros = p.role == Role::kShift || p.role == Role::kRunningMean;
  const std::string type = half_type(precision_of(request_).half);
  const std::string half = stored_in_half(request_)[static_cast<size_t>(id)] ? ", " + type : "";
  held_[id] = name;
  if (p.role == Role::kCache) {  // no buffer: no file has it
    members_.push_back({name, path,
                        fmt::format("Tensor {} = torch::zeros({{kBatchSize, {}, {}, {}}}, {})", name,
                                    p.shape[1], p.shape[2], p.shape[3], type.empty() ? "kDevice" : "kCached"),
                        ""});
    return;
  }
  members_.push_back({name, path,
                      fmt::format("Tensor {} = torch::{}({}{})", name,
                                  ones    ? "ones"
                                  : zeros ? "zeros"
                                          : "empty",
                                  braces(p.shape), half),
                      ir::trainable(p) ? "register_parameter" : "register_buffer", own_init(name, id)});
}

// The initial value that the nn module of such a parameter would have given it.
std::vector<std::string> Modules::own_init(const std::string& name, ir::ParamId id) const {
  if (request_.training.track == ir::Track::kEqualised) return {};
  const ir::Parameter& p = request_.workload.parameters[static_cast<size_t>(id)];
  const int64_t fan_in = torch_fan_in(request_.workload, id);
  // With a = sqrt 5 the bound is 1 / sqrt of the weight's own fan-in.
  if (p.role == Role::kWeight && ir::product(p.shape, 1, p.shape.size()) == fan_in)
    return {fmt::format("nn::init::kaiming_uniform_({}, std::sqrt(5.0));", name)};
  if (p.role == Role::kTable) return {fmt::format("nn::init::normal_({});", name)};
  if (p.role != Role::kWeight && p.role != Role::kBias) return {};
  const std::string bound = fmt::format("1 / std::sqrt({}.0)", fan_in);
  return {fmt::format("nn::init::uniform_({}, -{}, {});", name, bound, bound)};
}

bool Modules::in_other_iteration(int node) const {
  return std::any_of(loops_.begin(), loops_.end(), [node](const Loop& loop) {
    return loop.covered.contains(node) &&
           std::find(loop.body.begin(), loop.body.end(), node) == loop.body.end();
  });
}

// One for all of a rate: it has no state.
void Modules::add_dropout(const ir::Node& node) {
  if (const std::string& made = dropouts_.at(node.real("rate")); !made.empty()) {
    module_of_[&node] = made;
    return;
  }
  const auto used = [this](const std::string& key) {
    const auto starts = [&key](const std::string& name) {
      return name == key || name.starts_with(key + ".");
    };
    return std::any_of(members_.begin(), members_.end(), [&](const Member& m) { return starts(m.path); }) ||
           std::any_of(request_.workload.parameters.begin(), request_.workload.parameters.end(),
                       [&](const ir::Parameter& p) {
                         return p.name.starts_with(stretch_.path) && starts(stretch_.relative(p.name));
                       });
  };
  std::string path = dropouts_.size() > 1 ? "dropout1" : "dropout";
  for (int n = 2; used(path); ++n) path = fmt::format("dropout{}", n);
  const std::string name = names_.name("member " + path, path);
  members_.push_back({name, path, fmt::format("nn::Dropout {}{{{}}}", name, python_real(node.real("rate"))),
                      "register_module"});
  module_of_[&node] = dropouts_[node.real("rate")] = name;
}

void Modules::print_registration(CodeWriter& out) const {
  std::map<std::string, std::string> groups;  // "block1" -> the local variable that holds the module
  Namer locals = names_;
  const auto group = [&](auto& self, const std::string& path) -> std::string {
    if (path.empty()) return "";
    if (const auto known = groups.find(path); known != groups.end()) return known->second + "->";
    const std::string owner = self(self, parent_of(path));
    const std::string variable = locals.name("group " + path, path);
    const std::string head = fmt::format("auto {} =", variable);
    const std::string made =
        fmt::format("{}register_module({}, std::make_shared<nn::Module>());", owner, quote(leaf_of(path)));
    statement(out, head + " " + made);
    groups[path] = variable;
    return variable + "->";
  };
  for (const Member& member : members_) {
    if (member.function.empty()) continue;
    const std::string owner = group(group, parent_of(member.path));
    statement(out,
              fmt::format("{}{}({}, {});", owner, member.function, quote(leaf_of(member.path)), member.name));
    for (const std::string& init : member.init) statement(out, init);
  }
}

void Modules::print_members(CodeWriter& out) const {
  for (const Member& member : members_) statement(out, member.declaration + ";");
}

}  // namespace bakeoff::emit::libtorch
