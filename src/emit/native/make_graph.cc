// How a workload becomes steps. The gradient of a value exists where a trained parameter lies below it and the loss
// above it; all else of the way back is never printed. Step s runs at time s, its way back at time 2 S - s, of S steps:
// with that the life of everything in the arena is an interval.

#include "emit/native/make_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "emit/code_writer.h"
#include "emit/native/ops.h"

namespace bakeoff::emit::native {
namespace {

constexpr int64_t kAligned = 16;  // elements

// A place and when it is needed.
struct Life {
  Place place;
  int64_t begin = 0, end = 0;
};

class Maker {
 public:
  Maker(const Request& request, const std::vector<ir::Type>& types, Namer& names)
      : names_(names), graph_{request, request.workload, types, plan_layout(request.workload, types)} {}

  Graph make() {
    make_values();
    find_needed();
    for (size_t n = 0; n < workload().nodes.size(); ++n) {
      if (needed_[static_cast<size_t>(workload().output_of(static_cast<int>(n)))])
        add_node(static_cast<int>(n));
    }
    if (!graph_.trains()) {
      for (const ir::ValueId id : workload().predictions())
        graph_.outputs.push_back(value(id).order == Order::kCanonical ? id : turned(id, Order::kCanonical));
    }
    make_parameters();
    if (graph_.trains()) make_gradients();
    place_values();
    place_all();
    return std::move(graph_);
  }

 private:
  const ir::Workload& workload() const { return graph_.workload; }
  Value& value(int id) { return graph_.values[static_cast<size_t>(id)]; }
  int64_t now(size_t step) const { return static_cast<int64_t>(step); }
  int64_t back(size_t step) const { return static_cast<int64_t>(2 * graph_.steps.size() - step); }

  void make_values() {
    for (ir::ValueId id = 0; id < workload().value_count(); ++id) {
      const ir::Type& type = graph_.types[static_cast<size_t>(id)];
      const std::string& name = workload().value_name(id);
      const Order order = graph_.layout.values[static_cast<size_t>(id)];
      graph_.values.push_back({.name = names_.name("value:" + name, identifier(name)),
                               .dtype = type.dtype,
                               .sizes = physical_shape(order, type.shape),
                               .order = order});
    }
  }

  // A prediction needs what it depends on, a training step everything.
  void find_needed() {
    needed_.assign(graph_.values.size(), graph_.trains());
    if (graph_.trains()) return;
    for (const ir::ValueId id : workload().predictions()) needed_[static_cast<size_t>(id)] = true;
    for (size_t n = workload().nodes.size(); n-- > 0;) {
      if (!needed_[static_cast<size_t>(workload().output_of(static_cast<int>(n)))]) continue;
      for (const ir::ValueId id : workload().nodes[n].inputs) needed_[static_cast<size_t>(id)] = true;
    }
  }

  // The value in the order in which a node reads it.
  int turned(int id, Order order) {
    const auto known = turned_.find({id, order});
    if (known != turned_.end()) return known->second;
    Value copy = value(id);
    const std::string name = copy.name + (order == Order::kCanonical ? "_first" : "_last");
    copy.name = names_.name("turned:" + name, name);
    copy.sizes = physical_shape(order, graph_.types[static_cast<size_t>(id)].shape);
    copy.order = order;
    const int added = static_cast<int>(graph_.values.size());
    graph_.values.push_back(copy);
    add_step({.inputs = {id}, .output = added});
    return turned_[{id, order}] = added;
  }

  void add_node(int n) {
    Step step{.node = n, .inputs = {}, .output = workload().output_of(n)};
    const ir::Node& node = workload().nodes[static_cast<size_t>(n)];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool turns = graph_.layout.converts(workload(), n, i);
      const Order order = graph_.layout.reads[static_cast<size_t>(n)][i];
      step.inputs.push_back(turns ? turned(node.inputs[i], order) : node.inputs[i]);
    }
    add_step(std::move(step));
  }

  void add_step(Step step) {
    const std::string& name = value(step.output).name;
    step.forward = names_.name("forward " + name, name + "_forward");
    step.way_back = names_.name("backward " + name, name + "_backward");
    graph_.steps.push_back(std::move(step));
  }

  void make_parameters() {
    for (const ir::Parameter& p : workload().parameters) {
      const std::string name = names_.name("parameter:" + p.name, identifier(p.name));
      const bool trained = graph_.trains() && ir::trainable(p);
      graph_.parameters.push_back(name);
      graph_.gradients.push_back(trained ? names_.name("d parameter:" + p.name, "d_" + name) : "");
    }
  }

  const OpRow& row(const Step& step) const {
    return step.node < 0 ? turn_row() : *find_row(graph_.node(step).op);
  }

  void make_gradients() {
    std::vector<bool> trained(graph_.values.size(), false), reached(graph_.values.size(), false);
    for (const Step& step : graph_.steps) {
      bool any = false;
      for (const int id : step.inputs) any = any || trained[static_cast<size_t>(id)];
      if (step.node >= 0) {
        for (const ir::Slot& slot : graph_.node(step).params)
          any = any || !graph_.gradients[static_cast<size_t>(slot.param)].empty();
      }
      trained[static_cast<size_t>(step.output)] =
          any && row(step).backward != nullptr && !value(step.output).whole();
    }
    reached[static_cast<size_t>(workload().loss())] = true;
    for (size_t s = graph_.steps.size(); s-- > 0;) {
      Step& step = graph_.steps[s];
      const auto out = static_cast<size_t>(step.output);
      step.backward = reached[out] && trained[out];
      if (!step.backward) continue;
      Value& result = value(step.output);
      if (result.gradient.empty()) result.gradient = names_.name("d " + result.name, "d_" + result.name);
      for (const int id : step.inputs) {
        if (!trained[static_cast<size_t>(id)]) continue;
        reached[static_cast<size_t>(id)] = true;
        Value& read = value(id);
        if (read.gradient.empty()) read.gradient = names_.name("d " + read.name, "d_" + read.name);
      }
    }
  }

  void add(const std::string& name, bool whole, const Count& count, int64_t begin, int64_t end) {
    if (count.count == 0) return;
    lives_.push_back({{.name = name, .whole = whole, .count = count}, begin, end});
  }

  void place_values() {
    const auto steps = static_cast<int64_t>(graph_.steps.size());
    std::vector<int64_t> made(graph_.values.size(), -1), last(made.size(), -1), first(made.size(), -1);
    for (size_t s = 0; s < graph_.steps.size(); ++s) {
      Step& step = graph_.steps[s];
      const auto out = static_cast<size_t>(step.output);
      const std::string name = value(step.output).name;
      made[out] = now(s);
      last[out] = std::max(last[out], step.backward && row(step).reads_output ? back(s) : now(s));
      for (const int id : step.inputs) {
        const auto in = static_cast<size_t>(id);
        last[in] = std::max(last[in], step.backward && row(step).reads_inputs ? back(s) : now(s));
        if (step.backward) first[in] = back(s);  // the last reader begins
      }
      const Call call{graph_, step, ignored_};
      if (row(step).kept != nullptr) {
        step.kept = names_.name("kept " + name, name + "_kept");
        add(step.kept, false, row(step).kept(call), now(s), step.backward ? back(s) : now(s));
      }
      if (row(step).spare != nullptr && step.backward) {
        step.spare = names_.name("spare " + name, name + "_spare");
        add(step.spare, false, row(step).spare(call), back(s), back(s));
      }
    }
    std::vector<int> kept = graph_.outputs;
    if (graph_.trains()) kept = {workload().prediction(), workload().loss()};
    for (const int id : kept) last[static_cast<size_t>(id)] = 2 * steps + 1;
    for (size_t id = 0; id < made.size(); ++id) {
      const Value& v = graph_.values[id];
      if (made[id] < 0) continue;
      add(v.name, v.whole(), count_of(v.sizes), made[id], last[id]);
      if (v.gradient.empty()) continue;
      const int64_t begin = static_cast<ir::ValueId>(id) == workload().loss() ? steps : first[id];
      add(v.gradient, false, count_of(v.sizes), begin, 2 * steps - made[id]);
    }
  }

  int64_t size(const Place& place) const {
    const int64_t count = place.count.count * (place.count.rows ? graph_.request.training.batch : 1);
    return (count + kAligned - 1) / kAligned * kAligned;
  }

  // First fit, the largest first.
  void place_all() {
    std::stable_sort(lives_.begin(), lives_.end(),
                     [this](const Life& a, const Life& b) { return size(a.place) > size(b.place); });
    for (size_t i = 0; i < lives_.size(); ++i) {
      Life& life = lives_[i];
      std::vector<const Place*> others;
      for (size_t j = 0; j < i; ++j) {
        const Life& other = lives_[j];
        if (other.place.whole == life.place.whole && other.begin <= life.end && life.begin <= other.end)
          others.push_back(&other.place);
      }
      std::ranges::sort(others, {}, &Place::at);
      for (const Place* other : others) {
        if (other->at >= life.place.at + size(life.place)) break;
        life.place.at = std::max(life.place.at, other->at + size(*other));
      }
      int64_t& end = life.place.whole ? graph_.whole_arena : graph_.arena;
      end = std::max(end, life.place.at + size(life.place));
    }
    for (Life& life : lives_) graph_.places.push_back(std::move(life.place));
    std::ranges::stable_sort(graph_.places, {}, &Place::at);
  }

  Namer& names_;
  Graph graph_;
  std::vector<bool> needed_;  // by value of the workload
  std::map<std::pair<int, Order>, int> turned_;
  std::vector<Life> lives_;
  CodeWriter ignored_{2};
};

}  // namespace

Graph make_graph(const Request& request, const std::vector<ir::Type>& types, Namer& names) {
  return Maker(request, types, names).make();
}

}  // namespace bakeoff::emit::native
