#include "emit/keras/blocks.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/forward_printer.h"
#include "emit/keras/ops.h"

namespace bakeoff::emit::keras {
namespace {

// encoder_layer(x, mask, "encoder_0", width=64)
std::vector<std::string> arguments_of(Printer& p, const Blocks& blocks, const Block& block, bool loop) {
  std::vector<std::string> all;
  for (const ir::ValueId id : block.inputs) all.push_back(p.value_name(id));
  for (const Shared& value : block.shared) all.push_back(p.shared_value(value));
  const std::string& within = p.stretch.path;
  all.push_back(block_path(public_identifier(block.stretch.path),
                           within.empty() ? "" : public_identifier(within), '_', loop));
  const std::vector<std::string> options = blocks.arguments(block, true);
  all.insert(all.end(), options.begin(), options.end());
  return all;
}

// Gives the index of the last node of what it has printed.
int print_blocks(Printer& p, const Blocks& blocks, const Block& first) {
  std::vector<const Block*> chain = blocks.chain_from(first, p.stretch);
  chain.resize(numbered_alike(blocks, chain));
  const int last = chain.back()->stretch.end - 1;
  const ir::ValueId output = p.workload.output_of(last);
  std::vector<std::string> arguments = arguments_of(p, blocks, first, chain.size() > 1);
  const std::string& function = blocks.family(first).name;
  if (chain.size() == 1) {
    p.out.call(fmt::format("{} = {}", p.value_name(output, first.inputs), function), arguments);
    return last;
  }
  std::string variable = p.left_over(first.inputs[0], last);
  if (variable.empty()) {
    variable = p.fresh("x");
    p.out.line(fmt::format("{} = {}", variable, arguments[0]));
  }
  p.name_value(output, variable);
  arguments[0] = variable;
  const int from = block_number(first), to = from + static_cast<int>(chain.size());
  p.out.line(from == 0 ? fmt::format("for i in range({}):", to)
                       : fmt::format("for i in range({}, {}):", from, to));
  const auto body = p.out.indent();
  p.out.call(fmt::format("{} = {}", variable, function), arguments);
  return last;
}

}  // namespace

Blocks plan_blocks(const Printer& printer) {
  const auto print = [&](const Stretch& stretch, const Blocks& blocks) -> std::optional<Printed> {
    Printer p = printer;
    p.enter(stretch);
    print_nodes(p, blocks);
    p.out.give_back(p.value_name(printer.workload.output_of(stretch.end - 1)));
    return p.printed();
  };
  return Blocks::plan(printer.workload, printer.types, {.names = printer.names(), .functions = true}, print);
}

namespace {

// Slices that are one statement; false where there are none. The node in print is then their last.
bool print_slices(Printer& p, const Blocks& blocks) {
  const ir::Node& slice = p.workload.nodes[static_cast<size_t>(p.node)];
  std::string index = p.slices.select_at(p.node, p.stretch, blocks);
  const bool select = !index.empty();
  const bool moves = p.rolling != nullptr && p.rolling->loop.moving.contains(p.node);
  const Split* const split = moves ? nullptr : p.slices.split_at(p.node, p.stretch, blocks);
  if (moves) index = p.rolling->moving_index(p.node, p.axes(), select);
  if (split == nullptr && !index.empty()) {
    const std::string x = p.value_name(slice.inputs[0]);
    if (select) ++p.node;
    p.out.line(fmt::format("{} = {}{}", p.value_name(p.workload.output_of(p.node)), x, index));
    return true;
  }
  if (split == nullptr) return false;
  const std::string x = p.value_name(slice.inputs[0]);
  std::vector<std::string> names;
  for (const int part : split->nodes) names.push_back(p.value_name(p.workload.output_of(part)));
  const std::vector<int64_t> sizes = p.dialect.second ? split->widths : split->cuts();
  const std::string parts =
      split->even() ? std::to_string(names.size()) : fmt::format("[{}]", join(sizes, ", "));
  const std::string axis = fmt::format("axis={}", split->axis);
  const std::string head =
      fmt::format("{} = {}", join(names, ", "), p.op(split->unbinds ? "unstack" : "split"));
  split->unbinds ? p.out.call(head, {x, axis}) : p.out.call(head, {x, parts, axis});
  p.node = split->nodes.back();
  return true;
}

void print_at(Printer& p, const Blocks& blocks) {
  if (const Block* block = blocks.at(p.node, p.stretch)) {
    p.node = print_blocks(p, blocks, *block);
    return;
  }
  if (print_slices(p, blocks)) return;
  const ir::Node& node = p.workload.nodes[static_cast<size_t>(p.node)];
  if (const auto list = p.lists.find(p.node); list != p.lists.end()) {
    const auto& [function, items] = list->second;
    return p.assign(p.op(function), {items, fmt::format("axis={}", p.axes().at(node.integer("axis")))});
  }
  // What the loop hands on is computed into its variable, where nothing reads the old value any more.
  const ir::ValueId output = p.workload.output_of(p.node);
  if (const std::string variable = p.rolling == nullptr ? "" : p.rolling->takes_over(output);
      !variable.empty())
    p.name_value(output, variable);
  op_functions().at(node.op)(p, node);
}

void print_body(Printer& p, const Blocks& blocks, const Rolling& rolling) {
  std::set<int> printed;
  for (const int n : rolling.loop.body) {
    if (printed.contains(n)) continue;
    p.node = n;
    print_at(p, blocks);
    for (int i = n; i <= p.node; ++i) printed.insert(i);
  }
  for (const auto& [node, made] : rolling.loop.collected) {
    for (const int n : made.tail) {
      p.node = n;
      print_at(p, blocks);
    }
    p.out.line(fmt::format("{}.append({})", rolling.lists.at(node), p.value_name(made.value)));
  }
  std::map<ir::ValueId, std::string> variables;
  for (const Loop::Carry& c : rolling.loop.carries) variables[c.next] = p.value_name(c.next);
  if (const std::string line = rolling.handed_on(variables); !line.empty()) p.out.line(line);
}

void print_loop(Printer& p, const Blocks& blocks, const Loop& loop) {
  for (const int n : loop.sources) {
    p.node = n;
    if (p.read_by_loops.insert(n).second) print_at(p, blocks);
  }
  Rolling rolling(loop, p.workload, p.namer());
  for (const Loop::Carry& c : loop.carries) {
    const std::string variable = p.fresh(unnumbered(p.workload.value_name(c.next)));
    p.out.line(fmt::format("{} = {}", variable, p.in_order(c.start, p.held(c.next))));
    p.name_value(c.before, rolling.carry[c.next] = variable);
  }
  for (const auto& [node, list] : rolling.lists) {
    p.out.line(list + " = []");
    p.lists[node] = {loop.collected.at(node).stacks ? "stack" : "concatenate", rolling.joined(node)};
  }
  p.loop(rolling, [&] { print_body(p, blocks, rolling); });
  for (const Loop::Carry& c : loop.carries)
    if (c.last >= 0) p.name_value(c.last, rolling.carry.at(c.next));
  for (const auto& [value, last] : loop.finals) p.name_value(last, p.value_name(value));
}

}  // namespace

void print_nodes(Printer& p, const Blocks& blocks) {
  const std::vector<Loop> loops = p.loops.in(p.stretch, blocks);
  p.reuses = loops.empty();
  std::set<int> covered;
  for (const Loop& loop : loops) covered.insert(loop.covered.begin(), loop.covered.end());
  for (int n = p.stretch.first; n < p.stretch.end; ++n) {
    for (const Loop& loop : loops)
      if (loop.first == n) print_loop(p, blocks, loop);
    if (covered.contains(n) || p.read_by_loops.contains(n)) continue;
    p.node = n;
    print_at(p, blocks);
    n = p.node;
  }
}

std::string functions_text(const Blocks& blocks) {
  CodeWriter out;
  for (const Family& family : blocks.families()) {
    std::vector<std::string> parameters = family.text.formals;
    parameters.push_back("prefix");
    if (!family.parameters.empty()) parameters.push_back("*");
    const std::vector<std::string> declared = family.declared();
    parameters.insert(parameters.end(), declared.begin(), declared.end());
    out.call("def " + family.name, parameters, ":");
    const auto body = out.indent();
    for (const Statement& s : family.text.body.statements()) out.statement(s);
    out.blank(2);
  }
  return out.text();
}

}  // namespace bakeoff::emit::keras
