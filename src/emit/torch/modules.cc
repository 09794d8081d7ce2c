// Parameters have paths as names, and torch holds a parameter a.b.weight only in a module b of a module a.
// insert() creates the missing modules as containers. Their kind follows from their children when all nodes
// are added (Entry::list): modules called 0, 1, 2, ... are an nn.ModuleList, others an nn.ModuleDict. So
// expressions of paths, self.a[0] or self.a["0"], are made when they are asked for, and only paths are
// stored.
//
// A parameter that fits no layer is registered by itself in its container (loose), and the forward pass
// calls a function with it. In every case the keys of state_dict() are the canonical names, and weights
// load without a table of names.

#include "emit/torch/modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "base/texts.h"
#include "emit/generation.h"
#include "emit/namer.h"
#include "emit/precision.h"
#include "emit/torch/devices.h"
#include "emit/torch_rules.h"
#include "emit/windows.h"
#include "ir/op_table.h"

namespace bakeoff::emit::torch {
namespace {

using ir::Op;
using ir::Role;

// Attributes of nn.Module and nn.ModuleDict that a child cannot be called.
bool taken_by_torch(std::string_view key) {
  static constexpr std::string_view kNames =
      " T_destination add_module apply bfloat16 buffers call_super_init children clear compile cpu "
      "cuda double dump_patches eval extra_repr float forward get_buffer get_extra_state "
      "get_parameter get_submodule half ipu items keys load_state_dict modules mtia named_buffers "
      "named_children named_modules named_parameters parameters pop register_buffer "
      "register_module register_parameter requires_grad_ set_extra_state set_submodule "
      "share_memory state_dict to to_empty train training type update values xpu zero_grad ";
  return kNames.find(fmt::format(" {} ", key)) != std::string_view::npos || key.starts_with("register_") ||
         key.starts_with("__");
}

// True for what can follow a dot in Python.
bool is_attribute(const std::string& key) { return key == "self" || Namer().name(key, key) == key; }

std::string quote(std::string_view text) { return fmt::format("\"{}\"", text); }

std::string member(const std::string& owner, const std::string& key) {
  return is_attribute(key) ? owner + "." + key : fmt::format("getattr({}, \"{}\")", owner, key);
}

std::vector<std::string> keys_of(const std::string& path) {
  return path.empty() ? std::vector<std::string>() : split(path, ".");
}

Call conv_layer(const ir::Node& node, const ir::Shape& w) {
  const auto &stride = node.integers("stride"), &pad = node.integers("pad");
  const auto& dilation = node.integers("dilation");
  const int64_t groups = node.integer("groups");
  const ir::Shape kernel(w.begin() + 2, w.end());
  const bool transposed = ir::is_conv_transpose(node.op);
  const int64_t in = transposed ? w[0] : w[1] * groups, out = transposed ? w[1] * groups : w[0];
  Call call{fmt::format("nn.Conv{}{}d", transposed ? "Transpose" : "", kernel.size()),
            {std::to_string(in), std::to_string(out), "kernel_size=" + per_axis(kernel)}};
  auto& arguments = call.arguments;
  arguments.push_back("stride=" + per_axis(stride));
  // Other pads are added by forward().
  arguments.push_back("padding=" +
                      per_axis(pads_of_side(symmetric(pad) ? pad : ir::Shape(pad.size(), 0), false)));
  if (transposed) arguments.push_back("output_padding=" + per_axis(node.integers("output_pad")));
  arguments.push_back("dilation=" + per_axis(dilation));
  arguments.push_back(fmt::format("groups={}", groups));
  if (!node.has("bias")) arguments.push_back("bias=False");
  return call;
}

Call embedding_layer(const ir::Node& node, const ir::Shape& w) {
  Call call{"nn.Embedding", {std::to_string(w[0]), std::to_string(w[1])}};
  const auto row = ir::padding_idx(node);
  if (row) call.arguments.push_back(fmt::format("padding_idx={}", *row));
  return call;
}

Call trained_layer(const Request& request, const ir::Node& node, const std::vector<ir::Type>& types) {
  const bool explicit_values = request.training.track == ir::Track::kEqualised;
  const auto shape_of = [&](std::string_view slot) {
    return request.workload.parameters[static_cast<size_t>(node.param(slot))].shape;
  };
  const ir::Shape w = shape_of(ir::is_recurrent(node.op) ? "weight_ih" : "weight");
  const auto eps = [&] { return "eps=" + python_real(node.real("eps")); };
  switch (node.op) {
    case Op::kConv1d:
    case Op::kConv2d:
    case Op::kConv3d:
    case Op::kConvTranspose1d:
    case Op::kConvTranspose2d:
    case Op::kConvTranspose3d:
      return conv_layer(node, w);
    case Op::kLinear: {
      Call call{"nn.Linear", {std::to_string(w[1]), std::to_string(w[0])}};
      if (!node.has("bias")) call.arguments.push_back("bias=False");
      return call;
    }
    case Op::kBatchNorm: {
      const size_t rank = types[static_cast<size_t>(node.inputs[0])].shape.size();
      const bool alone = devices_of(request.settings) == 1;
      Call call{alone ? fmt::format("nn.BatchNorm{}d", std::max<size_t>(rank, 3) - 2) : "SyncedBatchNorm",
                {std::to_string(w[0])}};
      if (explicit_values) {
        call.arguments.push_back(eps());
        call.arguments.push_back("momentum=" + python_real(node.real("momentum")));
      }
      return call;
    }
    case Op::kLayerNorm: {
      Call call{"nn.LayerNorm", {w.size() == 1 ? std::to_string(w[0]) : python_tuple(w)}};
      if (explicit_values) call.arguments.push_back(eps());
      if (!node.has("bias")) call.arguments.push_back("bias=False");
      return call;
    }
    case Op::kRmsNorm:
      return {"nn.RMSNorm", {w.size() == 1 ? std::to_string(w[0]) : python_tuple(w), eps()}};
    case Op::kGroupNorm: {
      Call call{"nn.GroupNorm", {std::to_string(node.integer("groups")), std::to_string(w[0])}};
      if (explicit_values) call.arguments.push_back(eps());
      return call;
    }
    case Op::kLstm:
    case Op::kGru: {
      const bool lstm = node.op == Op::kLstm;
      Call call{lstm ? "nn.LSTM" : "nn.GRU", {std::to_string(w[1]), std::to_string(w[0] / (lstm ? 4 : 3))}};
      if (node.params.size() == 2) call.arguments.push_back("bias=False");
      call.arguments.push_back("batch_first=True");
      return call;
    }
    case Op::kPositionEmbedding:
    case Op::kEmbedding:
      return embedding_layer(node, w);
    default:
      return {};
  }
}

std::string text_of(const Call& call) {
  return fmt::format("{}({}){}", call.head, join(call.arguments, ", "), call.tail);
}

Call layer_for(const Request& request, const ir::Node& node, const std::vector<ir::Type>& types) {
  Call call = trained_layer(request, node, types);
  const bool frozen = request.workload.parameters[static_cast<size_t>(node.params[0].param)].frozen;
  if (frozen && !request.training.predicts()) call.tail = ".requires_grad_(False)";
  if (stored_in_half(request)[static_cast<size_t>(node.params[0].param)])
    call.arguments.push_back("dtype=torch." + precision_of(request).half);
  return call;
}

}  // namespace

std::string per_axis(const std::vector<int64_t>& v) {
  return all_are(v, v[0]) ? std::to_string(v[0]) : python_tuple(v);
}

Result<Modules> Modules::plan(const Request& request, const std::vector<ir::Type>& types,
                              const Stretch& stretch, const Blocks& blocks) {
  Modules modules(request, stretch, blocks);
  struct Item {
    const Sequence* sequence = nullptr;
    const Recurrence* recurrence = nullptr;
    const Block* block = nullptr;
    const ir::Node* node = nullptr;
  };
  std::vector<Item> items;
  modules.sequences_ = find_sequences(request, types, stretch, blocks);
  for (Recurrence& found : find_recurrences(request.workload, stretch.first, stretch.end)) {
    bool apart = !stretch.relative(found.path).empty() && found.path != stretch.path;
    for (int n = found.first; n < found.end; ++n) apart = apart && blocks.at(n, stretch) == nullptr;
    if (apart) modules.recurrences_.push_back(std::move(found));
  }
  modules.loops_ = Loops(request.workload, types, all_nodes(request.workload)).in(stretch, blocks);
  modules.cells_ = find_cells(request, types, stretch, blocks, modules.loops_);
  for (int n = stretch.first; n < stretch.end; ++n) {
    if (const Sequence* sequence = modules.sequence_at(n)) {
      items.push_back({.sequence = sequence});
      n = sequence->end - 1;
      continue;
    }
    if (const Recurrence* recurrence = modules.recurrence_at(n)) {
      items.push_back({.recurrence = recurrence});
      n = recurrence->end - 1;
      continue;
    }
    const ir::Node& node = request.workload.nodes[static_cast<size_t>(n)];
    if (node.op == Op::kDropout && modules.in_other_iteration(n)) continue;
    items.push_back({.block = blocks.at(n, stretch), .node = &node});
    if (items.back().block != nullptr) {
      n = items.back().block->stretch.end - 1;
    } else if (node.op == Op::kDropout) {
      modules.dropouts_[node.real("rate")];
    }
  }
  for (const Item& item : items) {
    CHECK_OK(item.sequence != nullptr                 ? modules.add_sequence(*item.sequence, types)
             : item.recurrence != nullptr             ? modules.add_recurrence(*item.recurrence, types)
             : item.block != nullptr                  ? modules.add_block(*item.block)
             : modules.cell_of(*item.node) != nullptr ? modules.add_cell(*modules.cell_of(*item.node))
                                                      : modules.add_node(*item.node, types));
  }
  modules.make_weights(modules.root_);
  return modules;
}

Status Modules::check_names(const ir::Workload& workload) {
  for (const ir::Parameter& inner : workload.parameters) {
    for (const ir::Parameter& outer : workload.parameters) {
      if (!inner.name.starts_with(outer.name + ".")) continue;
      return Error{.message = "PyTorch cannot hold both '" + outer.name + "' and '" + inner.name + "'",
                   .remedy = "rename one of the parameters"};
    }
  }
  return Done{};
}

bool Modules::Entry::list() const {
  if (!items.empty()) return true;
  for (size_t i = 0; i < children.size(); ++i)
    if (children[i].key != std::to_string(i)) return false;
  return loose.empty() && !children.empty();
}

std::string Modules::expression(const std::string& path) const {
  const std::vector<std::string> parts = keys_of(path);
  std::string text = "self";
  const Entry* at = &root_;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool attribute = i == 0 || (!at->list() && is_attribute(parts[i]));
    text = attribute    ? member(text, parts[i])
           : at->list() ? fmt::format("{}[{}]", text, parts[i])
                        : fmt::format("{}[\"{}\"]", text, parts[i]);
    at = &*std::find_if(at->children.begin(), at->children.end(),
                        [&](const Entry& child) { return child.key == parts[i]; });
  }
  return text;
}

std::string Modules::module_of(const ir::Node& node) const {
  const auto found = module_of_.find(&node);
  return found == module_of_.end() ? "" : expression(found->second);
}

std::string Modules::module_of(const Block& block) const {
  return expression(stretch_.relative(block.stretch.path));
}

// Example: blocks encoder.0, encoder.1 and encoder.2 give "self.encoder" if encoder is an nn.ModuleList of
// these three. forward() then says `for block in self.encoder: x = block(x)`. If the list has a fourth
// module the result is "", because the loop would call that too.
std::string Modules::list_of(const std::vector<const Block*>& blocks) const {
  std::vector<std::string> paths;
  for (const Block* block : blocks) paths.push_back(stretch_.relative(block->stretch.path));
  return list_of(paths);
}

std::string Modules::list_of(const std::vector<const Sequence*>& sequences) const {
  std::vector<std::string> paths;
  for (const Sequence* sequence : sequences) paths.push_back(sequence->path);
  return list_of(paths);
}

std::string Modules::list_of(const std::vector<std::string>& paths) const {
  const std::string path = layer_of(paths[0]);
  const Entry* at = &root_;
  for (const std::string& key : keys_of(path)) {
    const auto found = std::find_if(at->children.begin(), at->children.end(),
                                    [&](const Entry& child) { return child.key == key; });
    if (found == at->children.end()) return "";
    at = &*found;
  }
  if (!at->list() || !at->items.empty() || at->children.size() != paths.size()) return "";
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i] != fmt::format("{}.{}", path, i)) return "";
  }
  return expression(path);
}

std::string Modules::parameter(ir::ParamId id) const {
  const Place& place = held_.at(id);
  return member(expression(place.path), place.leaf);
}

Status Modules::add_block(const Block& block) {
  TRY(Entry* const entry, insert(stretch_.relative(block.stretch.path)));
  entry->layer = {blocks_->family(block).name, blocks_->arguments(block)};
  entry->block = true;
  return Done{};
}

Status Modules::add_node(const ir::Node& node, const std::vector<ir::Type>& types) {
  if (node.op == Op::kDropout) add_dropout(node);
  if (node.params.empty()) return Done{};
  const std::string path = stretch_.relative(torch_layer(request_->workload, node, true));
  if (const auto old = layers_.find(path); !path.empty() && old != layers_.end()) {
    const ir::Node& first = *old->second;
    if (first.op == node.op && first.params == node.params && first.attributes == node.attributes &&
        types[static_cast<size_t>(first.inputs[0])].shape.size() ==
            types[static_cast<size_t>(node.inputs[0])].shape.size()) {
      module_of_[&node] = module_of_[&first];
    }
    return Done{};
  }
  const bool held = std::any_of(node.params.begin(), node.params.end(),
                                [this](const ir::Slot& slot) { return held_.contains(slot.param); });
  if (!path.empty() && !held) {
    Call layer = layer_for(*request_, node, types);
    // In a block, what other blocks of the family say must be said.
    if (stretch_.path.empty()) leave_out_fallbacks(layer.arguments);
    return add_layer(node, path, std::move(layer));
  }
  for (const ir::Slot& slot : node.params) {
    if (!held_.contains(slot.param)) CHECK_OK(add_loose(slot.param));
  }
  return Done{};
}

Status Modules::add_layer(const ir::Node& node, const std::string& path, Call layer) {
  TRY(Entry* const entry, insert(path));
  entry->layer = std::move(layer);
  layers_[path] = &node;
  module_of_[&node] = path;
  for (const ir::Slot& slot : node.params) held_[slot.param] = {path, torch_leaf(node.op, slot.name)};
  return Done{};
}

Status Modules::add_sequence(const Sequence& sequence, const std::vector<ir::Type>& types) {
  std::vector<Call> items;
  for (int n = sequence.first; n < sequence.end; ++n) {
    const ir::Node& node = request_->workload.nodes[static_cast<size_t>(n)];
    const ir::Shape& in = types[static_cast<size_t>(node.inputs[0])].shape;
    items.push_back(node.params.empty() ? module_without_parameters(node, in)
                                        : layer_for(*request_, node, types));
    if (stretch_.path.empty()) leave_out_fallbacks(items.back().arguments);
    if (!node.params.empty())
      CHECK_OK(add_layer(node, fmt::format("{}.{}", sequence.path, n - sequence.first), items.back()));
  }
  TRY(Entry* const entry, insert(sequence.path));
  entry->items = std::move(items);
  return Done{};
}

Status Modules::add_recurrence(const Recurrence& recurrence, const std::vector<ir::Type>& types) {
  const std::string path = stretch_.relative(recurrence.path);
  TRY(Entry* const entry, insert(path));
  entry->layer =
      trained_layer(*request_, request_->workload.nodes[static_cast<size_t>(recurrence.first)], types);
  if (recurrence.layers > 1)
    entry->layer.arguments.push_back(fmt::format("num_layers={}", recurrence.layers));
  if (recurrence.both) entry->layer.arguments.push_back("bidirectional=True");
  for (int n = recurrence.first; n < recurrence.end; ++n) {
    const ir::Node& node = request_->workload.nodes[static_cast<size_t>(n)];
    if (!node.params.empty()) module_of_[&node] = path;
  }
  for (const auto& [param, leaf] : recurrence.leaves) held_[param] = {path, leaf};
  return Done{};
}

Status Modules::add_cell(const Cell& cell) {
  const std::string path = stretch_.relative(cell.path);
  if (held_.contains(cell.leaves.begin()->first)) return Done{};
  TRY(Entry* const entry, insert(path));
  entry->layer = {"nn." + cell.type, {std::to_string(cell.inputs), std::to_string(cell.units)}};
  if (!cell.bias) entry->layer.arguments.push_back("bias=False");
  if (cell.relu) entry->layer.arguments.push_back("nonlinearity=\"relu\"");
  for (const auto& [param, leaf] : cell.leaves) held_[param] = {path, leaf};
  return Done{};
}

const Cell* Modules::cell_at(int node) const {
  const auto found =
      std::find_if(cells_.begin(), cells_.end(), [node](const Cell& cell) { return cell.first == node; });
  return found == cells_.end() ? nullptr : &*found;
}

// The first call of the cell whose parameters a node reads.
const Cell* Modules::cell_of(const ir::Node& node) const {
  const auto found = std::find_if(cells_.begin(), cells_.end(), [&node](const Cell& cell) {
    return !node.params.empty() && cell.leaves.contains(node.params[0].param);
  });
  return found == cells_.end() ? nullptr : &*found;
}

const Recurrence* Modules::recurrence_at(int node) const {
  const auto found = std::find_if(recurrences_.begin(), recurrences_.end(),
                                  [node](const Recurrence& recurrence) { return recurrence.first == node; });
  return found == recurrences_.end() ? nullptr : &*found;
}

bool Modules::in_other_iteration(int node) const {
  return std::any_of(loops_.begin(), loops_.end(), [node](const Loop& loop) {
    return loop.covered.contains(node) &&
           std::find(loop.body.begin(), loop.body.end(), node) == loop.body.end();
  });
}

const Sequence* Modules::sequence_at(int node) const {
  const auto found = std::find_if(sequences_.begin(), sequences_.end(),
                                  [node](const Sequence& sequence) { return sequence.first == node; });
  return found == sequences_.end() ? nullptr : &*found;
}

Status Modules::add_loose(ir::ParamId id) {
  const std::string name = stretch_.relative(request_->workload.parameters[static_cast<size_t>(id)].name);
  const std::string leaf = leaf_of(name);
  const std::string path = leaf == name ? "" : layer_of(name);
  Entry* owner = &root_;
  if (!path.empty()) {
    TRY(owner, insert(path));
  }
  if (taken_by_torch(leaf)) {
    return Error{.message = "PyTorch cannot hold a parameter '" + name + "': nn.Module has an attribute '" +
                            leaf + "'",
                 .remedy = "rename the parameter"};
  }
  owner->loose.push_back(id);
  held_[id] = {path, leaf};
  return Done{};
}

Result<Modules::Entry*> Modules::insert(const std::string& path) {
  Entry* at = &root_;
  for (const std::string& key : keys_of(path)) {
    if (taken_by_torch(key)) {
      return Error{
          .message = "PyTorch cannot hold a layer '" + path + "': nn.Module has an attribute '" + key + "'",
          .remedy = "rename the parameters of this layer"};
    }
    const auto found = std::find_if(at->children.begin(), at->children.end(),
                                    [&key](const Entry& child) { return child.key == key; });
    if (found != at->children.end()) {
      at = &*found;
      continue;
    }
    at->children.push_back({.key = key});
    at = &at->children.back();
  }
  return at;
}

// One for all of a rate: it has no state.
void Modules::add_dropout(const ir::Node& node) {
  if (const std::string& made = dropouts_.at(node.real("rate")); !made.empty()) {
    module_of_[&node] = made;
    return;
  }
  const auto used = [this](const std::string& key) {
    return std::any_of(root_.children.begin(), root_.children.end(),
                       [&key](const Entry& child) { return child.key == key; }) ||
           std::any_of(request_->workload.parameters.begin(), request_->workload.parameters.end(),
                       [&](const ir::Parameter& p) {
                         const std::string name =
                             p.name.starts_with(stretch_.path) ? stretch_.relative(p.name) : "";
                         return !name.empty() && split(name, ".")[0] == key;
                       });
  };
  std::string key = dropouts_.size() > 1 ? "dropout1" : "dropout";
  for (int n = 2; used(key); ++n) key = fmt::format("dropout{}", n);
  root_.children.push_back({.key = key, .layer = {"nn.Dropout", {"p=" + python_real(node.real("rate"))}}});
  module_of_[&node] = dropouts_[node.real("rate")] = key;
}

// A module that has nothing but a trained weight is an object of a class of the script's.
void Modules::make_weights(Entry& entry) const {
  for (Entry& child : entry.children) {
    make_weights(child);
    if (!child.layer.head.empty() || !child.children.empty() || child.loose.size() != 1) continue;
    const auto id = static_cast<size_t>(child.loose[0]);
    const ir::Parameter& p = request_->workload.parameters[id];
    const bool plain = ir::trainable(p) && (p.role == Role::kWeight || p.role == Role::kTable);
    if (!plain || leaf_of(p.name) != "weight" || stored_in_half(*request_)[id] ||
        request_->training.track == ir::Track::kAsIs)
      continue;
    child.layer = {"Weight", {}};
    for (const int64_t size : p.shape) child.layer.arguments.push_back(std::to_string(size));
    child.loose.clear();
  }
}

void Modules::print(CodeWriter& out) const {
  for (const Entry& entry : root_.children) {
    print_child(out, entry);
    if (entry.layer.head.empty()) print_loose(out, entry.key, entry);
  }
  Entry top;
  top.loose = root_.loose;
  print_loose(out, "", top);
  print_frozen_biases(out);
}

bool Modules::freezes_biases() const {
  const auto& nodes = request_->workload.nodes;
  return std::any_of(nodes.begin(), nodes.end(), [this](const ir::Node& node) {
    return node.op == Op::kLstm && node.has("bias") && !module_of(node).empty();
  });
}

void Modules::print_frozen_biases(CodeWriter& out) const {
  std::set<std::string> done;
  for (const ir::Node& node : request_->workload.nodes) {
    const std::string module = module_of(node);
    if (node.op != Op::kLstm || !node.has("bias") || module.empty()) continue;
    std::string second = parameter(node.param("bias"));  // self.lstm.bias_ih_l0
    second.replace(second.rfind("bias_ih"), 7, "bias_hh");
    if (!done.insert(second).second) continue;
    if (done.size() == 1) out.line("# One bias, as in other frameworks: torch's second one stays zero.");
    out.call("nn.init.zeros_", {second}, ".requires_grad_(False)");
  }
}

// What sits in the model itself.
void Modules::print_child(CodeWriter& out, const Entry& entry) const {
  if (is_attribute(entry.key)) return print_entry(out, entry, fmt::format("self.{} = ", entry.key), "");
  if (!entry.layer.head.empty()) return out.call("self.add_module", {quote(entry.key), text_of(entry.layer)});
  // self.add_module("0", nn.ModuleDict(...)) would nest too deeply to read.
  print_entry(out, entry, "blocks = ", "");
  out.line(fmt::format("self.add_module(\"{}\", blocks)", entry.key));
}

void Modules::print_entry(CodeWriter& out, const Entry& entry, const std::string& head,
                          const std::string& tail) const {
  if (!entry.layer.head.empty())
    return out.call(head + entry.layer.head, entry.layer.arguments, entry.layer.tail + tail);
  if (entry.children.empty()) return out.line(head + "nn.Module()" + tail);
  if (!entry.items.empty()) return print_sequence(out, head, entry, tail);
  if (entry.list()) return print_list(out, head, entry, tail);
  if (print_short(out, head, entry, tail)) return;
  out.line(head + "nn.ModuleDict(");
  {
    const auto parentheses = out.indent();
    out.line("{");
    {
      const auto braces = out.indent();
      for (const Entry& child : entry.children) print_entry(out, child, quote(child.key) + ": ", ",");
    }
    out.line("}");
  }
  out.line(")" + tail);
}

// nn.ModuleDict({"proj": nn.Linear(8, 8)}), where that is one line or two. In a block numbers become names.
bool Modules::print_short(CodeWriter& out, const std::string& head, const Entry& entry,
                          const std::string& tail) const {
  constexpr size_t kName = 12;
  std::vector<std::string> items;
  size_t room = kColumns - static_cast<size_t>(out.column()) - 6;
  for (const Entry& child : entry.children) {
    const bool list = child.layer.head.empty() && child.list() && child.items.empty();
    const std::vector<Entry>& parts = list ? child.children : std::vector<Entry>{child};
    std::vector<std::string> texts;
    for (const Entry& part : parts) {
      if (part.layer.head.empty()) return false;
      texts.push_back(text_of(part.layer));
    }
    const std::string text = list ? fmt::format("nn.ModuleList([{}])", join(texts, ", ")) : texts[0];
    items.push_back(fmt::format("\"{}\": {}", child.key, text));
    if (stretch_.path.empty()) continue;
    if (text.find("stride=") != std::string::npos) return false;  // "stride=1" is left out of calls alone
    const size_t names = 8 + kName * static_cast<size_t>(std::ranges::count(text, ','));
    room -= std::min(room, names);
  }
  const std::string all = fmt::format("{{{}}}", join(items, ", "));
  if (all.size() > room) return false;
  out.call(head + "nn.ModuleDict", {all}, tail);
  return true;
}

// Equal modules are made in a loop.
void Modules::print_list(CodeWriter& out, const std::string& head, const Entry& entry,
                         const std::string& tail) const {
  const auto text = [](const Entry& e) {
    std::string all = text_of(e.layer);
    for (const Call& item : e.items) all += text_of(item);
    return all;
  };
  const auto every = [&](const auto& holds) {
    return std::all_of(entry.children.begin(), entry.children.end(), holds);
  };
  const Entry& first = entry.children[0];
  const bool layers = every([](const Entry& e) { return !e.layer.head.empty(); });
  const bool equal = entry.children.size() > 1 && every([&](const Entry& e) {
                       return text(e) == text(first) && (layers || !e.items.empty());
                     });
  const std::string loop = fmt::format("for _ in range({})", entry.children.size());
  if (equal && layers)
    return out.call(head + "nn.ModuleList", {fmt::format("[{} {}]", text(first), loop)}, tail);
  std::vector<std::string> modules;
  for (const Entry& child : entry.children) modules.push_back(text(child));
  const std::string flat = fmt::format("{}nn.ModuleList([{}]){}", head, join(modules, ", "), tail);
  if (layers && static_cast<size_t>(out.column()) + (stretch_.path.empty() ? 0 : 8) + flat.size() <= kColumns)
    return out.call(head + "nn.ModuleList", {fmt::format("[{}]", join(modules, ", "))}, tail);
  out.line(head + "nn.ModuleList(");
  {
    const auto parentheses = out.indent();
    out.line("[");
    {
      const auto brackets = out.indent();
      if (equal) {
        print_entry(out, first, "", "");
        out.line(loop);
      } else {
        for (const Entry& child : entry.children) print_entry(out, child, "", ",");
      }
    }
    out.line("]");
  }
  out.line(")" + tail);
}

void Modules::print_sequence(CodeWriter& out, const std::string& head, const Entry& entry,
                             const std::string& tail) const {
  out.line(head + "nn.Sequential(");
  {
    const auto inside = out.indent();
    for (const Call& item : entry.items) out.call(item.head, item.arguments, item.tail + ",");
  }
  out.line(")" + tail);
}

void Modules::print_loose(CodeWriter& out, const std::string& path, const Entry& entry) const {
  const std::string owner = expression(path);
  const std::vector<bool> in_half = stored_in_half(*request_);
  for (const ir::ParamId id : entry.loose) {
    const ir::Parameter& p = request_->workload.parameters[static_cast<size_t>(id)];
    const std::string leaf = leaf_of(p.name);
    const bool ones = p.role == Role::kScale || p.role == Role::kRunningVar;
    const bool zeros = p.role == Role::kShift || p.role == Role::kRunningMean;
    const std::string half =
        in_half[static_cast<size_t>(id)] ? ", dtype=torch." + precision_of(*request_).half : "";
    const std::string value = fmt::format("torch.{}({}{})",
                                          ones    ? "ones"
                                          : zeros ? "zeros"
                                                  : "empty",
                                          p.shape.empty() ? "()" : join(p.shape, ", "), half);
    if (p.role == Role::kCache) {
      const bool grows = cache_grows(request_->settings);
      const std::string type = precision_of(*request_).half;
      const std::string zeros_of =
          fmt::format("torch.zeros(BATCH_SIZE, {}, {}, {}{})", grows ? 0 : p.shape[1], p.shape[2], p.shape[3],
                      type.empty() ? "" : ", dtype=torch." + type);
      if (grows) {
        out.call(owner + ".add_module", {quote(leaf), fmt::format("GrowingCache({})", zeros_of)});
        continue;
      }
      out.call(owner + ".register_buffer", {quote(leaf), zeros_of, "persistent=False"});
      continue;
    }
    if (!ir::trainable(p)) {
      out.call(owner + ".register_buffer", {quote(leaf), value});
    } else if (is_attribute(leaf)) {
      out.call(fmt::format("{}.{} = nn.Parameter", owner, leaf), {value});
    } else {
      out.call(owner + ".register_parameter", {quote(leaf), fmt::format("nn.Parameter({})", value)});
    }
    if (request_->training.track == ir::Track::kAsIs) print_own_init(out, parameter(id), id);
  }
  for (const Entry& child : entry.children) {
    if (child.layer.head.empty()) print_loose(out, path + "." + child.key, child);
  }
}

// The initial value that the nn layer of such a parameter would have given it.
void Modules::print_own_init(CodeWriter& out, const std::string& name, ir::ParamId id) const {
  const ir::Parameter& p = request_->workload.parameters[static_cast<size_t>(id)];
  const int64_t fan_in = torch_fan_in(request_->workload, id);
  // With a = sqrt 5 the bound is 1 / sqrt of the weight's own fan-in.
  if (p.role == Role::kWeight && ir::product(p.shape, 1, p.shape.size()) == fan_in) {
    out.call("nn.init.kaiming_uniform_", {name, "a=5**0.5"});
  } else if (p.role == Role::kWeight || p.role == Role::kBias) {
    out.call("nn.init.uniform_", {name, fmt::format("-({}**-0.5)", fan_in), fmt::format("{}**-0.5", fan_in)});
  } else if (p.role == Role::kTable) {
    out.call("nn.init.normal_", {name});
  }
}

}  // namespace bakeoff::emit::torch
