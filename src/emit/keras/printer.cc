#include "emit/keras/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/texts.h"
#include "emit/helpers.h"
#include "emit/losses.h"
#include "emit/spelling.h"
#include "ir/op_table.h"

namespace bakeoff::embedded {
const std::vector<File>& keras_helpers();
}

namespace bakeoff::emit::keras {
namespace {

constexpr size_t kColumns = 88;

const Helpers& helpers_file() {
  static const Helpers all(embedded::keras_helpers(), Helpers::Copy::kAsCalled);
  return all;
}

std::vector<ir::ParamId> param_ids(const ir::Node& node) {
  std::vector<ir::ParamId> ids;
  for (const ir::Slot& slot : node.params) ids.push_back(slot.param);
  return ids;
}

// A table that is also the weight of a linear without a bias belongs to two layers.
std::pair<ir::Op, std::vector<ir::ParamId>> layer_key(const ir::Node& node) {
  return {node.op, param_ids(node)};
}

// Keras names the ops of a model itself ("add", "add_1"): a layer must not take such a name.
std::string layer_wish(const std::string& parameter) {
  static const std::set<std::string> taken = words(
      "relu gelu sigmoid tanh softmax add multiply pad transpose reshape concatenate get_item flatten "
      "copy max_pooling1d max_pooling2d average_pooling1d average_pooling2d "
      "global_average_pooling2d zero_padding1d zero_padding2d zero_padding3d cropping1d cropping2d cropping3d dropout divide layer_normalization group_normalization rms_normalization rsqrt mean up_sampling1d up_sampling2d up_sampling3d resize tensordot "
      "true_divide average_pool square power einsum where less_equal expand_dims dot_product_attention "
      "input_layer take_along_axis scatter_add");
  const std::string name = public_identifier(layer_of(parameter));
  const size_t end = name.find_last_not_of("0123456789");
  const std::string stem =
      end != std::string::npos && name[end] == '_' && end + 1 < name.size() ? name.substr(0, end) : name;
  return taken.contains(stem) ? name + "_layer" : name;
}

// Attributes that make two nodes the same layer; padding is a layer of its own.
std::vector<ir::Attribute> layer_attributes(const ir::Node& node) {
  std::vector<ir::Attribute> kept;
  for (const ir::Attribute& attribute : node.attributes) {
    if (attribute.name != "pad") kept.push_back(attribute);
  }
  return kept;
}

}  // namespace

void print_list(CodeWriter& out, const std::string& head, const std::vector<std::string>& items,
                const std::string& tail) {
  const std::string flat = fmt::format("{}[{}]{}", head, join(items, ", "), tail);
  if (static_cast<size_t>(out.column()) + flat.size() <= kColumns) return out.line(flat);
  // A long list gets a name of its own where something follows it.
  if (!tail.empty()) {
    print_list(out, "inputs = ", items);
    return out.line(head + "inputs" + tail);
  }
  out.line(head + "[");
  {
    const auto inner = out.indent();
    for (const std::string& item : items) out.line(item + ",");
  }
  out.line("]");
}

Printer::Printer(const ir::Workload& w, const std::vector<ir::Type>& t, const LayoutPlan& l,
                 const ir::Training& tr, const Dialect& d, const std::string& used, ModelNeeds& needs)
    : workload(w),
      types(t),
      plan(l),
      training(tr),
      dialect(d),
      slices(w, t, &l),
      loops(w, t, all_nodes(w), &l),
      stretch{"", 0, w.model_end()},
      backend(used),
      names_(words(
          "keras layers ops np os json argparse Path load_file save_file tf jax torch inputs build_model compile_model load_data load_weights fit "
          "outputs summed_error smoothed_cross_entropy masked_cross_entropy ctc prefix i l I O "
          "Schedule WARMUP_STEPS WARMUP_FROM DECAY_STEPS FINAL_SHARE STEP_EVERY STEP_FACTOR CLIP_NORM CLIP_VALUE EMA_DECAY ACCUMULATE NO_DECAY learning_rate")),
      readers_(last_readers(w)),
      needs_(needs) {
  for (const std::string& name : helpers_file().names()) names_.reserve(name);
  reserved_ = names_;
  for (const ir::Parameter& parameter : w.parameters) needs_.targets.push_back(parameter.name);
}

void Printer::enter(const Stretch& entered) {
  stretch = entered;
  out = CodeWriter();
  // The workload's inputs keep their names.
  std::map<ir::ValueId, std::string> inputs;
  for (const ir::ValueId id : outside_values(workload, stretch)) {
    if (keeps_name(workload, id)) inputs[id] = value_name_of_input(id);
  }
  names_ = reserved_;
  for (const auto& [_, name] : inputs) names_.reserve(name);
  input_names_ = std::move(inputs);
}

std::string Printer::value_name_of_input(ir::ValueId id) {
  if (const auto found = input_names_.find(id); found != input_names_.end()) return found->second;
  return names_.name("value " + std::to_string(id), workload.value_name(id));
}

std::optional<Printed> Printer::printed() const {
  if (!apart_) return std::nullopt;
  Printed printed = printed_;
  for (const ir::ValueId id : printed.inputs) printed.formals.push_back(fixed_.at(id));
  for (const Shared& value : printed.shared) printed.formals.push_back(once_.at(value.key));
  printed.body = out;
  return printed;
}

bool Printer::fixes_scale(const ir::Node& here) const {
  const auto frozen = [&](const char* slot) {
    return workload.parameters[static_cast<size_t>(here.param(slot))].frozen;
  };
  return here.op == ir::Op::kBatchNorm && !dialect.second && frozen("weight") && frozen("bias") &&
         !frozen("mean") && !frozen("var");
}

// A layer of Keras is trained or frozen as a whole.
Status Printer::check_frozen(const ir::Node& here) const {
  if (!freezes(here)) return Done{};
  for (const ir::Slot& slot : here.params) {
    const ir::Parameter& parameter = workload.parameters[static_cast<size_t>(slot.param)];
    if (!parameter.frozen)
      return Error{.message = fmt::format("Keras freezes whole layers: '{}' of '{}' is trained",
                                          parameter.name, here.output),
                   .remedy = "leave out this contender"};
  }
  return Done{};
}

Status Printer::plan_layers() {
  std::map<ir::ParamId, int> owner;  // the first node with this parameter
  for (const ir::Input& input : workload.inputs) layer_names.name("input " + input.name, input.name);
  for (size_t n = 0; n < workload.nodes.size(); ++n) {
    const ir::Node& here = workload.nodes[n];
    if (here.params.empty()) continue;
    CHECK_OK(check_frozen(here));
    for (const ir::Slot& slot : here.params) {
      const auto [found, fresh] = owner.emplace(slot.param, static_cast<int>(n));
      const ir::Node& first = workload.nodes[static_cast<size_t>(found->second)];
      if (fresh || (first.op == here.op && param_ids(first) == param_ids(here) &&
                    layer_attributes(first) == layer_attributes(here))) {
        continue;
      }
      const bool value = here.op == ir::Op::kParameter && first.op == ir::Op::kLinear && !dialect.second;
      if (value || (here.op == ir::Op::kLinear && slot.name == "weight" &&
                    (first.op == ir::Op::kEmbedding || first.op == ir::Op::kLinear))) {
        tied_[static_cast<int>(n)] = found->second;
        continue;
      }
      return Error{.message = fmt::format(
                       "Keras keeps parameters in layers: '{}' is shared by unlike layers ('{}' and "
                       "'{}')",
                       workload.parameters[static_cast<size_t>(slot.param)].name, first.output, here.output)};
    }
    Layer& layer = layers_[layer_key(here)];
    if (layer.uses++ == 0) {
      // A tied weight is another layer's: the bias names this one.
      const ir::Slot& slot = tied_.contains(static_cast<int>(n)) ? here.params.back() : here.params[0];
      const std::string wish = layer_wish(workload.parameters[static_cast<size_t>(slot.param)].name);
      layer.name = layer_names.name("layer " + std::to_string(n), wish);
    }
    if (tied_.contains(static_cast<int>(n))) {
      ++layers_.at(layer_key(workload.nodes[static_cast<size_t>(tied_.at(static_cast<int>(n)))])).uses;
    }
  }
  return Done{};
}

std::string Printer::left_over(ir::ValueId id, int n) const {
  const auto found = held_.find(id);
  if (!reuses || rolling != nullptr || found == held_.end()) return "";
  for (const auto& [value, variable] : held_) {
    const int last = stretch.path.empty() ? readers_[static_cast<size_t>(value)]
                                          : last_reader_in(workload, readers_, stretch, value);
    if (variable == found->second && last > n) return "";
  }
  return found->second;
}

// As in the scripts of other frameworks: a variable serves a chain of values.
std::string Printer::new_name(ir::ValueId id, const std::vector<ir::ValueId>& reads) {
  const int n = id - static_cast<int>(workload.inputs.size());
  const std::string part = reads.empty() ? attention_part(workload, id) : "";
  static const std::vector<std::string> kLetters = {"x", "h", "u", "w", "z"};
  const auto spare = [](const std::string& variable) {  // "h_2"
    return variable.starts_with("h_") && variable.find_first_not_of("0123456789", 2) == std::string::npos;
  };
  constexpr std::ptrdiff_t kSpeaks = 6;  // behind the letters and the spare ones
  const auto rank = [&](const std::string& variable) {
    if (variable == part) return std::ptrdiff_t{-1};
    const auto at = std::find(kLetters.begin(), kLetters.end(), variable);
    return at != kLetters.end() ? at - kLetters.begin() : spare(variable) ? kSpeaks - 1 : kSpeaks;
  };
  std::string name;
  for (const ir::ValueId in : reads.empty() ? workload.producer(id).inputs : reads) {
    const std::string left = left_over(in, n);
    if (left.empty() || (is_attention_part(left) && left != part)) continue;
    // A name that says what it holds would mislead.
    if (stretch.path.empty() && reads.empty() && left != part && rank(left) == kSpeaks) continue;
    if (name.empty() || rank(left) < rank(name)) name = left;
  }
  const std::string key = "value " + std::to_string(id);
  const auto wish = [&](const std::string& letter) {
    if (Namer attempt = names_; attempt.name(key, letter) == letter) name = names_.name(key, letter);
  };
  if (!part.empty() && name != part) wish(part);
  for (const std::string& letter : kLetters) {
    if (name.empty()) wish(letter);
    for (const auto& [value, variable] : held_)
      if (name.empty() && variable == letter && left_over(value, n - 1) == letter) name = letter;
  }
  for (const auto& [value, variable] : held_)
    if (name.empty() && spare(variable) && left_over(value, n - 1) == variable) name = variable;
  return name.empty() ? names_.name(key, "h") : name;
}

std::string Printer::value_name(ir::ValueId id, const std::vector<ir::ValueId>& reads) {
  if (const auto found = fixed_.find(id); found != fixed_.end()) return found->second;
  const std::string key = "value " + std::to_string(id);
  const std::string wish = workload.value_name(id);
  if (workload.is_input(id) && stretch.path.empty()) return names_.name(key, wish);
  if (stretch.path.empty() && (rolling != nullptr || !says_little(wish)))
    return held_[id] = names_.name(key, rolling == nullptr ? wish : unnumbered(wish));
  if (id >= workload.output_of(stretch.first)) return fixed_[id] = held_[id] = new_name(id, reads);
  if (workload.is_constant(id)) return literal(workload.producer(id).real("value"));
  printed_.inputs.push_back(id);
  if (keeps_name(workload, id)) return fixed_[id] = value_name_of_input(id);
  return fixed_[id] = held_[id] = fresh("x");
}

void Printer::same_as(const std::string& variable) {
  const auto carries = [&](const auto& carry) { return carry.second == variable; };
  if (rolling == nullptr || std::none_of(rolling->carry.begin(), rolling->carry.end(), carries))
    return name_value(workload.output_of(node), variable);
  const std::string name = value_name(workload.output_of(node));
  if (name != variable) out.line(fmt::format("{} = {}", name, variable));
}

// On TensorFlow Keras rounds a Python number to float32, also for float64; a numpy one it keeps.
std::string Printer::literal(double value) const {
  const bool exact = std::isinf(value) || value == static_cast<double>(static_cast<float>(value));
  return exact || backend != "tensorflow" ? real_literal(value)
                                          : fmt::format("np.float64({})", real_literal(value));
}

std::string Printer::first_input() {
  for (int n = stretch.first; !stretch.path.empty() && n < stretch.end; ++n) {
    for (const ir::ValueId id : workload.nodes[static_cast<size_t>(n)].inputs) {
      if (id < workload.output_of(stretch.first) && !workload.is_constant(id)) return value_name(id);
    }
  }
  for (ir::ValueId id = 0; workload.is_input(id); ++id) {
    const auto readers = ir::consumers(workload, id);
    if (!readers.empty() && readers.front() < workload.model_end()) return value_name(id);
  }
  return value_name(0);
}

std::string Printer::input(const ir::Node& here, size_t i) {
  return in_order(here.inputs[i], plan.converts(workload, node, i) ? reads(i) : held(here.inputs[i]));
}

std::string Printer::in_order(ir::ValueId id, Order to) {
  const std::string name = value_name(id);
  if (to == held(id)) return name;
  const std::string converted = fresh(name + (to == Order::kChannelsLast ? "_last" : "_first"));
  out.call(converted + " = " + op("transpose"),
           {name, python_tuple(conversion_perm(held(id), to, shape(id).size()))});
  return converted;
}

void Printer::assign(const std::string& head, const std::vector<std::string>& arguments,
                     const std::string& tail) {
  out.call(fmt::format("{} = {}", value_name(workload.output_of(node)), head), arguments, tail);
}

void Printer::layer(const ir::Node& here, const std::string& head, std::vector<std::string> arguments,
                    const std::string& x, const std::map<std::string, std::string>& variables) {
  Layer& made = layers_.at(layer_key(here));
  for (const ir::Slot& slot : here.params) {
    if (slot.name == "weight" && tied_.contains(node)) continue;
    needs_.targets[static_cast<size_t>(slot.param)] = made.name + "/" + variables.at(slot.name);
  }
  if (freezes(here)) arguments.push_back("trainable=False");
  if (here.has("weight") && in_half[static_cast<size_t>(here.param("weight"))])
    arguments.push_back(fmt::format("dtype=\"{}\"", policy));
  apart_ = apart_ && made.uses == 1 && !tied_.contains(node);
  arguments.push_back("name=" + quoted_name(made));
  if (made.uses == 1) return assign(head, arguments, "(" + x + ")");
  if (made.variable.empty()) {
    made.variable = fresh(made.name);
    once_writer().call(made.variable + " = " + head, arguments);
  }
  assign(made.variable, {x});
}

void Printer::loop(const Rolling& rolled, const std::function<void()>& body) {
  CodeWriter before = out;
  out = CodeWriter();
  rolling = &rolled;
  before_loop_ = &before;
  {
    const auto function = out.indent();
    const auto inside = out.indent();
    body();
  }
  rolling = nullptr;
  before_loop_ = nullptr;
  std::swap(before, out);
  out.line(fmt::format("for {} in range({}):", rolled.index, rolled.loop.count));
  const auto inside = out.indent();
  for (Statement s : before.statements()) {
    s.level -= 2;
    out.statement(s);
  }
}

bool Printer::freezes(const ir::Node& here) const {
  return !fixes_scale(here) &&
         std::any_of(here.params.begin(), here.params.end(), [this](const ir::Slot& slot) {
           return workload.parameters[static_cast<size_t>(slot.param)].frozen;
         });
}

std::string Printer::quoted_name(const Layer& layer) {
  if (stretch.path.empty()) return fmt::format("\"{}\"", layer.name);
  const std::string path = public_identifier(stretch.path);
  apart_ = apart_ && layer.name.starts_with(path + "_");
  return fmt::format("f\"{{prefix}}{}\"", layer.name.substr(std::min(path.size(), layer.name.size())));
}

std::string Printer::once(const std::string& wish, const std::string& head, const ir::Node& here, size_t i,
                          const std::string& option) {
  const ir::ValueId id = here.inputs[i];
  const bool passed = keeps_name(workload, id) && !plan.converts(workload, node, i);
  const std::string from = passed ? value_name_of_input(id) : input(here, i);
  const std::string text = fmt::format("{}({}, {})", head, from, option);
  if (passed) return shared_value({text, wish, text});
  const std::string variable = fresh(wish);
  out.line(fmt::format("{} = {}", variable, text));
  return variable;
}

std::string Printer::shared_value(const Shared& value) {
  if (const auto found = once_.find(value.key); found != once_.end()) return found->second;
  const std::string variable = fresh(value.name);
  if (stretch.path.empty()) {
    once_writer().line(fmt::format("{} = {}", variable, value.expression));
  } else {
    printed_.shared.push_back(value);
  }
  return once_[value.key] = variable;
}

bool Printer::shared(const ir::Node& here) const { return layers_.at(layer_key(here)).uses > 1; }

std::string Printer::tied_owner() const {
  const auto found = tied_.find(node);
  if (found == tied_.end()) return {};
  return layers_.at(layer_key(workload.nodes[static_cast<size_t>(found->second)])).variable;
}

bool Printer::tied_to_embedding() const {
  const auto found = tied_.find(node);
  return found != tied_.end() && workload.nodes[static_cast<size_t>(found->second)].op == ir::Op::kEmbedding;
}

std::string Printer::helpers(const std::string& script) const {
  std::string text;
  for (const std::string& tied : needs_.classes) text += tied + "\n\n";
  const std::string variant = dialect.second ? "keras2" : mixed ? "mixed" : "";
  return text + dialect.translate(helpers_file().used_by(script, {variant}));
}

}  // namespace bakeoff::emit::keras
