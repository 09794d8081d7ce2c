// Variables. A person writes x = relu(conv(x)), and a second name only for a value that is needed later. So
// does target(): it takes over the variable of an input that nothing reads later (last_use_). Of several
// such inputs it prefers main_, the variable of the function's first input: the network then reads as one
// column of `x = ...`, also after a residual sum. A value that the workload names keeps its name, except in
// the function of a block, which other parts of the workload call too.
//
// Outputs have their last use behind all nodes, so no node takes over their variables.

#include "emit/forward_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/texts.h"
#include "emit/losses.h"
#include "ir/dropout.h"
#include "ir/op_table.h"

namespace bakeoff::emit {
namespace {

constexpr int kColumns = 88;

std::vector<int> live_nodes(const ir::Workload& workload, bool predicts) {
  const std::vector<ir::ValueId> outputs = predicts ? workload.predictions() : workload.outputs();
  std::set<ir::ValueId> needed(outputs.begin(), outputs.end());
  std::vector<int> live;
  for (int n = workload.model_end() - 1; n >= 0; --n) {
    if (!needed.contains(workload.output_of(n))) continue;
    live.insert(live.begin(), n);
    const ir::Node& node = workload.nodes[static_cast<size_t>(n)];
    needed.insert(node.inputs.begin(), node.inputs.end());
  }
  return live;
}

}  // namespace

Graph make_graph(const ir::Workload& workload, const std::vector<ir::Type>& types, const LayoutPlan& plan,
                 Namer& names, bool predicts) {
  Graph graph{workload, types, plan, {}, live_nodes(workload, predicts), predicts};
  for (const ir::Input& input : workload.inputs)
    graph.inputs.push_back(names.name("input " + input.name, input.name));
  if (plan.reads.empty()) return graph;  // of ONNX Runtime, which prints a graph's nodes one by one
  graph.slices = Slices(workload, types, &plan, &graph.live);
  graph.loops = Loops(workload, types, graph.live, &plan);
  return graph;
}

bool Graph::has(ir::Op op) const {
  return std::any_of(live.begin(), live.end(),
                     [&](int n) { return workload.nodes[static_cast<size_t>(n)].op == op; });
}

bool any_live(const Graph& graph, ir::Op op, bool (*holds)(const ir::Node&)) {
  return std::any_of(graph.live.begin(), graph.live.end(), [&](int n) {
    const ir::Node& node = graph.workload.nodes[static_cast<size_t>(n)];
    return node.op == op && holds(node);
  });
}

std::vector<ir::ValueId> Graph::forward_inputs() const {
  const std::vector<ir::ValueId> given = outputs();
  std::set<ir::ValueId> read(given.begin(), given.end());
  for (const int n : live) {
    const auto& inputs_of_node = workload.nodes[static_cast<size_t>(n)].inputs;
    read.insert(inputs_of_node.begin(), inputs_of_node.end());
  }
  std::vector<ir::ValueId> ids;
  for (const ir::ValueId id : read) {
    if (workload.is_input(id)) ids.push_back(id);
  }
  return ids;
}

std::vector<std::string> Graph::forward_names() const {
  std::vector<std::string> names;
  for (const ir::ValueId id : forward_inputs()) names.push_back(inputs[static_cast<size_t>(id)]);
  return names;
}

bool Graph::has_idle_parameters() const {
  std::set<ir::ParamId> used;
  for (const int n : live) {
    for (const ir::Slot& slot : workload.nodes[static_cast<size_t>(n)].params) used.insert(slot.param);
  }
  return used.size() < workload.parameters.size();
}

std::vector<ir::ValueId> Graph::outputs() const {
  return predicts ? workload.predictions() : workload.outputs();
}

Order Graph::given(ir::ValueId id) const {
  if (workload.is_input(id) && id != workload.prediction()) return plan.values[static_cast<size_t>(id)];
  if (predicts && id != workload.prediction()) return Order::kCanonical;  // one of those that are joined
  for (size_t n = static_cast<size_t>(workload.model_end());; ++n) {
    const auto& read = workload.nodes[n].inputs;
    const auto found = std::find(read.begin(), read.end(), id);
    if (ir::is_loss(workload.nodes[n].op) && found != read.end())
      return plan.reads[n][static_cast<size_t>(found - read.begin())];
  }
}

std::vector<std::string> loss_arguments(const Graph& graph, Namer& names) {
  std::vector<std::string> all;
  for (const ir::ValueId id : graph.outputs()) {
    const std::string& own = graph.workload.value_name(id);
    const bool named = !graph.workload.is_input(id) && !says_little(own);
    const bool target = one_loss(graph.workload) && !all.empty();
    if (target || (all.empty() && !named))
      all.emplace_back(target ? "target" : "prediction");  // which the script uses for nothing else
    else
      all.push_back(names.name("output " + own, named ? own : "output"));
  }
  return all;
}

void print_losses(CodeWriter& out, const Graph& graph, const std::vector<std::string>& outputs, Namer names,
                  const std::string& transpose, const PrintLoss& print) {
  const ir::Workload& workload = graph.workload;
  std::map<ir::ValueId, std::string> values;
  for (size_t i = 0; i < workload.inputs.size(); ++i) values[static_cast<ir::ValueId>(i)] = graph.inputs[i];
  for (size_t i = 0; i < outputs.size(); ++i) values[graph.outputs()[i]] = outputs[i];
  const std::vector<NamedLoss> losses = named_losses(workload, names);
  for (const NamedLoss& loss : losses) {
    const ir::Node& node = workload.nodes[static_cast<size_t>(loss.node)];
    std::vector<std::string> read;
    for (size_t i = 0; i < 2; ++i) {
      const ir::ValueId id = node.inputs[i];
      const Order held = graph.given(id), wanted = graph.plan.reads[static_cast<size_t>(loss.node)][i];
      read.push_back(values.at(id));
      if (held == wanted) continue;
      const size_t rank = graph.types[static_cast<size_t>(id)].shape.size();
      read[i] =
          fmt::format("{}({}, {})", transpose, read[i], python_tuple(conversion_perm(held, wanted, rank)));
    }
    print(node, read[0], read[1], loss.name);
  }
  for (const std::string& sum : weighted_sum(workload, losses)) out.line("loss = " + sum);
}

std::vector<double> dropout_rates(const Graph& graph) {
  std::vector<double> rates;
  if (graph.predicts) return rates;
  for (const int n : graph.live) {
    const ir::Node& node = graph.workload.nodes[static_cast<size_t>(n)];
    if (!ir::drops(node)) continue;
    const double rate = node.real("rate");
    if (std::find(rates.begin(), rates.end(), rate) == rates.end()) rates.push_back(rate);
  }
  return rates;
}

std::string dropout_constant(const Graph& graph, double rate) {
  const auto rates = dropout_rates(graph);
  const auto at = std::find(rates.begin(), rates.end(), rate) - rates.begin();
  return at == 0 ? "DROPOUT_RATE" : fmt::format("DROPOUT_RATE_{}", at + 1);
}

ForwardPrinter::ForwardPrinter(CodeWriter& out, const Graph& graph, std::string transpose,
                               std::vector<std::string> params, Namer names, bool explicit_norms,
                               std::string half)
    : out_(out),
      graph_(graph),
      transpose_(std::move(transpose)),
      params_(std::move(params)),
      names_(std::move(names)),
      explicit_norms_(explicit_norms),
      half_(std::move(half)) {
  for (const ir::ValueId id : graph.forward_inputs()) variables_[id] = graph.inputs[static_cast<size_t>(id)];
  for (const int n : graph.live) {
    for (const ir::ValueId id : graph.workload.nodes[static_cast<size_t>(n)].inputs) last_use_[id] = n;
  }
  stretch_.end = graph.workload.model_end();
  if (graph.inputs[0].size() == 1) main_ = graph.inputs[0];  // a longer name says what it holds
  for (const ir::ValueId id : graph.outputs()) last_use_[id] = graph.workload.value_count();
}

void ForwardPrinter::print(const OpFunctions<ForwardPrinter>& functions, const Blocks& blocks,
                           const BlockCalls& calls) {
  print_nodes(functions, blocks, calls);
}

Printed ForwardPrinter::print(const OpFunctions<ForwardPrinter>& functions, const Stretch& stretch,
                              const Blocks& blocks, const BlockCalls& calls) {
  stretch_ = stretch;
  main_.clear();
  last_use_.clear();
  const ir::Workload& workload = graph_.workload;
  Printed printed;
  for (const int n : graph_.live) {
    if (n < stretch.first || n >= stretch.end) continue;
    for (const ir::ValueId id : workload.nodes[static_cast<size_t>(n)].inputs) {
      last_use_[id] = n;
      if (id >= workload.output_of(stretch.first)) continue;
      if (workload.is_constant(id)) {
        variables_[id] = real_literal(workload.producer(id).real("value"));
        fixed_.insert(id);
      } else if (std::find(printed.inputs.begin(), printed.inputs.end(), id) == printed.inputs.end()) {
        printed.inputs.push_back(id);
        if (keeps_name(workload, id)) names_.reserve(graph_.inputs[static_cast<size_t>(id)]);
      }
    }
  }
  std::map<ir::ValueId, ir::ValueId> fills = own_fills(workload, graph_.types, stretch);
  const auto& given = printed.inputs;
  std::erase_if(fills, [&](const auto& pair) {  // by a value that no live node reads
    return std::find(given.begin(), given.end(), pair.second) == given.end();
  });
  std::erase_if(printed.inputs, [&](ir::ValueId id) { return fills.contains(id); });
  const ir::ValueId output = workload.output_of(stretch.end - 1);
  last_use_[output] = workload.value_count();
  for (const ir::ValueId id : printed.inputs) {
    variables_[id] = keeps_name(workload, id) ? graph_.inputs[static_cast<size_t>(id)] : new_variable(id);
    if (main_.empty()) main_ = variables_[id];
    printed.formals.push_back(variables_[id]);
  }
  for (const auto& [id, other] : fills)
    if (blocks.reads(workload, stretch, id)) print_fill(id, variables_.at(other));
  print_nodes(functions, blocks, calls);
  out_.give_back(variables_.at(output));
  return printed;
}

// h = jnp.zeros((x.shape[0], 8), x.dtype), of a value that has as many rows
void ForwardPrinter::print_fill(ir::ValueId id, const std::string& other) {
  node_ = id - graph_.workload.output_of(0);
  const std::string number = real_literal(graph_.workload.producer(node().inputs[0]).real("value"));
  const ir::Spellings& all = *ir::spellings(node().op);
  const Spelled made =
      spell(tensorflow() ? all.tensorflow : all.jax, node(), {number, other}, Language::kPython, axes());
  out_.call(fmt::format("{} = {}", variables_[id] = new_variable(id), made.head), made.arguments);
}

void ForwardPrinter::print_nodes(const OpFunctions<ForwardPrinter>& functions, const Blocks& blocks,
                                 const BlockCalls& calls) {
  const std::vector<Loop> loops = graph_.loops.in(stretch_, blocks);
  std::set<int> covered;
  for (const Loop& loop : loops) {
    covered.insert(loop.covered.begin(), loop.covered.end());
    for (const ir::ValueId id : loop.reads(graph_.workload))
      last_use_[id] = std::max(last_use_[id], loop.first);
  }
  int next = stretch_.first;
  for (const int n : graph_.live) {
    if (n < next || n >= stretch_.end) continue;
    for (const Loop& loop : loops)
      if (loop.first == n) print_loop(loop, functions, blocks, calls);
    if (!covered.contains(n)) next = print_at(n, functions, blocks, calls);
  }
}

int ForwardPrinter::print_at(int n, const OpFunctions<ForwardPrinter>& functions, const Blocks& blocks,
                             const BlockCalls& calls) {
  if (const Block* block = blocks.at(n, stretch_)) return print_blocks(*block, blocks, calls);
  node_ = n;
  const ir::ValueId output = graph_.workload.output_of(n);
  if (is_fill(graph_.workload, output) && !blocks.reads(graph_.workload, stretch_, output)) return n + 1;
  const std::string index = graph_.slices.select_at(n, stretch_, blocks);
  if (rolling_ != nullptr && rolling_->traced && index.empty() && rolling_->loop.moving.contains(n))
    return print_places(rolling_->loop.moving.at(n));
  if (rolling_ != nullptr && rolling_->loop.moving.contains(n))
    return print_index(rolling_->moving_index(n, axes(), !index.empty()), !index.empty());
  if (const Split* split = graph_.slices.split_at(n, stretch_, blocks)) return print_split(*split);
  if (!index.empty()) return print_index(index, true);
  if (const auto list = lists_.find(n); list != lists_.end())
    print_collected(list->second);
  else
    functions.at(node().op)(*this, node());
  return n + 1;
}

int ForwardPrinter::print_index(const std::string& index, bool select) {
  const std::vector<ir::ValueId> from = node().inputs;
  if (select) ++node_;
  const std::string x = variables_.at(from[0]);
  out_.line(fmt::format("{} = {}{}", target(from, false), x, index));
  return node_ + 1;
}

// numpy's split is told where the parts begin, TensorFlow's how long they are.
int ForwardPrinter::print_split(const Split& split) {
  const std::string x = input();
  const std::vector<ir::ValueId> from = node().inputs;
  std::vector<std::string> names;
  for (const int part : split.nodes) {
    node_ = part;
    names.push_back(split.unbinds ? target(from, false) : target());
  }
  const std::string parts = split.even()
                                ? std::to_string(names.size())
                                : fmt::format("[{}]", join(tensorflow() ? split.widths : split.cuts(), ", "));
  const std::string axis = fmt::format("axis={}", split.axis);
  const std::string head = fmt::format("{} = {}{}", join(names, ", "), tensorflow() ? "tf." : "jnp.",
                                       split.unbinds ? "unstack" : "split");
  split.unbinds ? out_.call(head, {x, axis}) : out_.call(head, {x, parts, axis});
  return node_ + 1;
}

int ForwardPrinter::print_blocks(const Block& first, const Blocks& blocks, const BlockCalls& calls) {
  std::vector<const Block*> chain = blocks.chain_from(first, stretch_);
  chain.resize(calls.loop(chain));
  std::vector<std::string> inputs;
  for (const ir::ValueId id : first.inputs) inputs.push_back(variables_.at(id));
  node_ = first.stretch.end - 1;
  std::string variable = target(first.inputs, true);
  if (chain.size() > 1 && variable != inputs[0]) {
    out_.line(variable + " = " + inputs[0]);
    inputs[0] = variable;
  }
  calls.print(out_, variable, inputs, chain);
  node_ = chain.back()->stretch.end - 1;
  variables_[graph_.workload.output_of(node_)] = variable;
  return node_ + 1;
}

int dropouts(const Graph& graph, int first, int end) {
  if (graph.predicts) return 0;
  return static_cast<int>(std::count_if(graph.live.begin(), graph.live.end(), [&](int n) {
    return n >= first && n < end && ir::drops(graph.workload.nodes[static_cast<size_t>(n)]);
  }));
}

int block_number(const Block& block) {
  const std::string& path = block.stretch.path;
  const size_t digits = path.size() - (path.find_last_not_of("0123456789") + 1);
  return digits == 0 || digits > 6 ? -1 : std::stoi(path.substr(path.size() - digits));
}

std::string block_path(const std::string& path, const std::string& within, char separator, bool loop,
                       bool prefixed) {
  std::string text = within.empty() ? path : path.substr(within.size() + 1);
  prefixed = prefixed && !within.empty();
  if (prefixed) text = fmt::format("{{prefix}}{}{}", separator, text);
  if (loop) text = text.substr(0, text.find_last_not_of("0123456789") + 1) + "{i}";
  return fmt::format("{}\"{}\"", loop || prefixed ? "f" : "", text);
}

size_t numbered_alike(const Blocks& blocks, const std::vector<const Block*>& chain) {
  const Block& first = *chain[0];
  const auto stem = [](const Block& block) {
    return block.stretch.path.substr(0, block.stretch.path.find_last_not_of("0123456789") + 1);
  };
  size_t count = 1;
  if (block_number(first) < 0) return count;
  while (count < chain.size()) {
    const Block& next = *chain[count];
    if (next.family != first.family || blocks.arguments(next, true) != blocks.arguments(first, true) ||
        stem(next) != stem(first) || block_number(next) != block_number(first) + static_cast<int>(count))
      break;
    ++count;
  }
  return count;
}

std::string ForwardPrinter::dropout_number() const {
  const int number = dropouts(graph_, stretch_.first, node_);
  if (rolling_ == nullptr) return std::to_string(number);
  const std::vector<int>& body = rolling_->loop.body;  // the second iteration
  const auto each = std::count_if(body.begin(), body.end(), [&](int n) {
    return ir::drops(graph_.workload.nodes[static_cast<size_t>(n)]);
  });
  return Loop::Moving{number - each, 1, each}.place(rolling_->index);
}

std::string ForwardPrinter::value(ir::ValueId id, Order wanted) const {
  const std::string& variable = variables_.at(id);
  if (held(id) == wanted) return variable;
  return fmt::format("{}({}, {})", transpose_, variable,
                     python_tuple(conversion_perm(held(id), wanted, shape(id).size())));
}

std::string ForwardPrinter::input(size_t i) const {
  return value(node().inputs[i], graph_.plan.reads[static_cast<size_t>(node_)][i]);
}

std::string ForwardPrinter::param(std::string_view slot) const {
  return half_.empty() || stored_in_half(slot) ? full_param(slot)
                                               : fmt::format("{}({})", half_, full_param(slot));
}

bool ForwardPrinter::stored_in_half(std::string_view slot) const {
  const auto id = static_cast<size_t>(node().param(slot));
  return id < stored_.size() && stored_[id];
}

std::string ForwardPrinter::full_param(std::string_view slot) const {
  return params_[static_cast<size_t>(node().param(slot))];
}

bool ForwardPrinter::stored_as_table(std::string_view slot) const {
  return graph_.plan.params[static_cast<size_t>(node().param(slot))].identity();
}

std::string ForwardPrinter::target(const std::vector<ir::ValueId>& inputs, bool block) {
  const ir::ValueId id = graph_.workload.output_of(node_);
  // In a function of its own, names of the workload's values would say where it was first called.
  const bool reuse = block || !stretch_.path.empty() || says_little(node().output);
  const std::string part = reuse && !block ? attention_part(graph_.workload, id) : "";
  std::string name = rolling_ == nullptr ? "" : rolling_->takes_over(id);
  if (!name.empty()) return variables_[id] = name;
  for (const ir::ValueId in : inputs) {
    const bool dead = rolling_ == nullptr ? last_use_.at(in) <= node_ : rolling_->dies(in, node_);
    if (fixed_.contains(in) || !reuse || !dead) continue;
    if (keeps_name(graph_.workload, in)) continue;
    // A name that says what it holds would mislead.
    const bool speaks = stretch_.path.empty() && !block && !letters_.contains(variables_.at(in));
    if (speaks && variables_.at(in) != main_ && !is_attention_part(variables_.at(in))) continue;
    if (is_attention_part(variables_.at(in)) && variables_.at(in) != part) continue;
    if (variables_.at(in) == part) {
      name = part;
      break;
    }
    if (name.empty() || variables_.at(in) < name) name = variables_.at(in);
    // The variable of the first input is the main line of the network.
    if (variables_.at(in) == main_) {
      name = main_;
      break;
    }
  }
  if (!part.empty() && name != part) {
    const std::string key = "value " + graph_.workload.value_name(id);
    if (Namer attempt = names_; attempt.name(key, part) == part) name = names_.name(key, part);
  }
  if (name.empty()) name = new_variable(id);
  variables_[id] = name;
  return name;
}

// Nothing reads it from here on, this node neither. In a loop neither does the next iteration; one that the framework
// carries out has variables of its own.
bool ForwardPrinter::is_free(const std::string& variable) const {
  const auto carries = [&](const auto& carry) { return carry.second == variable; };
  if (rolling_ != nullptr && std::ranges::any_of(rolling_->carry, carries)) return false;
  return std::ranges::none_of(variables_, [&](const auto& held) {
    if (held.second != variable) return false;
    const auto last = last_use_.find(held.first);
    if (rolling_ == nullptr) return last != last_use_.end() && last->second >= node_;
    if (rolling_->computes(held.first)) return !rolling_->dead(held.first, node_);
    return rolling_->traced || (last != last_use_.end() && last->second >= rolling_->loop.first);
  });
}

std::string ForwardPrinter::new_variable(ir::ValueId id) {
  const std::string& wish = graph_.workload.value_name(id);
  const std::string key = "value " + wish;
  if (stretch_.path.empty() && !says_little(wish))
    return names_.name(key, rolling_ == nullptr ? wish : unnumbered(wish));
  for (const char* letter : {"x", "h", "u", "w", "z"}) {
    if (Namer attempt = names_; attempt.name(key, letter) == letter) {
      letters_.insert(letter);
      if (main_.empty() && stretch_.path.empty()) main_ = letter;
      return names_.name(key, letter);
    }
    if (letters_.contains(letter) && is_free(letter)) return letter;
  }
  const auto free = std::ranges::find_if(letters_, [&](const auto& letter) { return is_free(letter); });
  return free != letters_.end() ? *free : *letters_.insert(names_.name(key, "h")).first;
}

void ForwardPrinter::assign(const std::string& head, const std::vector<std::string>& arguments) {
  out_.call(target() + " = " + head, arguments);
}

void ForwardPrinter::again(const std::string& head, const std::vector<std::string>& arguments) {
  const std::string& variable = variables_.at(graph_.workload.output_of(node_));
  std::vector<std::string> all = {variable};
  all.insert(all.end(), arguments.begin(), arguments.end());
  out_.call(variable + " = " + head, all);
}

void ForwardPrinter::assign_full(const std::string& head, const std::vector<std::string>& arguments) {
  if (!mixed()) return assign(head, arguments);
  std::vector<std::string> all = {head};
  all.insert(all.end(), arguments.begin(), arguments.end());
  assign("in_float32", all);
}

void ForwardPrinter::again_full(const std::string& head, const std::vector<std::string>& arguments) {
  if (!mixed()) return again(head, arguments);
  std::vector<std::string> all = {head, variables_.at(graph_.workload.output_of(node_))};
  all.insert(all.end(), arguments.begin(), arguments.end());
  out_.call(all[1] + " = in_float32", all);
}

void ForwardPrinter::assign_flat(const std::string& flat, const std::string& head,
                                 const std::vector<std::string>& arguments) {
  const std::string variable = target();
  const std::string line = variable + " = " + flat;
  if (out_.column() + static_cast<int>(line.size()) <= kColumns) {
    out_.line(line);
  } else {
    out_.call(variable + " = " + head, arguments);
  }
}

void ForwardPrinter::spelled(const ir::Spelling& spelling) {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < node().inputs.size(); ++i) inputs.push_back(input(i));
  const Spelled made = spell(spelling, node(), std::move(inputs), Language::kPython, axes());
  if (ir::info(node().op).sums && !made.head.empty()) return assign_full(made.head, made.arguments);
  if (!made.head.empty()) return assign(made.head, made.arguments);
  assign_flat(made.flat, "", {made.flat});
}

void ForwardPrinter::fixed(const std::string& expression) {
  const ir::ValueId id = graph_.workload.output_of(node_);
  variables_[id] = expression;
  fixed_.insert(id);
}

void ForwardPrinter::assign_sequence(const std::string& head, const std::vector<std::string>& parts,
                                     const std::string& option) {
  const std::string start = target() + " = " + head;
  const std::string list = fmt::format("[{}]", join(parts, ", "));
  const auto level = static_cast<size_t>(out_.column() + 4);
  if (level + list.size() + 1 <= kColumns) return out_.call(start, {list, option});
  out_.line(start + "(");
  {
    const auto body = out_.indent();
    print_list(out_, "", '[', parts, ",");
    out_.line(option + ",");
  }
  out_.line(")");
}

void ForwardPrinter::alias() {
  const std::string from = input();
  const ir::ValueId in = node().inputs[0];
  const bool dead = rolling_ == nullptr ? last_use_.at(in) <= node_ : rolling_->dies(in, node_);
  if (dead && !fixed_.contains(in) && from == variables_.at(in)) {
    variables_[graph_.workload.output_of(node_)] = from;
    return;
  }
  const std::string variable = target();
  if (variable != from) out_.line(variable + " = " + from);
}

std::vector<std::string> ForwardPrinter::results(const std::string& widen) const {
  std::vector<std::string> all;
  for (const ir::ValueId id : graph_.outputs()) {
    const std::string text = value(id, graph_.given(id));
    const bool real = graph_.types[static_cast<size_t>(id)].dtype == ir::DType::kF32;
    all.push_back(real ? fmt::format(fmt::runtime(widen), text) : text);
  }
  return all;
}

void print_list(CodeWriter& out, const std::string& head, char open, const std::vector<std::string>& items,
                const std::string& tail) {
  const char close = open == '(' ? ')' : open == '[' ? ']' : '}';
  const char* single = open == '(' && items.size() == 1 ? "," : "";
  const std::string flat = fmt::format("{}{}{}{}{}{}", head, open, join(items, ", "), single, close, tail);
  if (out.column() + static_cast<int>(flat.size()) <= kColumns || items.empty()) return out.line(flat);
  out.line(fmt::format("{}{}", head, open));
  {
    const auto body = out.indent();
    for (const std::string& item : items) out.line(item + ",");
  }
  out.line(fmt::format("{}{}", close, tail));
}

}  // namespace bakeoff::emit
