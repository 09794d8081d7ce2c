// How a workload becomes steps. The gradient of a value exists where a trained parameter lies below it and
// the loss above it; all else of the way back is never printed. The schedule gives every step, and its way
// back, a place in one order: with that the life of everything in memory is an interval.
//
// Places are given by first fit, the largest first (place_all): two values may share memory if their
// intervals do not meet. What lives only within one phase of a share is a thread's own, and needs room for a
// few rows instead of the batch; intervals of memory that all threads see are counted in barriers, since two
// threads may be at any two steps between them.

#include "emit/native/make_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "emit/code_writer.h"
#include "emit/native/make_schedule.h"
#include "emit/native/ops.h"

namespace bakeoff::emit::native {
namespace {

constexpr int64_t kAligned = 16;  // elements

// A place and when it is needed.
struct Life {
  Place place;
  int64_t rows = 1;  // that it has room for
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
    fuse_activations();
    make_packs();
    graph_.schedule = make_schedule(graph_);
    place_values();
    place_all();
    return std::move(graph_);
  }

 private:
  const ir::Workload& workload() const { return graph_.workload; }
  Value& value(int id) { return graph_.values[static_cast<size_t>(id)]; }

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

  // The steps that read a value.
  std::vector<Step*> readers(int id) {
    std::vector<Step*> all;
    for (Step& step : graph_.steps) {
      if (std::ranges::count(step.inputs, id) > 0) all.push_back(&step);
    }
    return all;
  }
  bool shown(int id) const {
    if (!graph_.trains()) return std::ranges::count(graph_.outputs, id) > 0;
    return id == workload().prediction() || id == workload().loss();
  }
  bool is(const Step& step, ir::Op op) const { return step.node >= 0 && graph_.node(step).op == op; }
  bool multiplies(const Step& step) const { return row(step).packs != nullptr; }

  // A ReLU that alone reads a product is done where the product's sums are stored, and its way back, where one product
  // alone reads the result, where the sums of that one's gradient are stored.
  void fuse_activations() {
    for (size_t s = 0; s < graph_.steps.size(); ++s) {
      Step& product = graph_.steps[s];
      if (!multiplies(product) || shown(product.output)) continue;
      const std::vector<Step*> by = readers(product.output);
      if (by.size() != 1 || !is(*by[0], ir::Op::kRelu) || by[0]->backward != product.backward ||
          value(by[0]->output).sizes != value(product.output).sizes)
        continue;
      product.output = by[0]->output;
      product.relu = true;
      const std::vector<Step*> next = readers(product.output);
      if (next.size() == 1 && next[0]->backward && multiplies(*next[0]) && product.backward) {
        product.masked = true;
        next[0]->masks = true;
      }
      graph_.steps.erase(graph_.steps.begin() + (by[0] - graph_.steps.data()));
    }
  }

  void make_packs() {
    for (Step& step : graph_.steps) {
      if (row(step).packs == nullptr) continue;
      const Call call{graph_, step, ignored_};
      auto [forward, backward] = row(step).packs(call);
      step.packed = kept_pack(std::move(forward), call.w("weight") + "_packed");
      if (step.backward && call.wants(0))
        step.turned = kept_pack(std::move(backward), call.w("weight") + "_turned");
    }
  }
  // The name of a pack; one for all steps that read the same.
  std::string kept_pack(Pack pack, const std::string& wish) {
    pack.name = names_.name("pack:" + pack.statement, wish);
    pack.statement.replace(pack.statement.find("$$"), 2, pack.name);
    if (std::ranges::find(graph_.packs, pack.name, &Pack::name) == graph_.packs.end())
      graph_.packs.push_back(pack);
    return pack.name;
  }

  // When something is needed: places in the order of all turns.
  struct Interval {
    int64_t begin = -1, end = -1;
    void add(int64_t at) {
      if (begin < 0 || at < begin) begin = at;
      end = std::max(end, at);
    }
  };

  void number_turns() {
    at_.assign(graph_.steps.size(), {-1, -1});
    int64_t epoch = 0;
    for (size_t p = 0; p < graph_.schedule.phases.size(); ++p) {
      const Phase& phase = graph_.schedule.phases[p];
      epoch += phase.waits;
      for (const Turn& turn : phase.turns) {
        (turn.back ? at_[turn.step].second : at_[turn.step].first) = static_cast<int64_t>(phase_at_.size());
        phase_at_.push_back(p);
        epoch_at_.push_back(epoch);
      }
    }
  }

  // `lasts`: to the end of the step, where it is shown.
  void add(const std::string& name, bool whole, const Count& count, Scope fixed, Interval needed,
           bool lasts = false) {
    if (count.count == 0) return;
    Life life{{.name = name, .whole = whole, .count = count, .scope = fixed}};
    const auto first = static_cast<size_t>(needed.begin), last = static_cast<size_t>(needed.end);
    if (fixed == Scope::kBatch && !lasts && phase_at_[first] == phase_at_[last] && count.rows &&
        by_share(graph_.schedule.phases[phase_at_[first]].extent)) {
      life.place.scope = Scope::kThread;
      life.rows = graph_.schedule.phases[phase_at_[first]].extent == Extent::kFew
                      ? graph_.schedule.few
                      : graph_.schedule.share_rows(graph_.request.training.batch);
      life.begin = needed.begin, life.end = needed.end;
    } else if (fixed != Scope::kShare) {
      life.place.scope = count.rows ? Scope::kBatch : Scope::kModel;
      life.rows = graph_.request.training.batch;
      life.begin = lasts ? 0 : epoch_at_[first], life.end = lasts ? epoch_at_.back() : epoch_at_[last];
    }
    lives_.push_back(life);
  }

  // Whether its way back runs in every share.
  bool summed(size_t step) const { return graph_.schedule.extents[step] == Extent::kModel; }

  void place_values() {
    number_turns();
    std::vector<Interval> values(graph_.values.size()), gradients(values.size());
    for (size_t s = 0; s < graph_.steps.size(); ++s) {
      Step& step = graph_.steps[s];
      const auto [now, back] = at_[s];
      const auto out = static_cast<size_t>(step.output);
      const std::string name = value(step.output).name;
      values[out].add(now);
      if (step.backward && (row(step).reads_output || step.relu)) values[out].add(back);
      if (step.backward) gradients[out].add(back);
      for (const int id : step.inputs) {
        const auto in = static_cast<size_t>(id);
        values[in].add(now);
        if (step.backward && row(step).reads_inputs) values[in].add(back);
        if (step.backward) gradients[in].add(back);
      }
      const Call call{graph_, step, ignored_};
      if (row(step).kept != nullptr) {
        step.kept = names_.name("kept " + name, name + "_kept");
        Interval needed{now, now};
        if (step.backward) needed.add(back);
        add(step.kept, false, row(step).kept(call), Scope::kBatch, needed);
      }
      if (row(step).spare != nullptr && step.backward) {
        step.spare = names_.name("spare " + name, name + "_spare");
        add(step.spare, false, row(step).spare(call), summed(s) ? Scope::kShare : Scope::kBatch,
            {back, back});
      }
    }
    for (size_t s = 0; s < graph_.steps.size(); ++s) {
      const Step& step = graph_.steps[s];
      const auto id = static_cast<size_t>(step.output);
      Value& v = graph_.values[id];
      v.summed = summed(s);
      const bool loss = graph_.trains() && step.output == workload().loss();
      add(v.name, v.whole(), count_of(v.sizes),
          loss && graph_.schedule.adds_up ? Scope::kShare : Scope::kBatch, values[id], shown(step.output));
      if (v.gradient.empty()) continue;
      add(v.gradient, false, count_of(v.sizes), summed(s) ? Scope::kShare : Scope::kBatch, gradients[id],
          loss);
    }
  }

  int64_t size(const Life& life) const {
    const int64_t count = life.place.count.count * (life.place.count.rows ? life.rows : 1);
    return (count + kAligned - 1) / kAligned * kAligned;
  }
  // Places of one memory may overlap; those without rows lie among those of the batch.
  static Scope memory(const Life& life) {
    return life.place.scope == Scope::kModel ? Scope::kBatch : life.place.scope;
  }
  static bool meet(const Life& a, const Life& b) {
    if (a.place.whole != b.place.whole || memory(a) != memory(b)) return false;
    return memory(a) == Scope::kShare || (a.begin <= b.end && b.begin <= a.end);
  }

  // First fit, the largest first.
  void place_all() {
    std::stable_sort(lives_.begin(), lives_.end(),
                     [this](const Life& a, const Life& b) { return size(a) > size(b); });
    for (size_t i = 0; i < lives_.size(); ++i) {
      Life& life = lives_[i];
      std::vector<const Life*> others;
      for (size_t j = 0; j < i; ++j) {
        if (meet(lives_[j], life)) others.push_back(&lives_[j]);
      }
      std::ranges::sort(others, {}, [](const Life* other) { return other->place.at; });
      for (const Life* other : others) {
        if (other->place.at >= life.place.at + size(life)) break;
        life.place.at = std::max(life.place.at, other->place.at + size(*other));
      }
      int64_t& end = graph_.sizes[{memory(life), life.place.whole}];
      end = std::max(end, life.place.at + size(life));
    }
    for (Life& life : lives_) graph_.places.push_back(std::move(life.place));
    std::ranges::stable_sort(graph_.places, {}, &Place::at);
  }

  Namer& names_;
  Graph graph_;
  std::vector<bool> needed_;  // by value of the workload
  std::map<std::pair<int, Order>, int> turned_;
  std::vector<Life> lives_;
  std::vector<std::pair<int64_t, int64_t>>
      at_;                         // by step: where it and its way back stand in the order of turns
  std::vector<size_t> phase_at_;   // by place in that order
  std::vector<int64_t> epoch_at_;  // the same: how many barriers stand before
  CodeWriter ignored_{2};
};

}  // namespace

Graph make_graph(const Request& request, const std::vector<ir::Type>& types, Namer& names) {
  return Maker(request, types, names).make();
}

}  // namespace bakeoff::emit::native
