// As emit/torch/forward.cc, whose head says how statements are made. Two things differ in C++. A variable
// needs a declaration where it is new: order_ lists the names in scope, and a statement begins with "Tensor"
// if it has made the list longer. And a loop is a scope: what is declared in its body is gone behind it, so
// order_ and once_ are put back there, and values that are read behind the loop are declared in front of it.

#include "emit/libtorch/forward.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/texts.h"
#include "emit/libtorch/cpp.h"
#include "emit/spelling.h"
#include "emit/torch_rules.h"
#include "ir/elementwise.h"

namespace bakeoff::emit::libtorch {

using ir::Op;

ForwardPrinter::ForwardPrinter(CodeWriter& out, const Request& request, const Modules& modules,
                               const Blocks& blocks, const std::vector<ir::Type>& types,
                               const std::vector<std::string>& inputs, Namer names)
    : out_(out),
      workload_(request.workload),
      modules_(modules),
      blocks_(blocks),
      types_(types),
      inputs_(inputs),
      names_(std::move(names)),
      stretch_{"", 0, workload_.model_end()},
      readers_(last_readers(workload_)),
      slices_(workload_, types_) {}

void ForwardPrinter::print(const OpFunctions<ForwardPrinter>& functions) {
  std::vector<std::string> parameters;
  for (size_t i = 0; i < forward_arity(workload_); ++i) {
    const auto id = static_cast<ir::ValueId>(i);
    if (!read_by_model(workload_, id)) {
      parameters.push_back("const Tensor& /*" + inputs_[i] + "*/");
      continue;
    }
    variables_[id] = inputs_[i];
    order_.push_back(inputs_[i]);
    parameters.push_back((inputs_[i] == "x" ? "Tensor " : "const Tensor& ") + inputs_[i]);
  }
  const std::vector<ir::ValueId> outputs = workload_.outputs();
  const std::vector<std::string> types(outputs.size(), "Tensor");
  const bool several = outputs.size() > 1;
  libtorch::call(out_, several ? fmt::format("std::tuple<{}> forward", join(types, ", ")) : "Tensor forward",
                 parameters, " {");
  {
    const auto body = out_.indent();
    print_nodes(functions);
    if (several) {
      if (pending_) flush();
      std::vector<std::string> results;
      for (const ir::ValueId id : outputs) results.push_back(variables_.at(id));
      out_.line(fmt::format("return {{{}}};", join(results, ", ")));
    } else {
      print_return(workload_.prediction());
    }
  }
  out_.line("}");
}

void ForwardPrinter::print_return(ir::ValueId value) {
  if (pending_ && pending_->value == value) return statement(out_, "return " + pending_->text + ";");
  if (pending_) flush();
  out_.line("return " + variables_.at(value) + ";");
}

Printed ForwardPrinter::print(const OpFunctions<ForwardPrinter>& functions, const Stretch& stretch) {
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
      variables_[id] = real_literal(workload_.producer(id).real("value"), Language::kCpp);
      fixed_.insert(id);
      continue;
    }
    if (keeps_name(workload_, id)) order_.push_back(inputs_[static_cast<size_t>(id)]);
    variables_[id] = keeps_name(workload_, id) ? order_.back() : pick_variable(id);
    formals[id] = (keeps_name(workload_, id) ? "const Tensor& " : "Tensor ") + variables_[id];
    printed.inputs.push_back(id);
  }
  for (const auto& [id, other] : fills)
    if (blocks_.reads(workload_, stretch, id)) print_fill(id, other);
  print_nodes(functions);
  print_return(workload_.output_of(stretch.end - 1));
  // Values that only once() reads are not passed.
  std::erase_if(printed.inputs, [&](ir::ValueId id) { return !used_.contains(id); });
  for (const ir::ValueId id : printed.inputs) printed.formals.push_back(formals.at(id));
  printed.shared = shared_;
  for (const Shared& value : shared_) printed.formals.push_back("const Tensor& " + once_.at(value.key));
  return printed;
}

// Tensor h = x.new_zeros({x.size(0), 8}), of a value that has as many rows
void ForwardPrinter::print_fill(ir::ValueId id, ir::ValueId other) {
  const ir::Node& node = workload_.producer(id);
  const std::string number = real_literal(workload_.producer(node.inputs[0]).real("value"), Language::kCpp);
  used_.insert(other);
  const Spelled made =
      spell(ir::spellings(node.op)->libtorch, node, {number, variables_.at(other)}, Language::kCpp);
  statement(out_, fmt::format("Tensor {} = {};", variables_[id] = pick_variable(id), made.flat));
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
  if (const Block* block = blocks_.at(n, stretch_)) return print_blocks(*block);
  if (const Cell* cell = modules_.cell_at(n)) {
    print_cell(*cell);
    return node_;
  }
  if (const int last = print_slice(n); last >= 0) return last;
  const ir::Node& node = workload_.nodes[static_cast<size_t>(n)];
  const ir::ValueId value = workload_.output_of(n);
  if (is_fill(workload_, value) && !blocks_.reads(workload_, stretch_, value)) return n;
  if (pending_ && !may_fold(node)) flush();
  if (const auto list = lists_.find(n); list != lists_.end())
    finish(list->second, false);
  else
    functions.at(node.op)(*this, node);
  return n;
}

// A slice of one place, or one that moves along with the loop in print.
int ForwardPrinter::print_slice(int n) {
  const ir::Node& slice = workload_.nodes[static_cast<size_t>(n)];
  const bool moves = rolling_ != nullptr && rolling_->loop.moving.contains(n);
  const Split* const split = moves ? nullptr : slices_.split_at(n, stretch_, blocks_);
  if (split != nullptr) return print_split(*split, slice.inputs[0]);
  const bool select = !slices_.select_at(n, stretch_, blocks_).empty();
  if (!select && !moves) return -1;
  if (pending_) flush();
  node_ = select ? n + 1 : n;
  const std::string x = use(slice.inputs[0]);
  const int64_t axis = slice.integer("axis"), begin = slice.integer("begin");
  const std::string from = moves ? rolling_->loop.moving.at(n).place(rolling_->index) : std::to_string(begin);
  finish(select ? fmt::format("{}.select({}, {})", x, axis, from)
                : fmt::format("{}.narrow({}, {}, {})", x, axis, from, slice.integer("end") - begin),
         false);
  return node_;
}

int ForwardPrinter::print_split(const Split& split, ir::ValueId from) {
  if (pending_) flush();
  node_ = split.nodes.back();
  const std::string x = use(from);
  const std::string parts = names_.name(fmt::format("parts {}", node_), "parts");
  std::string sizes =
      split.even() ? std::to_string(split.nodes.size()) : fmt::format("{{{}}}", join(split.widths, ", "));
  const char* const method = split.unbinds ? "unbind" : split.even() ? "chunk" : "split_with_sizes";
  sizes = split.unbinds ? "" : sizes + ", ";
  statement(out_, fmt::format("const auto {} = {}.{}({}{});", parts, x, method, sizes, split.axis));
  for (size_t i = 0; i < split.nodes.size(); ++i) {
    const ir::ValueId value = workload_.output_of(split.nodes[i]);
    const size_t before = order_.size();
    variables_[value] = pick_variable(value);
    out_.line(
        fmt::format("{}{} = {}[{}];", order_.size() > before ? "Tensor " : "", variables_[value], parts, i));
  }
  return node_;
}

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
    const size_t before = order_.size();
    const std::string variable = own ? start : pick_variable(c.before);
    if (!own) out_.line(fmt::format("{}{} = {};", order_.size() > before ? "Tensor " : "", variable, start));
    variables_[c.before] = rolling.carry[c.next] = variable;
  }
  for (const auto& [value, _] : loop.finals) {
    const size_t before = order_.size();
    declared_[value] = pick_variable(value);
    if (order_.size() > before) out_.line(fmt::format("Tensor {};", declared_.at(value)));
  }
  for (const auto& [node, list] : rolling.lists) {
    out_.line(fmt::format("std::vector<Tensor> {};", list));
    const Loop::Collected& made = loop.collected.at(node);
    const std::string items =
        made.reversed ? fmt::format("std::vector<Tensor>({0}.rbegin(), {0}.rend())", list) : list;
    lists_[node] = fmt::format("torch::{}({}, {})", made.stacks ? "stack" : "cat", items,
                               workload_.nodes[static_cast<size_t>(node)].integer("axis"));
  }
  const std::vector<std::string> outside = order_;
  const auto once = once_;
  out_.line(fmt::format("for (int64_t {0} = 0; {0} < {1}; ++{0}) {{", rolling.index, loop.count));
  print_body(functions, rolling);
  out_.line("}");
  rolling_ = nullptr;
  order_ = outside;
  once_ = once;
  for (const Loop::Carry& c : loop.carries)
    if (c.last >= 0) variables_[c.last] = rolling.carry.at(c.next);
  for (const auto& [value, last] : loop.finals) variables_[last] = declared_.at(value);
  free_ = free_after(loop, workload_, stretch_.end, variables_, order_,
                     [this](ir::ValueId id) { return escapes(id); });
}

void ForwardPrinter::print_body(const OpFunctions<ForwardPrinter>& functions, const Rolling& rolling) {
  const auto body = out_.indent();
  std::set<int> printed;
  for (const int n : rolling.loop.body) {
    if (printed.contains(n)) continue;
    for (int last = print_at(functions, n), i = n; i <= last; ++i) printed.insert(i);
  }
  for (const auto& [node, made] : rolling.loop.collected) {
    for (const int n : made.tail) print_at(functions, n);
    if (pending_ && (pending_->value != made.value || rolling.carry.contains(made.value))) flush();
    statement(out_, fmt::format("{}.push_back({});", rolling.lists.at(node), use(made.value)));
  }
  if (pending_) flush();
  const std::string line = rolling.handed_on(variables_);  // "h, c = u, v"
  const size_t middle = line.find(" = ");
  const bool several = line.find(',') < middle;
  if (several)
    out_.line(
        fmt::format("std::tie({}) = std::make_tuple({});", line.substr(0, middle), line.substr(middle + 3)));
  else if (!line.empty())
    out_.line(line + ";");
}

int ForwardPrinter::print_blocks(const Block& first) {
  if (pending_) flush();
  std::vector<const Block*> chain = blocks_.chain_from(first, stretch_);
  while (chain.size() > 1 && modules_.list_of(chain).empty()) chain.pop_back();
  node_ = first.stretch.end - 1;
  std::vector<std::string> arguments;
  for (const ir::ValueId id : first.inputs) arguments.push_back(use(id));
  for (const Shared& value : first.shared) arguments.push_back(shared(value));
  if (chain.size() == 1) {
    call(modules_.call_of(first), arguments);
    return node_;
  }
  const int last = chain.back()->stretch.end - 1;
  const ir::ValueId output = workload_.output_of(last);
  std::string variable = arguments[0];
  if (const auto dead = std::find(free_.begin(), free_.end(), variable); dead != free_.end()) {
    free_.erase(dead);
  } else {
    const size_t before = order_.size();
    variable = pick_variable(output);
    out_.line(fmt::format("{}{} = {};", order_.size() > before ? "Tensor " : "", variable, arguments[0]));
    arguments[0] = variable;
  }
  const std::string item = names_.name("loop item", "block");
  out_.line(fmt::format("for (const auto& {} : *{}) {{", item, modules_.list_of(chain)));
  {
    const auto body = out_.indent();
    statement(out_, fmt::format("{} = {}->as<{}>()->forward({});", variable, item, blocks_.family(first).name,
                                join(arguments, ", ")));
  }
  out_.line("}");
  node_ = last;
  for (size_t i = 1; i < chain.back()->inputs.size(); ++i) use(chain.back()->inputs[i]);
  variables_[output] = variable;
  return last;
}

// std::tie(h, c) = cell(x.select(1, t), std::make_tuple(h, c));
void ForwardPrinter::print_cell(const Cell& cell) {
  constexpr size_t kShort = 24;  // columns of an expression that stands in the call
  const bool stands = pending_ && pending_->value == cell.x && pending_->text.size() <= kShort &&
                      ir::consumers(workload_, cell.x).size() == 1 && !escapes(cell.x);
  if (pending_ && !stands) flush();
  node_ = cell.end - 1;
  const std::string x = use(cell.x), h = use(cell.h), module = modules_.module_of(cell);
  if (cell.c < 0) return call(module, {x, h});
  const std::string text = fmt::format("{}({}, std::make_tuple({}, {}))", module, x, h, use(cell.c));
  const ir::ValueId next_h = workload_.output_of(node_);
  if (last_use(cell.next_c) < cell.end && !escapes(cell.next_c))
    return finish(fmt::format("std::get<0>({})", text), false);
  const size_t before = order_.size();
  const std::string& next = variables_[next_h] = variable_after(cell.h, next_h);
  const size_t between = order_.size();
  const std::string& next_c = variables_[cell.next_c] = variable_after(cell.c, cell.next_c);
  const bool new_h = between > before, new_c = order_.size() > between;
  if (new_h && new_c) return statement(out_, fmt::format("auto [{}, {}] = {};", next, next_c, text));
  if (new_h || new_c) out_.line(fmt::format("Tensor {};", new_h ? next : next_c));
  statement(out_, fmt::format("std::tie({}, {}) = {};", next, next_c, text));
}

std::string ForwardPrinter::variable_after(ir::ValueId before, ir::ValueId value) {
  const auto own = std::find(free_.begin(), free_.end(), variables_.at(before));
  if (own == free_.end() || declared_.contains(value) ||
      (rolling_ != nullptr && rolling_->carry.contains(value)))
    return pick_variable(value);
  const std::string name = *own;
  free_.erase(own);
  return name;
}

std::string ForwardPrinter::use(ir::ValueId id) {
  if (pending_ && pending_->value == id) {
    std::string text = pending_->text;
    pending_.reset();
    return text;
  }
  const std::string name = variables_.at(id);
  used_.insert(id);
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

std::string ForwardPrinter::param(const ir::Node& node, std::string_view slot) const {
  return node.has(slot) ? modules_.parameter(node.param(slot)) : "{}";
}

void ForwardPrinter::call(const std::string& head, const std::vector<std::string>& arguments) {
  finish(fmt::format("{}({})", head, join(arguments, ", ")), false);
}

std::string ForwardPrinter::once(const std::string& key, const std::string& wish, ir::ValueId input,
                                 std::string_view expression) {
  if (keeps_name(workload_, input))
    return shared({key, wish, fmt::format(fmt::runtime(expression), inputs_[static_cast<size_t>(input)])});
  const std::string variable = names_.name("once:" + key, wish);
  statement(out_, fmt::format("const Tensor {} = {};", variable,
                              fmt::format(fmt::runtime(expression), use(input))));
  return variable;
}

std::string ForwardPrinter::shared(const Shared& value) {
  if (const auto found = once_.find(value.key); found != once_.end()) return found->second;
  const std::string variable = names_.name("once:" + value.key, value.name);
  if (stretch_.path.empty()) {
    statement(out_, fmt::format("const Tensor {} = {};", variable, value.expression));
  } else {
    shared_.push_back(value);
  }
  return once_[value.key] = variable;
}

void ForwardPrinter::spelled(const ir::Node& node) {
  std::vector<std::string> inputs;
  for (const ir::ValueId id : node.inputs) inputs.push_back(use(id));
  Spelled made = spell(ir::spellings(node.op)->libtorch, node, std::move(inputs), Language::kCpp,
                       {.rank = shape(node.inputs[0]).size()});
  finish(std::move(made.flat), made.infix);
}

void ForwardPrinter::fixed(const std::string& expression) {
  const ir::ValueId id = workload_.output_of(node_);
  variables_[id] = expression;
  fixed_.insert(id);
}

void ForwardPrinter::sum_or_product(const ir::Node& node, char symbol) {
  const auto operand = [&](ir::ValueId id) {
    const bool binary = pending_ && pending_->value == id && pending_->binary;
    const std::string text = use(id);
    return binary ? "(" + text + ")" : text;
  };
  const std::string a = operand(node.inputs[0]);
  const std::string b = operand(node.inputs[1]);
  binary(a, symbol, b);
}

void ForwardPrinter::binary(const std::string& a, char symbol, const std::string& b) {
  finish(fmt::format("{} {} {}", a, symbol, b), true);
}

// Keeps the expression of the present node until it is known who reads it.
void ForwardPrinter::finish(std::string text, bool binary) {
  pending_ = Pending{workload_.output_of(node_), std::move(text), binary};
}

// Activations, normalisations and sums take the expression they follow as their argument.
bool ForwardPrinter::may_fold(const ir::Node& consumer) const {
  const ir::ValueId value = pending_->value;
  if (escapes(value) || std::count(consumer.inputs.begin(), consumer.inputs.end(), value) != 1) return false;
  if (ir::consumers(workload_, value).size() != 1) return false;
  if (declared_.contains(value)) return false;  // needs its variable
  const Op op = consumer.op;
  // x = self.layer(x).transpose(1, 2)
  constexpr size_t kOfMethod = 44;  // columns of the name, the method and its arguments
  const bool method = op == Op::kTranspose || op == Op::kFlatten ||
                      (op == Op::kReshape && !view_of(workload_, consumer, shape(value)).axes.empty());
  if (method) return !pending_->binary && kOfMethod + pending_->text.size() <= kColumns;
  const bool around = op == Op::kRelu || op == Op::kGelu || op == Op::kSigmoid || op == Op::kTanh ||
                      op == Op::kBatchNorm || op == Op::kAdd || ir::elementwise_of_one(op);
  const Op inner = workload_.producer(value).op;
  const bool layer = ir::is_conv(inner) || inner == Op::kLinear || inner == Op::kBatchNorm ||
                     inner == Op::kAdd || inner == Op::kLayerNorm;
  const bool named = consumer.params.empty() || !modules_.module_of(consumer).empty();
  return around && layer && named && 50 + pending_->text.size() <= kColumns;
}

void ForwardPrinter::flush() {
  const Pending pending = *pending_;
  pending_.reset();
  if (!escapes(pending.value) && last_use(pending.value) < 0 &&
      !declared_.contains(pending.value)) {  // nobody reads it
    return statement(out_, pending.text + ";");
  }
  const size_t before = order_.size();
  const std::string target = pick_variable(pending.value);
  variables_[pending.value] = target;
  const bool declares = order_.size() > before;
  statement(out_, fmt::format("{}{} = {};", declares ? "Tensor " : "", target, pending.text));
}

std::string ForwardPrinter::pick_variable(ir::ValueId value) {
  if (const auto known = declared_.find(value); known != declared_.end()) return known->second;
  if (rolling_ != nullptr) {
    if (const std::string carried = rolling_->takes_over(value); !carried.empty()) return carried;
  }
  return variable_for(attention_part(workload_, value), "value:" + std::to_string(value), order_, free_,
                      names_);
}

bool ForwardPrinter::escapes(ir::ValueId value) const {
  if (!stretch_.path.empty()) return value == workload_.output_of(stretch_.end - 1);
  const std::vector<ir::ValueId> outputs = workload_.outputs();
  return std::find(outputs.begin(), outputs.end(), value) != outputs.end();
}

// A value from outside of the stretch lives on for its caller, but its name is free here.
int ForwardPrinter::last_use(ir::ValueId value) const {
  const auto held = held_until_.find(value);
  return std::max(last_reader_in(workload_, readers_, stretch_, value),
                  held == held_until_.end() ? -1 : held->second);
}

bool read_by_model(const ir::Workload& workload, ir::ValueId input) {
  const std::vector<int> readers = ir::consumers(workload, input);
  const int loss_node = workload.model_end();
  return (!readers.empty() && readers.front() < loss_node) || input == workload.prediction();
}

size_t forward_arity(const ir::Workload& workload) {
  size_t arity = workload.inputs.size();
  while (arity > 1 && !read_by_model(workload, static_cast<ir::ValueId>(arity) - 1)) --arity;
  return arity;
}

}  // namespace bakeoff::emit::libtorch
