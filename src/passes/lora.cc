// Linear layers are found by what they compute, the op `linear`, not by the names of their modules. Which of them are
// meant goes by the weights' names, because those are all that an imported network keeps of its modules.
//
// The new matrices are siblings of the layer ("q_proj_lora_A" beside "q_proj") and not parts of it: so each of the three
// stays a plain layer in every framework, and files with the weights of the base fit as they are.

#include "passes/lora.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/nearest.h"
#include "base/texts.h"
#include "ir/op_table.h"
#include "ir/verify.h"

namespace bakeoff::passes {
namespace {

using ir::Op;

// The layer of a weight: "fc" of "fc.weight", and the whole name where it has another ending.
std::string layer_of(std::string name) {
  constexpr std::string_view kEnding = ".weight";
  if (name.size() > kEnding.size() && name.ends_with(kEnding)) name.resize(name.size() - kEnding.size());
  return name;
}

bool matches(const std::string& target, const std::string& weight) {
  const auto fits = [](const std::string& pattern, const std::string& name) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  };
  const std::string layer = layer_of(weight);
  return fits(target, weight) || fits(target, layer) || fits("*." + target, layer);
}

class Pass {
 public:
  Pass(const ir::Workload& workload, const Lora& options) : from_(workload), options_(options) {}

  Result<ir::Workload> run() {
    CHECK_OK(check_numbers());
    find_layers();
    for (const std::string& target : options_.targets) CHECK_OK(choose(target));
    std::set<std::string> layers;
    for (const ir::ParamId id : chosen_) {
      if (!layers.insert(layer_of(parameter(id).name)).second)
        return Error{.message = fmt::format("lora.targets names two weights of a layer '{}'",
                                            layer_of(parameter(id).name)),
                     .remedy = "rename one of them, or name one alone"};
    }
    rewrite();
    CHECK_OK(ir::infer(made_));
    return std::move(made_);
  }

 private:
  Status check_numbers() const {
    if (options_.rank < 1)
      return Error{.message = fmt::format("lora.rank cannot be {}", options_.rank), .remedy = "1 or more"};
    if (!(options_.alpha > 0) || !std::isfinite(options_.alpha))
      return Error{.message = fmt::format("lora.alpha cannot be {}", options_.alpha),
                   .remedy = "above 0: alpha / rank is what B A x is multiplied with"};
    if (options_.targets.empty())
      return Error{.message = "lora.targets is empty", .remedy = "name layers, for example \"q_proj\""};
    for (const ir::Parameter& p : from_.parameters) {
      if (p.name.find("lora_A") != std::string::npos || p.name.find("lora_B") != std::string::npos)
        return Error{.message = fmt::format("'{}' has LoRA already: '{}'", from_.name, p.name),
                     .remedy = "remove [lora], or take the network without it"};
    }
    return Done{};
  }

  void find_layers() {
    for (const ir::Node& node : from_.nodes) {
      for (const ir::Slot& slot : node.params) {
        if (!slot.name.starts_with("weight") || parameter(slot.param).role == ir::Role::kScale) continue;
        if (node.op == Op::kLinear)
          layers_.insert(slot.param);
        else
          others_.emplace(slot.param, node.op);
      }
    }
  }

  Status choose(const std::string& target) {
    bool found = false;
    for (ir::ParamId id = 0; id < static_cast<int>(from_.parameters.size()); ++id) {
      const ir::Parameter& p = parameter(id);
      if (!matches(target, p.name)) continue;
      const auto other = others_.find(id);
      // A table of constants is no layer.
      if (other != others_.end() && (other->second != Op::kParameter || layers_.contains(id)))
        return Error{
            .message = fmt::format("'{}' of lora.targets names '{}', which is the weight of {}{}", target,
                                   p.name, ir::info(other->second).name,
                                   layers_.contains(id) ? " and of a linear layer" : ""),
            .remedy = fmt::format("LoRA stands beside linear layers of their own; {}", names(target))};
      if (!layers_.contains(id)) continue;
      const int64_t most = std::min(p.shape[0], p.shape[1]);
      if (options_.rank > most)
        return Error{.message = fmt::format("lora.rank = {} is above the rank that '{}', {} by {}, can have",
                                            options_.rank, p.name, p.shape[0], p.shape[1]),
                     .remedy = fmt::format("set lora.rank to {} or less, or take other targets", most)};
      chosen_.insert(id);
      found = true;
    }
    if (found) return Done{};
    return Error{
        .message = fmt::format("'{}' of lora.targets names no linear layer of '{}'", target, from_.name),
        .remedy = names(target)};
  }

  // What can be named: the nearest, or the last parts of the layers' names.
  std::string names(const std::string& target) const {
    constexpr size_t kMost = 12;
    std::vector<std::string> known;
    for (const ir::ParamId id : layers_) {
      if (others_.contains(id)) continue;
      const std::string name = split(layer_of(parameter(id).name), ".").back();
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
    if (known.empty()) return "it has no linear layer: remove [lora]";
    const bool more = known.size() > kMost;
    if (more && nearest(target, known).empty()) known.resize(kMost);
    return fmt::format("{}{} (`bakeoff show` prints all names)", suggest(target, known), more ? ", ..." : "");
  }

  void rewrite() {
    made_ = {.name = from_.name, .inputs = from_.inputs, .parameters = {}, .nodes = {}};
    for (const ir::Input& input : from_.inputs) used_.insert(input.name);
    for (const ir::Node& node : from_.nodes) used_.insert(node.output);
    for (ir::ValueId id = 0; from_.is_input(id); ++id) values_.push_back(id);
    // First of all: no layer is then another one's, and each may be printed as a block.
    if (const double scale = options_.alpha / static_cast<double>(options_.rank); scale != 1) {
      ir::Node constant = ir::node_with_defaults(Op::kConstant);
      constant.output = fresh("lora_scale");
      ir::set_attribute(constant, "value", scale);
      scale_ = add(std::move(constant));
    }
    for (const ir::Node& node : from_.nodes) {
      ir::Node copy = node;
      for (ir::ValueId& id : copy.inputs) id = values_[static_cast<size_t>(id)];
      for (ir::Slot& slot : copy.params) slot.param = kept(slot.param);
      const ir::ParamId weight = node.op == Op::kLinear ? node.param("weight") : -1;
      values_.push_back(chosen_.contains(weight) ? adapted(std::move(copy), parameter(weight))
                                                 : add(std::move(copy)));
    }
  }

  ir::ValueId adapted(ir::Node base, const ir::Parameter& p) {
    const int64_t outputs = p.shape[0], inputs = p.shape[1];
    const std::string layer = layer_of(p.name), output = base.output;
    const ir::ValueId x = base.inputs[0];
    base.output = fresh(output + "_base");
    const ir::ValueId whole = add(std::move(base));
    const auto product = [&](const char* which, ir::ValueId of, ir::Shape shape, double init) {
      ir::Node node = ir::node_with_defaults(Op::kLinear);
      node.output = fresh(output + which);
      node.inputs = {of};
      const std::string name = layer + which + ".weight";
      node.params = {{"weight", numbered({.name = name, .shape = std::move(shape), .init = init})}};
      return add(std::move(node));
    };
    const ir::ValueId small =
        product("_lora_A", x, {options_.rank, inputs}, 1 / std::sqrt(static_cast<double>(inputs)));
    ir::ValueId delta = product("_lora_B", small, {outputs, options_.rank}, 0);
    if (scale_ >= 0) {
      delta = combined(Op::kMul, delta, scale_, fresh(output + "_lora"));
    }
    return combined(Op::kAdd, whole, delta, output);
  }

  ir::ValueId combined(Op op, ir::ValueId a, ir::ValueId b, std::string output) {
    ir::Node node = ir::node_with_defaults(op);
    node.output = std::move(output);
    node.inputs = {a, b};
    return add(std::move(node));
  }

  ir::ValueId add(ir::Node node) {
    made_.nodes.push_back(std::move(node));
    return made_.loss();
  }

  // A parameter of the base, frozen. Running statistics go on moving.
  ir::ParamId kept(ir::ParamId id) {
    ir::Parameter p = parameter(id);
    p.frozen = p.frozen || ir::trainable(p);
    p.init.reset();
    return numbered(std::move(p));
  }

  // Its number in `made_`: in order of first use, each once.
  ir::ParamId numbered(ir::Parameter p) {
    const auto [found, first] = ids_.emplace(p.name, static_cast<ir::ParamId>(ids_.size()));
    if (first) made_.parameters.push_back(std::move(p));
    return found->second;
  }

  std::string fresh(const std::string& wish) {
    std::string name = wish;
    for (int n = 2; !used_.insert(name).second; ++n) name = fmt::format("{}_{}", wish, n);
    return name;
  }

  const ir::Parameter& parameter(ir::ParamId id) const { return from_.parameters[static_cast<size_t>(id)]; }

  const ir::Workload& from_;
  const Lora& options_;
  std::set<ir::ParamId> layers_, chosen_;  // weights of linear layers
  std::map<ir::ParamId, Op> others_;       // weights of other layers, and one that reads each
  ir::Workload made_;
  std::vector<ir::ValueId> values_;  // the value in `made_` of each of `from_`
  std::map<std::string, ir::ParamId> ids_;
  std::set<std::string> used_;  // names of values
  ir::ValueId scale_ = -1;      // alpha / rank; -1: it is 1
};

}  // namespace

Result<ir::Workload> lora(const ir::Workload& workload, const Lora& options) {
  return Pass(workload, options).run();
}

}  // namespace bakeoff::passes
