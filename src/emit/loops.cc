// An importer sees a decoder's loop unrolled. Here it is rolled up again, in three steps.
//
// 1. The nodes in order, each as a number that says op, parameters and attributes (of a slice not where it begins),
//    are searched for a period p: nodes that equal the ones p places further on, over at least two periods.
// 2. validate() checks that the data flow repeats too. What a node of the second iteration reads comes from its own
//    iteration, from the one before (then it is carried), or from outside of the loop; it must be the same for every
//    iteration. Slices may move along by the same stride each time.
// 3. What is read behind the loop must be a value of the last iteration, or the same of all iterations, in order, by one
//    concat. Nodes between the loop and that concat become part of the iterations.
//
// A period has many places to begin at, as a rotated loop is one too. The one with the most iterations is taken, then
// one whose body begins with a moving slice, then the first. The last iteration may lack nodes whose values nobody would read (the importer drops
// them); the printed loop then computes them once more than the graph.

#include "emit/loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/texts.h"
#include "emit/slices.h"
#include "ir/dropout.h"
#include "ir/op_table.h"

namespace bakeoff::emit {
namespace {

constexpr size_t kLeastNodes = 4;  // of an iteration that is worth a loop

std::string text_of(const ir::AttrValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::vector<int64_t>>)
          return join(v, ",");
        else
          return fmt::format("{}", v);
      },
      value);
}

bool moves(const ir::Node& node) { return node.op == ir::Op::kSlice && node.integer("step") == 1; }

std::string key_of(const ir::Node& node) {
  std::string key = ir::info(node.op).name;
  for (const ir::Slot& slot : node.params) key += fmt::format(" {}={}", slot.name, slot.param);
  for (const ir::Attribute& a : node.attributes) {
    if (moves(node) && (a.name == "begin" || a.name == "end")) continue;
    key += fmt::format(" {}:{}", a.name, text_of(a.value));
  }
  return key;
}

// A candidate: iterations as rows of node indices; -1 for one that the last iteration lacks.
using Rows = std::vector<std::vector<int>>;

class LoopFinder {
 public:
  LoopFinder(const ir::Workload& workload, const std::vector<ir::Type>& types, const std::vector<int>& live)
      : workload_(workload), types_(types) {
    readers_.resize(static_cast<size_t>(workload.value_count()));
    for (int n = 0; n < static_cast<int>(workload.nodes.size()); ++n)
      for (const ir::ValueId id : node(n).inputs) {
        std::vector<int>& all = readers_[static_cast<size_t>(id)];
        if (all.empty() || all.back() != n) all.push_back(n);
      }
    std::map<std::string, ir::ValueId> same;
    for (ir::ValueId id = 0; workload.is_input(id); ++id) same_.push_back(id);
    for (int n = 0; n < workload.model_end(); ++n) {
      const ir::ValueId value = workload.output_of(n);
      same_.push_back(node(n).inputs.empty() ? same.emplace(key_of(node(n)), value).first->second : value);
    }
    for (const int n : live) {
      if (!node(n).inputs.empty() && !sinks(n)) add(n);
    }
  }

  std::vector<Loop> find() {
    std::vector<Loop> loops;
    std::vector<std::pair<size_t, size_t>> ranges;  // of nodes_, in which a loop was found
    for (size_t period = kLeastNodes; 3 * period <= nodes_.size(); ++period) {
      for (size_t i = 0; i + period < nodes_.size(); ++i) {
        size_t run = 0;
        while (i + run + period < nodes_.size() && keys_[i + run] == keys_[i + run + period]) ++run;
        // Twice the period of a loop is a period of it too, but no better one.
        const std::pair range(i, i + run + period);
        const bool known = std::any_of(ranges.begin(), ranges.end(), [&](const auto& other) {
          return other.first <= range.first && range.second <= other.second;
        });
        if (run >= 2 * period && !known) {
          if (const auto loop = best(i, run, period)) {
            loops.push_back(*loop);
            ranges.push_back(range);
          }
        }
        i += run;
      }
    }
    return apart(std::move(loops));
  }

 private:
  const ir::Node& node(int n) const { return workload_.nodes[static_cast<size_t>(n)]; }
  const std::vector<int>& readers(ir::ValueId id) const { return readers_[static_cast<size_t>(id)]; }

  // A slice and the reshape of it are looked for in front of their reader: x.unbind(1) takes all places at once.
  bool sinks(int n) const {
    const std::vector<int>& all = readers(workload_.output_of(n));
    if (all.size() != 1 || all[0] >= workload_.model_end()) return false;
    if (moves(node(n))) return reshapes(all[0]);
    const ir::ValueId input = node(n).inputs[0];
    return reshapes(n) && !workload_.is_input(input) && moves(workload_.producer(input)) &&
           readers(input).size() == 1;
  }
  bool reshapes(int n) const { return node(n).op == ir::Op::kReshape || node(n).op == ir::Op::kFlatten; }
  void add(int n) {
    for (const ir::ValueId id : node(n).inputs) {
      const int from = id - workload_.output_of(0);
      if (from >= 0 && !node(from).inputs.empty() && sinks(from)) add(from);
    }
    nodes_.push_back(n);
    keys_.push_back(numbers_.emplace(key_of(node(n)), static_cast<int>(numbers_.size())).first->second);
  }

  // Of loops that overlap the one that covers most, of those the one with the shortest iteration.
  static std::vector<Loop> apart(std::vector<Loop> loops) {
    std::stable_sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) {
      return a.covered.size() != b.covered.size() ? a.covered.size() > b.covered.size()
                                                  : a.body.size() < b.body.size();
    });
    std::vector<Loop> kept;
    std::set<int> taken;
    for (Loop& loop : loops) {
      if (std::any_of(loop.covered.begin(), loop.covered.end(), [&](int n) { return taken.contains(n); }))
        continue;
      taken.insert(loop.covered.begin(), loop.covered.end());
      kept.push_back(std::move(loop));
    }
    return kept;
  }

  std::optional<Loop> best(size_t from, size_t run, size_t period) const {
    const size_t count = run / period + 1;
    std::optional<Loop> found;
    for (size_t start = from; start < from + period && start + count * period <= from + run + period;
         ++start) {
      Rows rows(count);
      for (size_t i = 0; i < count; ++i)
        rows[i].assign(nodes_.begin() + static_cast<long>(start + i * period),
                       nodes_.begin() + static_cast<long>(start + (i + 1) * period));
      Rows longer = rows;
      longer.push_back(partial(start, count, period));
      for (const Rows* tried : {&longer, &rows}) {
        std::optional<Loop> loop = validate(*tried);
        if (!loop) continue;
        const auto rank = [&](const Loop& l) { return std::pair(l.count, l.moving.contains(l.body[0])); };
        if (!found || rank(*loop) > rank(*found)) found = std::move(loop);
        break;
      }
    }
    return found;
  }

  // The nodes behind the last whole iteration that make one more, in which some are missing.
  std::vector<int> partial(size_t start, size_t count, size_t period) const {
    std::vector<int> row;
    size_t at = start + count * period;
    for (size_t j = 0; j < period; ++j) {
      const bool here = at < nodes_.size() && keys_[at] == keys_[start + j];
      row.push_back(here ? nodes_[at++] : -1);
    }
    return row;
  }

  struct Place {
    int row, column;
    bool operator==(const Place&) const = default;
  };

  std::optional<Loop> validate(const Rows& rows) const {
    const std::vector<int>& body = rows[1];
    const auto missing = std::count(rows.back().begin(), rows.back().end(), -1);
    if (static_cast<size_t>(missing) * 3 > body.size()) return std::nullopt;
    const bool trains = std::any_of(body.begin(), body.end(), [&](int n) { return !node(n).params.empty(); });
    if (!trains) return std::nullopt;
    std::map<ir::ValueId, Place> places;
    Loop loop{.first = workload_.model_end(), .count = static_cast<int>(rows.size()), .body = body};
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t j = 0; j < body.size(); ++j) {
        if (rows[i][j] < 0 && ir::drops(node(body[j]))) return std::nullopt;
        if (rows[i][j] < 0) continue;
        places[workload_.output_of(rows[i][j])] = {static_cast<int>(i), static_cast<int>(j)};
        loop.covered.insert(rows[i][j]);
        if (!sinks(rows[i][j])) loop.first = std::min(loop.first, rows[i][j]);
      }
    for (size_t j = 0; j < body.size(); ++j) {
      for (size_t q = 0; q < node(body[j]).inputs.size(); ++q)
        if (!same_flow(rows, places, j, q, loop)) return std::nullopt;
      if (moves(node(body[j])) && !same_stride(rows, j, loop)) return std::nullopt;
    }
    for (size_t j = 0; j < body.size(); ++j)
      if (!leaves_well(rows, places, j, loop)) return std::nullopt;
    for (const int n : body)
      for (const ir::ValueId id : node(n).inputs) add_source(id, loop);
    for (const Loop::Carry& c : loop.carries) add_source(c.start, loop);
    return loop;
  }

  void add_source(ir::ValueId id, Loop& loop) const {
    const int n = id - workload_.output_of(0);
    if (n >= 0 && node(n).inputs.empty()) loop.sources.push_back(n);
  }

  bool same_flow(const Rows& rows, const std::map<ir::ValueId, Place>& places, size_t j, size_t q,
                 Loop& loop) const {
    const auto input = [&](size_t i) { return node(rows[i][j]).inputs[q]; };
    const auto place = [&](size_t i) {
      const auto found = places.find(input(i));
      return found == places.end() ? Place{-1, -1} : found->second;
    };
    const Place second = place(1);
    const bool carried = second.row == 0;
    for (size_t i = carried ? 1 : 0; i < rows.size(); ++i) {
      if (rows[i][j] < 0) continue;
      if (node(rows[i][j]).inputs.size() != node(rows[1][j]).inputs.size()) return false;
      const Place wanted =
          second.row < 0 ? second : Place{static_cast<int>(i) - (carried ? 1 : 0), second.column};
      if (place(i) != wanted) return false;
      if (second.row < 0 && !same(input(i), input(1))) return false;
    }
    if (second.row < 0) return before(input(0), loop);
    if (!carried) return second.column < static_cast<int>(j);
    if (place(0).row >= 0 || !before(input(0), loop)) return false;
    const auto column = static_cast<size_t>(second.column);
    const int last = rows.back()[column];
    const Loop::Carry carry{.start = input(0),
                            .before = input(1),
                            .next = workload_.output_of(rows[1][column]),
                            .last = last < 0 ? -1 : workload_.output_of(last)};
    for (const Loop::Carry& other : loop.carries)
      if (other.next == carry.next) return same(other.start, carry.start);
    loop.carries.push_back(carry);
    return true;
  }

  bool same(ir::ValueId a, ir::ValueId b) const {
    return same_[static_cast<size_t>(a)] == same_[static_cast<size_t>(b)];
  }
  // Numbers and parameters are there wherever they stand.
  bool before(ir::ValueId id, const Loop& loop) const {
    return workload_.is_input(id) || workload_.producer(id).inputs.empty() ||
           id < workload_.output_of(loop.first);
  }

  bool same_stride(const Rows& rows, size_t j, Loop& loop) const {
    const auto begin = [&](size_t i) { return node(rows[i][j]).integer("begin"); };
    const auto width = [&](size_t i) { return node(rows[i][j]).integer("end") - begin(i); };
    const int64_t stride = begin(1) - begin(0);
    for (size_t i = 1; i < rows.size(); ++i) {
      if (rows[i][j] < 0) continue;
      if (width(i) != width(0) || begin(i) != begin(0) + stride * static_cast<int64_t>(i)) return false;
    }
    if (stride != 0) loop.moving[rows[1][j]] = {begin(0), width(0), stride};
    return true;
  }

  // Whether what is read of this node behind the loop can be had there; tails become part of the loop.
  bool leaves_well(const Rows& rows, const std::map<ir::ValueId, Place>& places, size_t j, Loop& loop) const {
    std::vector<ir::ValueId> values;
    std::vector<std::vector<int>> readers;
    for (const auto& row : rows) {
      values.push_back(row[j] < 0 ? -1 : workload_.output_of(row[j]));
      readers.push_back(row[j] < 0 ? std::vector<int>() : this->readers(values.back()));
      std::erase_if(readers.back(), [&](int n) { return places.contains(workload_.output_of(n)); });
    }
    const std::vector<ir::ValueId> outputs = workload_.outputs();
    const bool carried = std::any_of(loop.carries.begin(), loop.carries.end(), [&](const Loop::Carry& c) {
      return c.last >= 0 && c.last == values.back();
    });
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool given = std::find(outputs.begin(), outputs.end(), values[i]) != outputs.end();
      if (given && !(carried && i + 1 == rows.size())) return false;
    }
    if (readers[0].empty()) {
      const bool others =
          std::any_of(readers.begin(), readers.end() - 1, [](const auto& r) { return !r.empty(); });
      if (!others && !readers.back().empty() && !carried) loop.finals[values[1]] = values.back();
      return !others;
    }
    return collect(values, readers, carried, loop);
  }

  // A person would write the reshape of an item to one more axis and the concat along it as one stack.
  bool adds_axis(int tail, int join) const {
    const ir::Node& reshape = node(tail);
    if (reshape.op != ir::Op::kReshape) return false;
    ir::Shape shape = reshape.integers("shape");
    const auto axis = node(join).integer("axis");
    if (axis == 0 || shape[static_cast<size_t>(axis)] != 1) return false;
    shape.erase(shape.begin() + axis);
    return shape == types_[static_cast<size_t>(reshape.inputs[0])].shape;
  }

  bool collect(std::vector<ir::ValueId> values, std::vector<std::vector<int>> readers, bool carried,
               Loop& loop) const {
    Loop::Collected made;
    for (;;) {
      const int first = readers[0].size() == 1 ? readers[0][0] : -1;
      if (first < 0 || first >= workload_.model_end()) return false;
      // What is collected may be read behind the loop, too: of the last iteration.
      const bool last_is_read = made.tail.empty();
      for (size_t i = 0; i < readers.size(); ++i) {
        const bool more = last_is_read && i + 1 == values.size();
        if (readers[i].empty() || (readers[i].size() > 1 && !more)) return false;
      }
      const std::vector<ir::ValueId> back(values.rbegin(), values.rend());
      const bool reversed = node(first).inputs == back;
      if (node(first).op == ir::Op::kConcat && (reversed || node(first).inputs == values)) {
        made.value = values[1];
        made.reversed = reversed;
        if (!carried && readers.back().size() > 1) loop.finals[values[1]] = values.back();
        if (made.tail.size() == 1 && adds_axis(made.tail[0], first))
          made = {.value = node(made.tail[0]).inputs[0], .stacks = true, .reversed = reversed};
        loop.collected[first] = made;
        return true;
      }
      if (ir::drops(node(first))) return false;
      const std::string key = key_of(node(first));
      for (size_t i = 0; i < values.size(); ++i) {
        const int n = readers[i][0];
        if (n >= workload_.model_end() || node(n).inputs != std::vector{values[i]} ||
            key_of(node(n)) != key || loop.covered.contains(n))
          return false;
        loop.covered.insert(n);
        if (i == 1) made.tail.push_back(n);
        values[i] = workload_.output_of(n);
        readers[i] = this->readers(values[i]);
      }
    }
  }

  const ir::Workload& workload_;
  const std::vector<ir::Type>& types_;
  std::vector<std::vector<int>> readers_;  // by value
  std::map<std::string, int> numbers_;     // of keys
  std::vector<int> nodes_;                 // that read anything, slices in front of their readers
  std::vector<int> keys_;                  // of nodes_
  std::vector<ir::ValueId> same_;  // by value: the first one that is the same number or parameter, or itself
};

// What an iteration hands on or collects is held in one order of axes. What the first one starts from is turned.
bool holds_one_order(const ir::Workload& workload, const LayoutPlan& plan, const Loop& loop) {
  const auto held = [&](ir::ValueId id) { return plan.values[static_cast<size_t>(id)]; };
  const bool carried = std::all_of(loop.carries.begin(), loop.carries.end(), [&](const Loop::Carry& c) {
    return held(c.before) == held(c.next) && (c.last < 0 || held(c.last) == held(c.next));
  });
  const bool ends = std::all_of(loop.finals.begin(), loop.finals.end(),
                                [&](const auto& pair) { return held(pair.first) == held(pair.second); });
  return carried && ends &&
         std::all_of(loop.collected.begin(), loop.collected.end(), [&](const auto& joined) {
           const auto node = static_cast<size_t>(joined.first);
           const std::vector<ir::ValueId>& inputs = workload.nodes[node].inputs;
           if (joined.second.stacks &&
               (held(inputs[0]) != Order::kCanonical || held(joined.second.value) != Order::kCanonical))
             return false;
           for (size_t i = 0; i < inputs.size(); ++i)
             if (plan.reads[node][i] != held(inputs[i]) || held(inputs[i]) != held(inputs[0])) return false;
           return true;
         });
}

// Parts of a split stand where the first of them is read: one statement prints them all. A loop is found with each part in
// front of its own reader, where the statement would be printed behind parts that are read already, and hide what their
// variables hold by then.
void put_together(Loop& loop, const Slices& slices) {
  const std::set<int> own(loop.body.begin(), loop.body.end());
  std::vector<int> body;
  std::set<int> done;
  for (const int n : loop.body) {
    std::vector<int> parts = slices.together(n);
    if (!std::all_of(parts.begin(), parts.end(),
                     [&](int part) { return own.contains(part) && !loop.moving.contains(part); }))
      parts.clear();
    if (parts.empty()) parts = {n};
    for (const int part : parts)
      if (done.insert(part).second) body.push_back(part);
  }
  loop.body = std::move(body);
}

}  // namespace

std::set<ir::ValueId> Loop::reads(const ir::Workload& workload) const {
  std::set<ir::ValueId> all;
  for (const int n : covered) {
    const std::vector<ir::ValueId>& inputs = workload.nodes[static_cast<size_t>(n)].inputs;
    all.insert(inputs.begin(), inputs.end());
  }
  return all;
}

std::string Loop::Moving::place(const std::string& variable) const {
  const int64_t each = std::abs(stride);
  const std::string times = each == 1 ? variable : fmt::format("{} * {}", each, variable);
  if (stride < 0) return fmt::format("{} - {}", begin, times);
  return begin == 0 ? times : fmt::format("{} + {}", times, begin);
}

Loops::Loops(const ir::Workload& workload, const std::vector<ir::Type>& types, const std::vector<int>& live,
             const LayoutPlan* plan)
    : loops_(LoopFinder(workload, types, live).find()) {
  const Slices slices(workload, types, plan, &live);
  for (Loop& loop : loops_) put_together(loop, slices);
  if (plan == nullptr) return;
  std::erase_if(loops_, [&](const Loop& loop) { return !holds_one_order(workload, *plan, loop); });
}

std::vector<Loop> Loops::in(const Stretch& stretch, const Blocks& blocks) const {
  std::vector<Loop> all;
  std::set<int> outside;  // of blocks
  for (int n = stretch.first; n < stretch.end; ++n) {
    if (const Block* block = blocks.at(n, stretch))
      n = block->stretch.end - 1;
    else
      outside.insert(n);
  }
  for (const Loop& loop : loops_) {
    if (std::includes(outside.begin(), outside.end(), loop.covered.begin(), loop.covered.end()))
      all.push_back(loop);
  }
  return all;
}

Rolling::Rolling(const Loop& rolled, const ir::Workload& workload, Namer& names)
    : loop(rolled),
      index(names.name(fmt::format("index of loop {}", rolled.first), "t")),
      workload_(workload) {
  for (const int n : loop.body) places_.emplace(n, static_cast<int>(places_.size()));
  for (const auto& [_, made] : loop.collected)
    for (const int n : made.tail) places_.emplace(n, static_cast<int>(places_.size()));
  for (const auto& [node, _] : loop.collected)
    lists[node] = names.name(fmt::format("list of {}", node), "parts");
}

int Rolling::last_read(ir::ValueId id) const {
  int last = -1;
  for (const int reader : ir::consumers(workload_, id))
    if (const auto place = places_.find(reader); place != places_.end()) last = std::max(last, place->second);
  return last;
}

bool Rolling::dies(ir::ValueId id, int node) const {
  if (!computes(id) || carry.contains(id) || loop.finals.contains(id)) return false;
  for (const auto& [_, made] : loop.collected)
    if (made.value == id) return false;
  return last_read(id) <= places_.at(node);
}

bool Rolling::dead(ir::ValueId id, int node) const {
  return places_.contains(node) && dies(id, node) && last_read(id) < places_.at(node);
}

bool Rolling::only_starts(ir::ValueId id, int end) const {
  const std::vector<int> readers = ir::consumers(workload_, id);
  return last_read(id) < 0 && std::all_of(readers.begin(), readers.end(), [&](int n) {
           return loop.covered.contains(n) || n < loop.first || n >= end;
         });
}

std::string Rolling::takes_over(ir::ValueId id) const {
  const auto variable = carry.find(id);
  if (variable == carry.end()) return "";
  const auto here = std::find_if(loop.carries.begin(), loop.carries.end(),
                                 [&](const Loop::Carry& c) { return c.next == id; });
  return last_read(here->before) <= places_.at(id - workload_.output_of(0)) ? variable->second : "";
}

std::string Rolling::handed_on(const std::map<ir::ValueId, std::string>& variables) const {
  std::vector<std::string> to, from;
  for (const Loop::Carry& c : loop.carries) {
    if (variables.at(c.next) == carry.at(c.next)) continue;
    to.push_back(carry.at(c.next));
    from.push_back(variables.at(c.next));
  }
  return to.empty() ? "" : fmt::format("{} = {}", join(to, ", "), join(from, ", "));
}

std::string Rolling::moving_index(int node, const Axes& axes, bool select) const {
  const Loop::Moving& moving = loop.moving.at(node);
  const int64_t axis = axes.at(workload_.nodes[static_cast<size_t>(node)].integer("axis"));
  const std::string from = moving.place(index);
  if (select) return index_of(axis, axes.rank, from);
  const Loop::Moving end{moving.begin + moving.width, moving.width, moving.stride};
  return index_of(axis, axes.rank, fmt::format("{} : {}", from, end.place(index)));
}

std::vector<std::string> free_after(const Loop& loop, const ir::Workload& workload, int end,
                                    const std::map<ir::ValueId, std::string>& variables,
                                    const std::vector<std::string>& order,
                                    const std::function<bool(ir::ValueId)>& escapes) {
  std::set<std::string> read;
  for (const auto& [id, name] : variables) {
    const std::vector<int> readers = ir::consumers(workload, id);
    const bool later = std::any_of(readers.begin(), readers.end(), [&](int n) {
      return n > loop.first && !loop.covered.contains(n) && n < end;
    });
    if (later || escapes(id) || (workload.is_input(id) && name != "x")) read.insert(name);
  }
  std::vector<std::string> free;
  for (const std::string& name : order)
    if (!read.contains(name)) free.push_back(name);
  return free;
}

std::string unnumbered(const std::string& name) {
  const size_t end = name.find_last_not_of("0123456789");
  const bool numbered = end != std::string::npos && end > 0 && end + 1 < name.size() && name[end] == '_';
  return numbered ? name.substr(0, end) : name;
}

std::vector<int> all_nodes(const ir::Workload& workload) {
  std::vector<int> all(static_cast<size_t>(workload.model_end()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::string variable_for(const std::string& part, const std::string& key, std::vector<std::string>& order,
                         std::vector<std::string>& free, Namer& names) {
  const auto dead = [&](const std::string& name) {
    const auto found = std::find(free.begin(), free.end(), name);
    if (found == free.end()) return false;
    free.erase(found);
    return true;
  };
  const auto made = [&](const std::string& wish) {
    Namer attempt = names;
    if (attempt.name(key, wish) != wish) return false;
    order.push_back(names.name(key, wish));
    return true;
  };
  if (!part.empty() && (dead(part) || made(part))) return part;
  for (const std::string& name : order)
    if (!is_attention_part(name) && dead(name)) return name;
  // The names people use; a variable serves a chain of values, so the values' own names would mislead.
  for (const char* wish : {"x", "h", "u", "w", "z"})
    if (made(wish)) return wish;
  return order.emplace_back(names.name(key, "h"));
}

}  // namespace bakeoff::emit
