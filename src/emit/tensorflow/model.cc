// A tf.Module keeps its variables in attributes, and their names are paths through these:
// "encoder.0.query_weight". The same paths tell a worker where each weight of the common file belongs
// (targets()), so attributes, constructor calls and paths are all made from one walk over a stretch
// (attributes_of). Blocks whose paths are 0, 1, 2, ... below one name are a list, and a loop over it in
// __call__; others are attributes.
//
// A class of a block gets its weights by name: `weights[f"{prefix}.query_weight"]`. So one class serves all
// blocks of a family, and the script needs no table of which weight is whose.

#include "emit/tensorflow/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/texts.h"
#include "emit/devices.h"
#include "emit/precision.h"
#include "emit/python_script.h"
#include "emit/tensorflow/ops.h"

namespace bakeoff::emit::tensorflow {
namespace {

using ir::Role;

// Names that the class of a model has.
const char* const kTaken =
    "name name_scope variables trainable_variables non_trainable_variables submodules with_name_scope";

// self.encoder[0](x), or a loop over all of self.encoder
class Calls : public BlockCalls {
 public:
  explicit Calls(const Attributes& attributes) : attributes_(attributes) {}

  size_t loop(const std::vector<const Block*>& chain) const override {
    const Attributes::Blocks& list = owner(*chain[0]);
    const size_t size = list.blocks.size();
    return list.list && chain.size() >= size &&
                   std::equal(list.blocks.begin(), list.blocks.end(), chain.begin())
               ? size
               : 1;
  }

  void print(CodeWriter& out, const std::string& variable, const std::vector<std::string>& inputs,
             const std::vector<const Block*>& chain) const override {
    const Attributes::Blocks& list = owner(*chain[0]);
    if (chain.size() > 1) {
      out.line(fmt::format("for block in self.{}:", list.name));
      const auto body = out.indent();
      return out.call(variable + " = block", inputs);
    }
    const auto at = std::find(list.blocks.begin(), list.blocks.end(), chain[0]) - list.blocks.begin();
    out.call(fmt::format("{} = self.{}{}", variable, list.name, list.list ? fmt::format("[{}]", at) : ""),
             inputs);
  }

 private:
  const Attributes::Blocks& owner(const Block& block) const {
    return *std::find_if(attributes_.blocks.begin(), attributes_.blocks.end(),
                         [&](const Attributes::Blocks& b) {
                           return std::find(b.blocks.begin(), b.blocks.end(), &block) != b.blocks.end();
                         });
  }

  const Attributes& attributes_;
};

}  // namespace

Model::Model(const Request& request, const Graph& graph, const Namer& names, std::string class_name)
    : request_(request), graph_(graph), names_(names), class_(std::move(class_name)) {
  Namer taken = names_;
  taken.reserve(class_);
  blocks_ =
      Blocks::plan(request.workload, graph.types, {.names = taken, .in_body = "self."},
                   [this](const Stretch& stretch, const Blocks& blocks) { return block(stretch, blocks); });
  targets_.resize(request.workload.parameters.size());
  find_targets({"", 0, request.workload.model_end()}, "");
}

bool Model::equalised() const { return emit::equalised(request_); }

Attributes Model::attributes_of(const Stretch& stretch, const Blocks& blocks) const {
  const ir::Workload& workload = request_.workload;
  Attributes all;
  Namer names(words(kTaken));
  std::vector<const Block*> found;
  for (int n = stretch.first; n < stretch.end; ++n) {
    if (const Block* block = blocks.at(n, stretch)) {
      found.push_back(block);
      n = block->stretch.end - 1;
      continue;
    }
    for (const ir::Slot& slot : workload.nodes[static_cast<size_t>(n)].params) {
      const std::string& name = workload.parameters[static_cast<size_t>(slot.param)].name;
      if (!all.parameters.contains(slot.param))
        all.parameters[slot.param] = names.name(name, public_identifier(stretch.relative(name)));
    }
  }
  for (size_t i = 0; i < found.size();) {
    // Successive blocks 0, 1, 2, ... below one path.
    const std::string& path = found[i]->stretch.path;
    const std::string parent = layer_of(path);
    size_t end = i;
    while (end < found.size() && parent.size() > stretch.path.size() && parent != path &&
           found[end]->stretch.path == fmt::format("{}.{}", parent, end - i))
      ++end;
    const bool list = end > i;
    if (!list) end = i + 1;
    const std::string& whole = list ? parent : path;
    all.blocks.push_back({names.name(whole, public_identifier(stretch.relative(whole))),
                          {found.begin() + static_cast<long>(i), found.begin() + static_cast<long>(end)},
                          list});
    i = end;
  }
  return all;
}

void Model::find_targets(const Stretch& stretch, const std::string& path) {
  const Attributes attributes = attributes_of(stretch, blocks_);
  for (const auto& [id, name] : attributes.parameters) targets_[static_cast<size_t>(id)] = path + name;
  for (const Attributes::Blocks& attribute : attributes.blocks) {
    for (size_t i = 0; i < attribute.blocks.size(); ++i) {
      const std::string index = attribute.list ? fmt::format(".{}", i) : "";
      find_targets(attribute.blocks[i]->stretch, fmt::format("{}{}{}.", path, attribute.name, index));
    }
  }
}

std::optional<Printed> Model::block(const Stretch& stretch, const Blocks& blocks) const {
  const Attributes attributes = attributes_of(stretch, blocks);
  CodeWriter layers, body;
  print_init(layers, stretch, attributes, blocks);
  const auto functions = op_functions(request_.settings.at("jit_compile") == "true");
  Printed printed = printer(body, stretch, attributes).print(functions, stretch, blocks, Calls(attributes));
  printed.layers = std::move(layers);
  printed.body = std::move(body);
  return printed;
}

ForwardPrinter Model::printer(CodeWriter& out, const Stretch& stretch, const Attributes& attributes) const {
  std::vector<std::string> params(request_.workload.parameters.size());
  for (const auto& [id, name] : attributes.parameters) params[static_cast<size_t>(id)] = "self." + name;
  ForwardPrinter made(out, graph_, "tf.transpose", params,
                      stretch.path.empty() ? names_ : Namer(reserved_names()), equalised(),
                      precision_of(request_).mixed() ? "half" : "");
  made.stored_in_half(stored_in_half(request_));
  return made;
}

void Model::print_init(CodeWriter& out, const Stretch& stretch, const Attributes& attributes,
                       const Blocks& blocks) const {
  const std::vector<bool> in_half = stored_in_half(request_);
  for (const auto& [id, name] : attributes.parameters) {
    if (const ir::Parameter& p = request_.workload.parameters[static_cast<size_t>(id)];
        p.role == Role::kCache) {
      const ir::Shape& s = p.shape;
      out.call(fmt::format("self.{} = empty_cache", name),
               {"weights", std::to_string(s[1]), "BATCH_SIZE", std::to_string(s[2]), std::to_string(s[3])});
      continue;
    }
    const std::string key =
        stretch.path.empty() ? fmt::format("\"{}\"", name) : fmt::format("f\"{{prefix}}.{}\"", name);
    std::vector<std::string> arguments = {initial_value(id, key)};
    if (in_half[static_cast<size_t>(id)]) arguments[0] = fmt::format("half({})", arguments[0]);
    if (!ir::trainable(request_.workload.parameters[static_cast<size_t>(id)]))
      arguments.push_back("trainable=False");
    const Role role = request_.workload.parameters[static_cast<size_t>(id)].role;
    if (on_devices(request_) && (role == Role::kRunningMean || role == Role::kRunningVar)) {
      arguments.emplace_back("synchronization=tf.VariableSynchronization.ON_READ");
      arguments.emplace_back("aggregation=tf.VariableAggregation.MEAN");
    }
    out.call(fmt::format("self.{} = tf.Variable", name), arguments);
  }
  for (const Attributes::Blocks& attribute : attributes.blocks) print_blocks(out, attribute, stretch, blocks);
}

void Model::print_blocks(CodeWriter& out, const Attributes::Blocks& attribute, const Stretch& stretch,
                         const Blocks& blocks) const {
  const std::string prefix = stretch.path.empty() ? "" : "{prefix}.";
  // weights, "encoder.0", stride=2
  const auto arguments = [&](const Block& block, const std::string& index) {
    std::vector<std::string> all;
    const bool formatted = !prefix.empty() || index.find('{') != std::string::npos;
    if (equalised())
      all = {"weights", fmt::format("{}\"{}{}{}\"", formatted ? "f" : "", prefix, attribute.name, index)};
    const std::vector<std::string> options = blocks.arguments(block, true);
    all.insert(all.end(), options.begin(), options.end());
    return all;
  };
  const auto text = [&](const Block& block, const std::string& index) {
    return fmt::format("{}({})", blocks.family(block).name, join(arguments(block, index), ", "));
  };
  const Block& first = *attribute.blocks[0];
  const std::string head = fmt::format("self.{} = ", attribute.name);
  if (!attribute.list) return out.call(head + blocks.family(first).name, arguments(first, ""));
  const size_t size = attribute.blocks.size();
  const bool equal =
      size > 1 && std::all_of(attribute.blocks.begin(), attribute.blocks.end(),
                              [&](const Block* block) { return text(*block, "") == text(first, ""); });
  std::vector<std::string> items;
  for (size_t i = 0; i < size; ++i) items.push_back(text(*attribute.blocks[i], fmt::format(".{}", i)));
  if (equal) {
    const std::string count = fmt::format("for {} in range({})", equalised() ? "i" : "_", size);
    const std::string item = text(first, ".{i}");
    if (out.column() + head.size() + item.size() + count.size() + 3 <= 88)
      return out.line(fmt::format("{}[{} {}]", head, item, count));
    out.line(head + "[");
    {
      const auto inside = out.indent();
      out.call(blocks.family(first).name, arguments(first, ".{i}"));
      out.line(count);
    }
    return out.line("]");
  }
  // In a class it stands further in, and what is a number here may be the name of a parameter.
  const size_t names = 12 * std::min<size_t>(first.values.size(), 6),
               room = stretch.path.empty() ? 88 : 80 - names;
  const std::string flat = fmt::format("{}[{}]", head, join(items, ", "));
  if (out.column() + flat.size() <= room) return out.line(flat);
  out.line(head + "[");
  {
    const auto inside = out.indent();
    for (size_t i = 0; i < size; ++i) {
      const Block& block = *attribute.blocks[i];
      out.call(blocks.family(block).name, arguments(block, fmt::format(".{}", i)), ",");
    }
  }
  out.line("]");
}

std::string Model::initial_value(ir::ParamId id, const std::string& key) const {
  const ir::Parameter& p = request_.workload.parameters[static_cast<size_t>(id)];
  if (equalised()) return fmt::format("weights[{}]", key);
  const std::string shape = python_tuple(stored_shape(graph_.plan.params[static_cast<size_t>(id)], p.shape));
  switch (p.role) {
    case Role::kWeight:
      return fmt::format("glorot_uniform({})", shape);
    case Role::kTable:
      return fmt::format("tf.random.uniform({}, -0.05, 0.05)", shape);
    case Role::kScale:
    case Role::kRunningVar:
      return fmt::format("tf.ones({})", shape);
    default:
      return fmt::format("tf.zeros({})", shape);
  }
}

void Model::print_family(CodeWriter& out, const Family& family) const {
  out.line(fmt::format("class {}(tf.Module):", family.name));
  const auto inside = out.indent();
  std::vector<std::string> parameters = {"self"};
  if (equalised()) parameters.insert(parameters.end(), {"weights", "prefix"});
  const std::vector<std::string> declared = family.declared();
  parameters.insert(parameters.end(), declared.begin(), declared.end());
  out.call("def __init__", parameters, ":");
  {
    const auto init = out.indent();
    out.line("super().__init__()");
    for (const Parameter& p : family.parameters) {
      if (p.in_body) out.line(fmt::format("self.{0} = {0}", p.name));
    }
    for (const Statement& s : family.text.layers.statements()) out.statement(s);
  }
  out.blank();
  std::vector<std::string> inputs = {"self"};
  inputs.insert(inputs.end(), family.text.formals.begin(), family.text.formals.end());
  out.call("def __call__", inputs, ":");
  {
    const auto body = out.indent();
    for (const Statement& s : family.text.body.statements()) out.statement(s);
  }
  out.blank(2);
}

void Model::print(CodeWriter& out) const {
  for (const Family& family : blocks_.families()) print_family(out, family);
  const Stretch whole{"", 0, request_.workload.model_end()};
  const Attributes attributes = attributes_of(whole, blocks_);
  out.line(fmt::format("class {}(tf.Module):", class_));
  const auto body = out.indent();
  out.line(equalised() ? "def __init__(self, weights):" : "def __init__(self):");
  {
    const auto init = out.indent();
    out.line("super().__init__()");
    print_init(out, whole, attributes, blocks_);
  }
  out.blank();
  ForwardPrinter forward = printer(out, whole, attributes);
  std::vector<std::string> parameters = graph_.forward_names();
  parameters.insert(parameters.begin(), "self");
  out.call("def __call__", parameters, ":");
  {
    const auto call = out.indent();
    const bool mixed = precision_of(request_).mixed();
    if (mixed) print_half_inputs(out, graph_);
    forward.print(op_functions(request_.settings.at("jit_compile") == "true"), blocks_, Calls(attributes));
    print_return(out, forward.results(mixed ? "tf.cast({}, tf.float32)" : "{}"));
  }
  out.blank(2);
}

}  // namespace bakeoff::emit::tensorflow
