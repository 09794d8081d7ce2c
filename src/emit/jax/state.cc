#include "emit/jax/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "emit/devices.h"
#include "emit/generation.h"
#include "emit/precision.h"
#include "emit/python_script.h"

namespace bakeoff::emit::jax {
namespace {

using ir::Role;

class Printer {
 public:
  Printer(CodeWriter& out, const Request& request, const Graph& graph, const State& state)
      : out_(out), request_(request), graph_(graph), state_(state) {}

  void print() {
    if (!equalised(request_)) {
      own_init();
    } else if (!state_.whole()) {
      const bool rounds = !state_.in_half.empty();
      if (on_devices(request_))
        return out_.print("def init_params(weights):\n    return $placed$\n\n\n",
                          {{"placed", on_all_devices(request_, "weights")}});
      out_.print(
          "def init_params(weights):\n    $params$ {name: jnp.array(value) for name, value in "
          "weights.items()}\n$rounded$\n\n",
          {{"params", rounds ? "params =" : "return"},
           {"rounded",
            rounds ? "    return params | {name: half(params[name]) for name in IN_HALF_PRECISION}\n" : ""}});
    }
    if (state_.whole()) init_state();
  }

 private:
  void own_init() {
    int drawn = 0;
    bool draws_weights = false;
    for (const ir::Parameter& p : request_.workload.parameters) {
      drawn += p.role == Role::kWeight || p.role == Role::kTable ? 1 : 0;
      draws_weights = draws_weights || p.role == Role::kWeight;
    }
    out_.line("def init_params(key):");
    const auto body = out_.indent();
    if (draws_weights) out_.line("init = jax.nn.initializers.lecun_normal()");
    if (drawn > 0) out_.line(fmt::format("keys = iter(jax.random.split(key, {}))", drawn));
    const bool placed = on_devices(request_) && !state_.whole();
    out_.line(placed ? "params = {" : "return {");
    {
      const auto inner = out_.indent();
      for (size_t id = 0; id < request_.workload.parameters.size(); ++id) init_line(id);
    }
    out_.line("}");
    if (placed) out_.line("return " + on_all_devices(request_, "params"));
    out_.blank(2);
  }

  void init_line(size_t id) {
    const ir::Parameter& p = request_.workload.parameters[id];
    if (!ir::trainable(p) && !graph_.predicts) return;
    const std::string shape = python_tuple(stored_shape(graph_.plan.params[id], p.shape));
    const std::string key = fmt::format("\"{}\": ", p.name);
    switch (p.role) {
      case Role::kWeight:
        return out_.call(key + "init", {"next(keys)", shape}, ",");
      case Role::kTable:
        return out_.call(key + "0.02 * jax.random.normal", {"next(keys)", shape}, ",");
      case Role::kScale:
      case Role::kRunningVar:
        return out_.call(key + "jnp.ones", {shape}, ",");
      default:
        return out_.call(key + "jnp.zeros", {shape}, ",");
    }
  }

  void init_state() {
    out_.line("class TrainState(NamedTuple):");
    {
      const auto body = out_.indent();
      for (const std::string& field : state_.fields()) out_.line(field + ": Any");
    }
    out_.blank(2);
    out_.line(equalised(request_) ? "def init_state(weights):" : "def init_state(key):");
    {
      const auto body = out_.indent();
      if (equalised(request_)) {
        out_.line("params = {name: jnp.array(value) for name, value in weights.items()}");
        if (state_.stats()) loaded_stats();
        if (state_.dropout) out_.line("key = jax.random.key(SEED)");
      } else {
        if (state_.dropout) out_.line("params_key, key = jax.random.split(key)");
        out_.line(state_.dropout ? "params = init_params(params_key)" : "params = init_params(key)");
        if (state_.stats()) initial_stats();
      }
      std::vector<std::string> values = state_.fields();
      for (std::string& value : values) {
        if (value == "opt_state") value = "OPTIMIZER.init(params)";
      }
      out_.call(on_devices(request_) ? "state = TrainState" : "return TrainState", values);
      if (on_devices(request_)) out_.line("return " + on_all_devices(request_, "state", state_.dropout));
    }
    out_.blank(2);
  }

  void loaded_stats() {
    std::string names = not_trained(request_.workload);
    if (state_.by_endings) {
      out_.line(fmt::format("names = [name for name in params if name.endswith({})]", names));
      names = "names";
    }
    out_.line("stats = {name: params.pop(name) for name in " + names + "}");
    if (!state_.in_half.empty())
      out_.line("stats |= {name: half(stats[name]) for name in IN_HALF_PRECISION}");
  }

  void initial_stats() {
    out_.line("stats = {");
    {
      const auto inner = out_.indent();
      for (const ir::Parameter& p : request_.workload.parameters) {
        if (ir::trainable(p)) continue;
        const char* fill = p.role == Role::kRunningVar ? "ones" : "zeros";
        out_.call(fmt::format("\"{}\": jnp.{}", p.name, fill), {std::to_string(p.shape[0])}, ",");
      }
    }
    out_.line("}");
  }

  CodeWriter& out_;
  const Request& request_;
  const Graph& graph_;
  const State& state_;
};

}  // namespace

std::vector<std::string> State::fields() const {
  std::vector<std::string> all = {"params"};
  if (stats()) all.push_back("stats");
  all.push_back("opt_state");
  if (dropout) all.push_back("key");
  return all;
}

std::vector<std::string> State::carry() const {
  return whole() ? std::vector<std::string>{"state"} : std::vector<std::string>{"params", "opt_state"};
}

std::string not_trained(const ir::Workload& workload) {
  const bool frozen = std::any_of(workload.parameters.begin(), workload.parameters.end(),
                                  [](const ir::Parameter& p) { return p.frozen; });
  return frozen ? "NOT_TRAINED" : "RUNNING_STATISTICS";
}

bool splits_state(const Request& request) {
  return on_devices(request) && setting_or(request.settings, "parallel", "data") == "fsdp";
}

std::string on_all_devices(const Request& request, const std::string& tree, bool keys) {
  const std::string where =
      splits_state(request) ? fmt::format("split_over_devices({})", tree) : "REPLICATED";
  if (keys && over_processes(request))
    return fmt::format("jax.jit(lambda {0}: {0}, out_shardings={1})({0})", tree, where);
  return fmt::format("jax.device_put({}, {})", tree, where);
}

State state_of(const Request& request, const Graph& graph) {
  constexpr size_t kFew = 4;
  const ir::Workload& workload = request.workload;
  State state{.dropout = !dropout_rates(graph).empty()};
  state.caches = request.training.generates() && keeps_words(request.settings);
  const std::vector<bool> in_half = stored_in_half(request);
  for (size_t id = 0; id < in_half.size(); ++id)
    if (in_half[id]) state.in_half.push_back("\"" + workload.parameters[id].name + "\"");
  if (graph.predicts) return state;
  std::vector<std::string> endings;
  std::set<std::string> trained;
  bool parts = true;
  for (const ir::Parameter& p : workload.parameters) {
    const std::string leaf = leaf_of(p.name), ending = "\"." + leaf + "\"";
    if (ir::trainable(p)) {
      trained.insert(ending);
      continue;
    }
    state.running.push_back("\"" + p.name + "\"");
    parts = parts && leaf != p.name;
    if (std::find(endings.begin(), endings.end(), ending) == endings.end()) endings.push_back(ending);
  }
  const bool apart = std::none_of(endings.begin(), endings.end(),
                                  [&](const std::string& ending) { return trained.contains(ending); });
  state.by_endings = parts && apart && state.running.size() > kFew && endings.size() <= kFew;
  if (state.by_endings) state.running = std::move(endings);
  return state;
}

void print_initialisers(CodeWriter& out, const Request& request, const Graph& graph, const State& state) {
  Printer(out, request, graph, state).print();
}

}  // namespace bakeoff::emit::jax
