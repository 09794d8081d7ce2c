// Loops of the forward pass in JAX and TensorFlow.
//
// A Python loop is unrolled where a function is traced: the compiler gets the nodes of all iterations, and takes longer
// with each of them. With the setting loops = scan the framework is given the loop itself:
//
//   def step(carry, inputs):                            parts = tf.TensorArray(x.dtype, 6)
//       h, c = carry                                    for t in tf.range(6):
//       t, v = inputs                                       v = x[:, t]
//       ...                                                 ...
//       return (h, c), out                                  parts = parts.write(t, out)
//   (h, c), parts = lax.scan(step, (h0, c0), ...)       y = tf.transpose(parts.stack(), (1, 0, 2))
//
// What is carried, moves and is collected is the same in both spellings (emit/loops.h). A slice that moves by its own
// width is handed to lax.scan as an input: read by a traced index, its gradient would be an array of all slices in every
// iteration.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/texts.h"
#include "emit/forward_printer.h"
#include "ir/dropout.h"

namespace bakeoff::emit {
namespace {

// Names of what several values are handed on as: "h" for one, "carry" and a line "h, c = carry" for more.
std::string packed(const std::vector<std::string>& items, const std::string& name) {
  return items.size() == 1 ? items[0] : name;
}

// "h, c = carry"
void print_targets(CodeWriter& out, const std::vector<std::string>& names, const std::string& tail) {
  const std::string flat = join(names, ", ") + tail;
  if (out.column() + flat.size() <= 88) return out.line(flat);
  print_list(out, "", '(', names, tail);
}

std::string tuple_or_one(const std::vector<std::string>& items) {
  return items.empty() ? "None" : items.size() == 1 ? items[0] : fmt::format("({})", join(items, ", "));
}

}  // namespace

bool ForwardPrinter::traceable(const Loop& loop) const {
  const auto is = [&](int n, ir::Op op) { return graph_.workload.nodes[static_cast<size_t>(n)].op == op; };
  // Running statistics are written where they are kept: not out of a traced function.
  if (std::any_of(loop.body.begin(), loop.body.end(), [&](int n) { return is(n, ir::Op::kBatchNorm); }))
    return false;
  if (!tensorflow()) return true;
  // AutoGraph hands on what is defined in front of a loop alone.
  const bool canonical = std::all_of(loop.collected.begin(), loop.collected.end(), [&](const auto& joined) {
    return graph_.plan.output(graph_.workload, joined.first) == Order::kCanonical;
  });
  return loop.finals.empty() && canonical && !loop.carries.empty();
}

void ForwardPrinter::print_loop(const Loop& loop, const OpFunctions<ForwardPrinter>& functions,
                                const Blocks& blocks, const BlockCalls& calls) {
  for (const int n : loop.sources) print_at(n, functions, blocks, calls);
  Rolling rolling(loop, graph_.workload, names_);
  rolling_ = &rolling;
  const bool traced = graph_.trace_loops && traceable(loop);
  if (traced) graph_.traced = rolling.traced = true;
  const auto body = [&](const std::set<int>& given) {
    std::set<int> printed = given;
    for (const int n : loop.body) {
      if (printed.contains(n)) continue;
      for (int end = print_at(n, functions, blocks, calls), i = n; i < end; ++i) printed.insert(i);
    }
    for (const auto& [node, made] : loop.collected)
      for (const int n : made.tail) print_at(n, functions, blocks, calls);
  };
  for (const auto& [node, list] : rolling.lists) {
    const bool stacks = loop.collected.at(node).stacks;
    lists_[node] = {
        tensorflow() ? (stacks ? "tf.stack" : "tf.concat") : (stacks ? "jnp.stack" : "jnp.concatenate"), list,
        stacks};
    if (traced && tensorflow()) lists_[node].join.clear();
  }
  if (traced && !tensorflow())
    print_scan(rolling, blocks, body);
  else
    print_for(rolling, body);
  rolling_ = nullptr;
  for (const Loop::Carry& c : loop.carries)
    if (c.last >= 0) variables_[c.last] = rolling.carry.at(c.next);
  for (const auto& [value, last] : loop.finals) variables_[last] = variables_.at(value);
}

// A slice with a traced index has no size that a compiler knows: what is read says how many places it takes.
int ForwardPrinter::print_places(const Loop::Moving& moving) {
  const std::string x = input(), from = moving.place(rolling_->index);
  const int64_t axis = axes().at(node().integer("axis"));
  if (tensorflow())
    assign("tf.gather",
           {x, fmt::format("{} + tf.range({})", from, moving.width), fmt::format("axis={}", axis)});
  else
    assign("lax.dynamic_slice_in_dim", {x, from, std::to_string(moving.width), fmt::format("axis={}", axis)});
  return node_ + 1;
}

void ForwardPrinter::print_collected(const Collection& made) {
  const int64_t axis = axes().at(node().integer("axis"));
  const std::string variable = target({}, false);
  if (!made.join.empty())
    return out_.call(variable + " = " + made.join, {made.list, fmt::format("axis={}", axis)});
  // A TensorArray stacks its items along a new first axis, which goes to its place: in front of the items' own part of
  // the axis where they are joined.
  std::vector<int64_t> perm(output_shape().size() + (made.stacks ? 0 : 1));
  std::iota(perm.begin(), perm.begin() + axis, 1);
  std::iota(perm.begin() + axis + 1, perm.end(), axis + 1);
  const std::string turned = fmt::format("tf.transpose({}.stack(), {})", made.list, python_tuple(perm));
  if (made.stacks) return out_.line(fmt::format("{} = {}", variable, turned));
  std::vector<int64_t> sizes = output_shape();
  for (int64_t& size : sizes)
    if (size == ir::kBatch) size = -1;
  out_.call(variable + " = tf.reshape", {turned, python_tuple(sizes)});
}

// Whether its variable, which says nothing of what it holds, may be carried.
bool ForwardPrinter::starts_alone(const Rolling& rolling, ir::ValueId id) const {
  const std::string& name = variables_.at(id);
  return letters_.contains(name) && rolling.only_starts(id, stretch_.end) &&
         std::none_of(variables_.begin(), variables_.end(), [&](const auto& other) {
           const auto last = last_use_.find(other.first);
           return other.second == name && last != last_use_.end() &&
                  (last->second > stretch_.end || (other.first != id && last->second >= rolling.loop.first));
         });
}

void ForwardPrinter::print_for(Rolling& rolling, const PrintBody& body) {
  const Loop& loop = rolling.loop;
  const bool traced = rolling.traced;
  std::set<std::string> taken;
  for (const Loop::Carry& c : loop.carries) {
    const std::string start = value(c.start, held(c.next));
    const bool own =
        start == variables_.at(c.start) && starts_alone(rolling, c.start) && taken.insert(start).second;
    const std::string variable = own ? start : new_variable(c.next);
    if (!own) out_.line(fmt::format("{} = {}", variable, start));
    variables_[c.before] = rolling.carry[c.next] = variable;
  }
  for (const auto& [node, list] : rolling.lists) {
    const bool real =
        graph_.types[static_cast<size_t>(loop.collected.at(node).value)].dtype == ir::DType::kF32;
    const std::string dtype = real ? variables_.at(loop.carries[0].start) + ".dtype" : "tf.int32";
    out_.line(traced ? fmt::format("{} = tf.TensorArray({}, {})", list, dtype, loop.count) : list + " = []");
  }
  out_.line(fmt::format("for {} in {}({}):", rolling.index, traced ? "tf.range" : "range", loop.count));
  const auto inside = out_.indent();
  body({});
  for (const auto& [node, made] : loop.collected) {
    const std::string &list = rolling.lists.at(node), &item = variables_.at(made.value);
    out_.line(traced ? fmt::format("{0} = {0}.write({1}, {2})", list, rolling.index, item)
                     : fmt::format("{}.append({})", list, item));
  }
  if (const std::string line = rolling.handed_on(variables_); !line.empty()) out_.line(line);
}

std::vector<ForwardPrinter::Scanned> ForwardPrinter::scanned(const Loop& loop, const Blocks& blocks) {
  std::vector<Scanned> all;
  for (const auto& [n, moving] : loop.moving) {
    node_ = n;
    if (moving.width != 1 || moving.stride != 1 || graph_.slices.select_at(n, stretch_, blocks).empty())
      continue;
    const int64_t axis = axes().at(node().integer("axis"));
    std::string source = variables_.at(node().inputs[0]);
    if (moving.begin != 0 || loop.count != input_shape()[static_cast<size_t>(node().integer("axis"))])
      source += index_of(axis, axes().rank, fmt::format("{} : {}", moving.begin, moving.begin + loop.count));
    if (axis != 0) source = fmt::format("jnp.moveaxis({}, {}, 0)", source, axis);
    const ir::ValueId value = graph_.workload.output_of(n + 1);
    all.push_back({n, variables_[value] = new_variable(value), source});
  }
  return all;
}

// Whether anything reads what the last iteration hands on.
bool ForwardPrinter::hands_out(const Loop& loop) const {
  return std::any_of(loop.carries.begin(), loop.carries.end(), [&](const Loop::Carry& c) {
    const auto last = last_use_.find(c.last);
    const std::vector<int> readers = ir::consumers(graph_.workload, c.last);
    return last != last_use_.end() &&
           (last->second >= graph_.workload.value_count() ||
            std::any_of(readers.begin(), readers.end(), [&](int n) { return !loop.covered.contains(n); }));
  });
}

void ForwardPrinter::print_scan(Rolling& rolling, const Blocks& blocks, const PrintBody& body) {
  const Loop& loop = rolling.loop;
  const auto drops = [&](int n) { return ir::drops(graph_.workload.nodes[static_cast<size_t>(n)]); };
  std::vector<std::string> starts, carried, inputs, sources, next, made;
  const std::vector<Scanned> slices = scanned(loop, blocks);
  if (slices.size() < loop.moving.size() || slices.empty() ||
      (!graph_.predicts && std::any_of(loop.body.begin(), loop.body.end(), drops))) {
    inputs.push_back(rolling.index);
    sources.push_back(fmt::format("jnp.arange({})", loop.count));
  }
  std::set<int> given;
  for (const Scanned& s : slices) {
    inputs.push_back(s.variable);
    sources.push_back(s.source);
    given.insert({s.node, s.node + 1});
  }
  for (const Loop::Carry& c : loop.carries) {
    starts.push_back(value(c.start, held(c.next)));
    carried.push_back(new_variable(c.next));
    variables_[c.before] = rolling.carry[c.next] = carried.back();
  }
  const std::string key = fmt::format(" of loop {}", loop.first);
  const std::string step = names_.name("step" + key, "step");
  const std::string carry = packed(carried, names_.name("carry" + key, "carry"));
  const std::string items = packed(inputs, names_.name("inputs" + key, "inputs"));
  out_.blank();
  out_.line(fmt::format("def {}({}, {}):", step, carry, items));
  {
    const auto inside = out_.indent();
    if (carried.size() > 1) print_targets(out_, carried, " = " + carry);
    if (inputs.size() > 1) print_targets(out_, inputs, " = " + items);
    body(given);
    for (const Loop::Carry& c : loop.carries) next.push_back(variables_.at(c.next));
    for (const auto& [_, item] : loop.collected) made.push_back(variables_.at(item.value));
    for (const auto& [value, _] : loop.finals) made.push_back(variables_.at(value));
    if (next.size() > 1)
      print_list(out_, "return ", '(', next, ", " + tuple_or_one(made));
    else
      out_.line(fmt::format("return {}, {}", tuple_or_one(next), tuple_or_one(made)));
  }
  out_.blank();
  if (starts.size() > 1) print_list(out_, carry + " = ", '(', starts);
  if (sources.size() > 1) print_list(out_, items + " = ", '(', sources);
  std::vector<std::string> lists;
  for (const auto& [_, list] : rolling.lists) lists.push_back(list);
  for (const auto& [value, _] : loop.finals) lists.push_back(variables_.at(value));
  const bool read = hands_out(loop);
  const std::string call =
      fmt::format(" = lax.scan({}, {}, {})", step, starts.size() > 1 ? carry : tuple_or_one(starts),
                  sources.size() > 1 ? items : sources[0]);
  const std::string rest = ", " + (lists.empty() ? "_" : tuple_or_one(lists)) + call;
  if (read && carried.size() > 1)
    print_list(out_, "", '(', carried, rest);
  else
    out_.line((read ? carried[0] : "_") + rest);
  for (const auto& [value, _] : loop.finals) out_.line(fmt::format("{0} = {0}[-1]", variables_.at(value)));
}

}  // namespace bakeoff::emit
