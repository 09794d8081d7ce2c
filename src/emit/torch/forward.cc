// A printer that gave every node a line and a variable would be right, and nobody would write such code.
// Three ideas make it read like a person's.
//
// One expression is held back (pending_) until it is known who reads it: an activation, a sum or a method
// takes it in if it is the only reader and the line stays short; otherwise flush() gives it a variable. So "x
// = F.relu(self.fc1(x))" is one line. Names are taken again as soon as their value is dead: use() counts the
// last reader, and free_ lists the names that are free, which is why x goes through a whole chain. And what
// was found beforehand is printed as one statement in place of its nodes: blocks and chains of them,
// recurrent cells, sequences, slices, and loops that the importer had unrolled.
//
// Every text must be asked for by use(), once for each read and in the order in which it is printed:
// otherwise a name is free too early, and the script computes something else.

#include "emit/torch/forward.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/texts.h"
#include "emit/spelling.h"
#include "emit/torch_rules.h"
#include "ir/elementwise.h"

namespace bakeoff::emit::torch {
using ir::Op;

ForwardPrinter::ForwardPrinter(CodeWriter& out, const Request& request, const Modules& modules,
                               const Blocks& blocks, const std::vector<ir::Type>& types,
                               const std::vector<std::string>& input_names, Namer names)
    : out_(out),
      request_(request),
      workload_(request.workload),
      modules_(modules),
      blocks_(blocks),
      types_(types),
      inputs_(input_names),
      names_(std::move(names)),
      slices_(workload_, types_),
      stretch_{"", 0, workload_.model_end()},
      readers_(last_readers(workload_)) {}

void ForwardPrinter::print(const OpFunctions<ForwardPrinter>& functions) {
  std::vector<std::string> parameters = {"self"};
  for (const ir::ValueId id : forward_inputs(workload_)) {
    const std::string& name = inputs_[static_cast<size_t>(id)];
    variables_[id] = name;
    order_.push_back(name);
    parameters.push_back(name + ": Tensor");
  }
  const std::vector<ir::ValueId> outputs = this->outputs();
  out_.call("def forward", parameters, fmt::format(" -> {}:", tensors(outputs.size())));
  const auto body = out_.indent();
  print_nodes(functions);
  if (pending_ && pending_->value == workload_.prediction() && outputs.size() == 1) {
    Pending last = *pending_;
    pending_.reset();
    return assign("", last);
  }
  if (pending_) flush();
  std::vector<std::string> results;
  for (const ir::ValueId id : outputs) results.push_back(variables_.at(id));
  out_.line(fmt::format("return {}", join(results, ", ")));
}

std::optional<Printed> ForwardPrinter::print(const OpFunctions<ForwardPrinter>& functions,
                                             const Stretch& stretch) {
  stretch_ = stretch;
  Printed printed;
  std::map<ir::ValueId, std::string> formals;
  const std::vector<ir::ValueId> outside = outside_values(workload_, stretch);
  for (const ir::ValueId id : outside) {
    if (keeps_name(workload_, id)) names_.reserve(inputs_[static_cast<size_t>(id)]);
  }
  const std::map<ir::ValueId, ir::ValueId> fills = own_fills(workload_, types_, stretch);
  for (const ir::ValueId id : outside) {
    if (fills.contains(id)) continue;
    if (workload_.is_constant(id)) {
      variables_[id] = real_literal(workload_.producer(id).real("value"));
      fixed_.insert(id);
      continue;
    }
    if (keeps_name(workload_, id)) order_.push_back(inputs_[static_cast<size_t>(id)]);
    variables_[id] = keeps_name(workload_, id) ? order_.back() : pick_variable(id);
    formals[id] = variables_[id];
    printed.inputs.push_back(id);
  }
  for (const auto& [id, other] : fills)
    if (blocks_.reads(workload_, stretch, id)) print_fill(id, other);
  print_nodes(functions);
  const ir::ValueId output = workload_.output_of(stretch.end - 1);
  if (pending_) {
    Pending last = *pending_;
    pending_.reset();
    if (last.value != output) return std::nullopt;
    assign("", last);
  } else {
    out_.line("return " + variables_.at(output));
  }
  // Values that only once() reads are not passed.
  std::erase_if(printed.inputs, [&](ir::ValueId id) { return !used_.contains(id); });
  for (const ir::ValueId id : printed.inputs) printed.formals.push_back(formals.at(id));
  printed.shared = shared_;
  for (const Shared& value : shared_) printed.formals.push_back(once_.at(value.key));
  return printed;
}

// h = x.new_zeros(x.shape[0], 8), of a value that has as many rows
void ForwardPrinter::print_fill(ir::ValueId id, ir::ValueId other) {
  const ir::Node& node = workload_.producer(id);
  const std::string number = real_literal(workload_.producer(node.inputs[0]).real("value"));
  variables_[id] = pick_variable(id);
  used_.insert(other);
  Spelled made =
      spell(ir::spellings(node.op)->torch, node, {number, variables_.at(other)}, Language::kPython);
  assign(variables_.at(id), {id, {made.head, made.arguments}, made.flat});
}

void ForwardPrinter::print_nodes(const OpFunctions<ForwardPrinter>& functions) {
  std::map<int, const Loop*> loops;
  std::set<int> covered;
  for (const Loop& loop : modules_.loops()) {
    loops[loop.first] = &loop;
    for (const ir::ValueId id : loop.reads(workload_))
      held_until_[id] = std::max(held_until_[id], loop.first);
    covered.insert(loop.covered.begin(), loop.covered.end());
  }
  for (int n = stretch_.first; n < stretch_.end; ++n) {
    if (const auto loop = loops.find(n); loop != loops.end()) print_rolled(functions, *loop->second);
    if (!covered.contains(n)) n = print_at(functions, n);
  }
}

int ForwardPrinter::print_at(const OpFunctions<ForwardPrinter>& functions, int n) {
  node_ = n;
  if (const Block* block = blocks_.at(n, stretch_)) {
    const std::vector<const Block*> chain = list_from(*block);
    if (chain.size() > 1) {
      print_loop(chain);
    } else {
      print_block(*block);
    }
    return node_;
  }
  if (const Cell* cell = modules_.cell_at(n)) {
    print_cell(*cell);
    return node_;
  }
  if (const int last = print_slices(n); last >= 0) return last;
  const ir::Node& node = workload_.nodes[static_cast<size_t>(n)];
  const ir::ValueId value = workload_.output_of(n);
  if (is_fill(workload_, value) && !blocks_.reads(workload_, stretch_, value)) return n;
  if (const Sequence* sequence = modules_.sequence_at(n)) {
    print_sequences(list_from(*sequence));
    return node_;
  }
  if (const Recurrence* recurrence = modules_.recurrence_at(n)) {
    if (pending_) flush();
    node_ = recurrence->end - 1;
    call(modules_.module_of(*recurrence), {use(node.inputs[0])}, "[0]");
    return node_;
  }
  if (pending_ && !may_fold(node)) flush();
  if (const auto list = lists_.find(n); list != lists_.end())
    call(list->second.head, {list->second.arguments[0], fmt::format("dim={}", node.integer("axis"))});
  else
    functions.at(node.op)(*this, node);
  return n;
}

// The variables that the body carries get their first values in front of it.
void ForwardPrinter::print_rolled(const OpFunctions<ForwardPrinter>& functions, const Loop& loop) {
  if (pending_) flush();
  for (const int n : loop.sources) print_at(functions, n);
  Rolling rolling(loop, workload_, names_);
  rolling_ = &rolling;
  std::set<std::string> taken;
  for (const Loop::Carry& c : loop.carries) {
    const std::string start = use(c.start);
    const bool own = !fixed_.contains(c.start) && !workload_.is_input(c.start) && !escapes(c.start) &&
                     rolling.only_starts(c.start, stretch_.end) && taken.insert(start).second;
    const std::string variable = own ? start : pick_variable(c.before);
    if (!own) out_.line(fmt::format("{} = {}", variable, start));
    variables_[c.before] = rolling.carry[c.next] = variable;
  }
  for (const auto& [node, list] : rolling.lists) {
    out_.line(list + " = []");
    lists_[node] = {loop.collected.at(node).stacks ? "torch.stack" : "torch.cat", {rolling.joined(node)}};
  }
  out_.line(fmt::format("for {} in range({}):", rolling.index, loop.count));
  {
    const auto body = out_.indent();
    std::set<int> printed;
    for (const int n : loop.body) {
      if (printed.contains(n)) continue;
      for (int last = print_at(functions, n), i = n; i <= last; ++i) printed.insert(i);
    }
    for (const auto& [node, made] : loop.collected) {
      for (const int n : made.tail) print_at(functions, n);
      if (pending_ && pending_->value != made.value) flush();
      const bool carried = rolling.carry.contains(made.value);
      if (pending_ && carried) flush();
      out_.call(rolling.lists.at(node) + ".append", {use(made.value)});
    }
    if (pending_) flush();
    if (const std::string line = rolling.handed_on(variables_); !line.empty()) out_.line(line);
  }
  rolling_ = nullptr;
  for (const Loop::Carry& c : loop.carries)
    if (c.last >= 0) variables_[c.last] = rolling.carry.at(c.next);
  for (const auto& [value, last] : loop.finals) variables_[last] = variables_.at(value);
  free_ = free_after(loop, workload_, stretch_.end, variables_, order_,
                     [this](ir::ValueId id) { return escapes(id); });
}

int ForwardPrinter::print_slices(int n) {
  const ir::ValueId input = workload_.nodes[static_cast<size_t>(n)].inputs.empty()
                                ? -1
                                : workload_.nodes[static_cast<size_t>(n)].inputs[0];
  const bool moves = rolling_ != nullptr && rolling_->loop.moving.contains(n);
  const Split* const split = moves ? nullptr : slices_.split_at(n, stretch_, blocks_);
  std::string index = split != nullptr ? "" : slices_.select_at(n, stretch_, blocks_);
  if (index.empty() && !moves && split == nullptr) return -1;
  if (pending_) flush();
  node_ = split != nullptr ? split->nodes.back() : index.empty() ? n : n + 1;
  if (moves) index = rolling_->moving_index(n, {Order::kCanonical, shape(input).size()}, !index.empty());
  const std::string x = use(input);
  if (!index.empty()) {
    finish({"", {x + index}}, x + index, false);
    return node_;
  }
  std::vector<std::string> names;
  for (const int part : split->nodes) {
    const ir::ValueId value = workload_.output_of(part);
    names.push_back(pick_variable(value));
    variables_[value] = names.back();
  }
  if (split->unbinds) {
    out_.line(fmt::format("{} = {}.unbind({})", join(names, ", "), x, split->axis));
    return node_;
  }
  const std::string axis = fmt::format("dim={}", split->axis);
  out_.call(fmt::format("{} = {}.{}", join(names, ", "), x, split->even() ? "chunk" : "split"),
            {split->even() ? std::to_string(names.size()) : python_tuple(split->widths), axis});
  return node_;
}

std::vector<std::string> ForwardPrinter::arguments_of(const Block& block) {
  std::vector<std::string> arguments;
  for (const ir::ValueId id : block.inputs) arguments.push_back(use(id));
  for (const Shared& value : block.shared) arguments.push_back(shared(value));
  return arguments;
}

void ForwardPrinter::print_block(const Block& block) {
  if (pending_) flush();
  node_ = block.stretch.end - 1;
  call(modules_.module_of(block), arguments_of(block));
}

// h, c = self.cell(x[:, t], (h, c))
void ForwardPrinter::print_cell(const Cell& cell) {
  constexpr size_t kShort = 24;  // columns of an expression that stands in the call
  const bool stands = pending_ && pending_->value == cell.x && pending_->flat.size() <= kShort &&
                      ir::consumers(workload_, cell.x).size() == 1 && !escapes(cell.x);
  if (pending_ && !stands) flush();
  node_ = cell.end - 1;
  const std::string x = use(cell.x), h = use(cell.h), module = modules_.module_of(cell);
  if (cell.c < 0) return call(module, {x, h});
  const std::string c = use(cell.c);
  const ir::ValueId next_h = workload_.output_of(node_);
  variables_[next_h] = variable_after(cell.h, next_h);
  variables_[cell.next_c] =
      last_use(cell.next_c) < cell.end && !escapes(cell.next_c) ? "_" : variable_after(cell.c, cell.next_c);
  out_.call(fmt::format("{}, {} = {}", variables_.at(next_h), variables_.at(cell.next_c), module),
            {x, fmt::format("({}, {})", h, c)});
}

std::string ForwardPrinter::variable_after(ir::ValueId before, ir::ValueId value) {
  const auto own = std::find(free_.begin(), free_.end(), variables_.at(before));
  if (own == free_.end() || (rolling_ != nullptr && rolling_->carry.contains(value)))
    return pick_variable(value);
  free_.erase(own);
  return variables_.at(before);
}

std::vector<const Block*> ForwardPrinter::list_from(const Block& block) const {
  std::vector<const Block*> chain = blocks_.chain_from(block, stretch_);
  while (chain.size() > 1 && modules_.list_of(chain).empty()) chain.pop_back();
  return chain;
}

std::vector<const Sequence*> ForwardPrinter::list_from(const Sequence& sequence) const {
  std::vector<const Sequence*> chain = {&sequence};
  while (const Sequence* next = modules_.sequence_at(chain.back()->end)) {
    const ir::ValueId between = workload_.output_of(next->first - 1);
    if (rolling_ != nullptr || workload_.nodes[static_cast<size_t>(next->first)].inputs[0] != between ||
        ir::consumers(workload_, between).size() != 1 || escapes(between))
      break;
    chain.push_back(next);
  }
  while (chain.size() > 1 && modules_.list_of(chain).empty()) chain.pop_back();
  return chain;
}

void ForwardPrinter::print_sequences(const std::vector<const Sequence*>& chain) {
  if (pending_) flush();
  node_ = chain[0]->end - 1;
  const std::string x = use(workload_.nodes[static_cast<size_t>(chain[0]->first)].inputs[0]);
  if (chain.size() == 1) return call(modules_.module_of(*chain[0]), {x});
  print_calls(modules_.list_of(chain), {x}, chain.back()->end - 1);
}

void ForwardPrinter::print_loop(const std::vector<const Block*>& chain) {
  if (pending_) flush();
  node_ = chain[0]->stretch.end - 1;
  print_calls(modules_.list_of(chain), arguments_of(*chain[0]), chain.back()->stretch.end - 1);
  for (size_t i = 1; i < chain.back()->inputs.size(); ++i) use(chain.back()->inputs[i]);
}

void ForwardPrinter::print_calls(const std::string& list, std::vector<std::string> arguments, int last) {
  const auto dead = std::find(free_.begin(), free_.end(), arguments[0]);
  const ir::ValueId output = workload_.output_of(last);
  std::string variable = arguments[0];
  if (dead != free_.end()) {
    free_.erase(dead);
  } else {
    variable = pick_variable(output);
    out_.line(variable + " = " + arguments[0]);
    arguments[0] = variable;
  }
  const std::string item = names_.name("loop item", "block");
  out_.line(fmt::format("for {} in {}:", item, list));
  {
    const auto body = out_.indent();
    out_.call(variable + " = " + item, arguments);
  }
  node_ = last;
  variables_[output] = variable;
}

std::string ForwardPrinter::use(ir::ValueId id) {
  if (pending_ && pending_->value == id) {
    std::string text = pending_->flat;
    pending_.reset();
    return text;
  }
  const std::string name = variables_.at(id);
  used_.insert(id);
  read_as_[id] = name;
  if (fixed_.contains(id)) return name;
  if (rolling_ != nullptr) {
    if (rolling_->dies(id, node_) && std::find(free_.begin(), free_.end(), name) == free_.end())
      free_.push_back(name);
    return name;
  }
  const bool reusable =
      !workload_.is_input(id) || name == "x" || (!stretch_.path.empty() && !keeps_name(workload_, id));
  if (reusable && !escapes(id) && last_use(id) <= node_ &&
      std::find(free_.begin(), free_.end(), name) == free_.end()) {
    free_.push_back(name);
  }
  return name;
}

void ForwardPrinter::layer(const ir::Node& node, const std::string& input, const std::string& function,
                           const std::vector<std::string>& slots, const std::vector<std::string>& options) {
  if (const std::string module = modules_.module_of(node); !module.empty()) return call(module, {input});
  std::vector<std::string> arguments = {input};
  for (const std::string& slot : slots) {
    if (node.has(slot)) arguments.push_back(modules_.parameter(node.param(slot)));
  }
  arguments.insert(arguments.end(), options.begin(), options.end());
  call(function, arguments);
}

void ForwardPrinter::call(const std::string& head, std::vector<std::string> arguments,
                          const std::string& tail) {
  std::string flat = fmt::format("{}({}){}", head, join(arguments, ", "), tail);
  finish({head, std::move(arguments), tail}, std::move(flat), false);
}

void ForwardPrinter::around(const std::string& head, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), pending_->flat);
  call(head, std::move(arguments));
}

void ForwardPrinter::binary(const std::string& a, const std::string& symbol, const std::string& b,
                            const std::string& function) {
  finish({function, {a, b}}, fmt::format("{} {} {}", a, symbol, b), true);
}

std::string ForwardPrinter::once(const std::string& key, const std::string& wish, ir::ValueId input,
                                 std::string_view expression) {
  if (keeps_name(workload_, input))
    return shared({key, wish, fmt::format(fmt::runtime(expression), inputs_[static_cast<size_t>(input)])});
  const std::string variable = names_.name("once:" + key, wish);
  out_.line(fmt::format("{} = {}", variable, fmt::format(fmt::runtime(expression), use(input))));
  return variable;
}

std::string ForwardPrinter::shared(const Shared& value) {
  if (const auto found = once_.find(value.key); found != once_.end()) return found->second;
  const std::string variable = names_.name("once:" + value.key, value.name);
  if (stretch_.path.empty()) {
    out_.line(variable + " = " + value.expression);
  } else {
    shared_.push_back(value);
  }
  return once_[value.key] = variable;
}

void ForwardPrinter::spelled(const ir::Node& node) {
  std::vector<std::string> inputs;
  for (const ir::ValueId id : node.inputs) inputs.push_back(use(id));
  Spelled made = spell(ir::spellings(node.op)->torch, node, std::move(inputs), Language::kPython,
                       {.rank = shape(node.inputs[0]).size()});
  const bool binary = made.infix;
  Call call = made.head.empty() ? Call{.head = "", .arguments = {made.flat}}
                                : Call{.head = std::move(made.head), .arguments = std::move(made.arguments)};
  finish(std::move(call), std::move(made.flat), binary);
}

bool ForwardPrinter::leaves_to_attention(const ir::Node& node) {
  const ir::ValueId value = workload_.output_of(node_), before = node.inputs[0];
  const std::vector<int> readers = ir::consumers(workload_, value);
  if (node.integers("perm") != ir::Shape{0, 2, 1, 3} || readers.size() != 1 || readers[0] >= stretch_.end ||
      ir::consumers(workload_, before).size() != 1 || escapes(value))
    return false;
  const ir::Node& reader = workload_.nodes[static_cast<size_t>(readers[0])];
  if (reader.op != Op::kAttention || reader.has("keys")) return false;
  const auto covers = [&](const Loop& loop) { return loop.covered.contains(readers[0]); };
  if (std::ranges::any_of(modules_.loops(), covers)) return false;
  for (int n = node_; n <= readers[0]; ++n) {
    const Block* block = blocks_.at(n, stretch_);
    if (block != nullptr && block->stretch.end > readers[0]) return false;  // reads it within
    if (block != nullptr) n = block->stretch.end - 1;
  }
  if (pending_) flush();
  left_.insert(value);
  return true;
}

std::string ForwardPrinter::heads_first(ir::ValueId id) {
  return left_.contains(id) ? use(workload_.producer(id).inputs[0]) : use(id) + ".transpose(1, 2)";
}

void ForwardPrinter::fixed(const std::string& expression) {
  const ir::ValueId id = workload_.output_of(node_);
  variables_[id] = expression;
  fixed_.insert(id);
}

void ForwardPrinter::sum_or_product(const ir::Node& node, const std::string& symbol,
                                    const std::string& function) {
  const auto operand = [&](ir::ValueId id) {
    const bool binary = pending_ && pending_->value == id && pending_->binary;
    const std::string text = use(id);
    return binary ? "(" + text + ")" : text;
  };
  const std::string a = operand(node.inputs[0]);
  const std::string b = operand(node.inputs[1]);
  binary(a, symbol, b, function);
}

// Keeps the expression of the present node until it is known who reads it.
void ForwardPrinter::finish(Call call, std::string flat, bool binary) {
  pending_ = Pending{workload_.output_of(node_), std::move(call), std::move(flat), binary};
}

// Activations, normalisations and sums take the expression they follow as their argument.
bool ForwardPrinter::may_fold(const ir::Node& consumer) const {
  const ir::ValueId value = pending_->value;
  if (escapes(value) || std::count(consumer.inputs.begin(), consumer.inputs.end(), value) != 1) return false;
  if (ir::consumers(workload_, value).size() != 1) return false;
  if (rolling_ != nullptr && rolling_->loop.finals.contains(value)) return false;  // needs a variable
  const Op op = consumer.op;
  // x = self.layer(x).transpose(1, 2)
  constexpr size_t kOfMethod = 44;  // columns of the name, the method and its arguments
  const bool method =
      op == Op::kTranspose || op == Op::kFlatten ||
      (op == Op::kReshape && !view_of(request_.workload, consumer, shape(value)).axes.empty());
  if (method) return !pending_->binary && kOfMethod + pending_->flat.size() <= kColumns;
  const bool around = op == Op::kRelu || op == Op::kGelu || op == Op::kSigmoid || op == Op::kTanh ||
                      op == Op::kBatchNorm || op == Op::kAdd || ir::elementwise_of_one(op);
  const Op inner = workload_.producer(value).op;
  const bool layer = ir::is_conv(inner) || inner == Op::kLinear || inner == Op::kBatchNorm ||
                     inner == Op::kAdd || inner == Op::kLayerNorm;
  // Room for "x = F.gelu(self.layer(...), approximate="tanh")" and the like.
  const std::string module = modules_.module_of(consumer);
  const size_t extra = op == Op::kGelu || ir::elementwise_of_one(op) ? 32
                       : op == Op::kAdd                              ? 20
                       : module.empty()                              ? 16
                                                                     : module.size() + 2;
  const bool named = consumer.params.empty() || !module.empty();
  return around && layer && named && 16 + pending_->flat.size() + extra <= kColumns;
}

void ForwardPrinter::flush() {
  const Pending pending = *pending_;
  pending_.reset();
  const bool final = rolling_ != nullptr && rolling_->loop.finals.contains(pending.value);
  const bool dead = !final && !escapes(pending.value) && last_use(pending.value) < 0;
  const std::string target = dead ? "_" : pick_variable(pending.value);
  if (!dead) variables_[pending.value] = target;
  assign(target, pending);
}

// An empty target: return it.
void ForwardPrinter::assign(const std::string& target, const Pending& pending) {
  const std::string start = target.empty() ? "return " : target + " = ";
  const std::string line = start + pending.flat;
  if (column() + line.size() <= kColumns) return out_.line(line);
  const Call& call = pending.call;
  const std::string& first = call.arguments[0];
  if (call.head != "torch.cat" || column() + first.size() + 5 <= kColumns) {
    return out_.call(start + call.head, call.arguments, call.tail);
  }
  // A long tuple inside the call.
  out_.line(start + call.head + "(");
  {
    const auto inside = out_.indent();
    out_.line("(");
    {
      const auto tuple = out_.indent();
      const ir::Node& node = workload_.producer(pending.value);
      for (const ir::ValueId input : node.inputs) out_.line(read_as_.at(input) + ",");
    }
    out_.line("),");
    out_.line(call.arguments[1] + ",");
  }
  out_.line(")");
}

std::string ForwardPrinter::pick_variable(ir::ValueId value) {
  if (rolling_ != nullptr) {
    if (const std::string carried = rolling_->takes_over(value); !carried.empty()) return carried;
  }
  return variable_for(attention_part(workload_, value), "value:" + std::to_string(value), order_, free_,
                      names_);
}

std::vector<ir::ValueId> ForwardPrinter::outputs() const {
  const std::vector<ir::ValueId> predictions = workload_.predictions();
  return request_.training.predicts() && predictions.size() > 1 ? predictions : workload_.outputs();
}

std::string tensors(size_t count) {
  const std::vector<std::string> types(count, "Tensor");
  return count == 1 ? "Tensor" : fmt::format("tuple[{}]", join(types, ", "));
}

bool ForwardPrinter::escapes(ir::ValueId value) const {
  if (!stretch_.path.empty()) return value == workload_.output_of(stretch_.end - 1);
  const std::vector<ir::ValueId> outputs = this->outputs();
  return std::find(outputs.begin(), outputs.end(), value) != outputs.end();
}

// A value from outside of the stretch lives on for its caller, but its name is free here.
int ForwardPrinter::last_use(ir::ValueId value) const {
  const auto held = held_until_.find(value);
  return std::max(last_reader_in(workload_, readers_, stretch_, value),
                  held == held_until_.end() ? -1 : held->second);
}

std::vector<ir::ValueId> forward_inputs(const ir::Workload& workload) {
  std::vector<ir::ValueId> all;
  const int loss_node = workload.model_end();
  for (ir::ValueId id = 0; id < static_cast<int>(workload.inputs.size()); ++id) {
    const std::vector<int> readers = ir::consumers(workload, id);
    const bool in_model = !readers.empty() && readers.front() < loss_node;
    if (in_model || id == workload.prediction()) all.push_back(id);
  }
  return all;
}

}  // namespace bakeoff::emit::torch
