#pragma once

// What a JAX script's step carries on, and how the script makes it: init_params, or, where there is more than
// parameters and optimizer state, the named tuple TrainState and init_state.

#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/emit.h"
#include "emit/forward_printer.h"

namespace bakeoff::emit::jax {

struct State {
  // Running statistics and frozen parameters, quoted: their names, or what these end in where they are many and no other
  // name ends so. None where the graph predicts: they are parameters like others.
  std::vector<std::string> running = {};
  bool by_endings = false;
  std::vector<std::string> in_half = {};  // those that are stored in half precision, quoted
  bool dropout = false;
  bool caches = false;  // of a step of decoding: the forward pass takes and gives them

  bool stats() const { return !running.empty(); }
  // More than params and opt_state: one value `state`.
  bool whole() const { return stats() || dropout; }
  // Of TrainState: params, [stats], opt_state, [key].
  std::vector<std::string> fields() const;
  // What train_step takes and gives: params and opt_state, or state.
  std::vector<std::string> carry() const;
};

// What the script calls the names of parameters that the optimizer leaves alone.
std::string not_trained(const ir::Workload& workload);

// Whether parameters and the optimizer's state are split over the devices, too.
bool splits_state(const Request& request);
// Puts a tree of arrays on the devices: "jax.device_put(state, REPLICATED)". `keys`: there are keys of random numbers
// in it, which device_put does not put on devices of other processes.
std::string on_all_devices(const Request& request, const std::string& tree, bool keys = false);

State state_of(const Request& request, const Graph& graph);

// In the equalised track from weights, else by the initialisers that JAX's own layer libraries use.
void print_initialisers(CodeWriter& out, const Request& request, const Graph& graph, const State& state);

}  // namespace bakeoff::emit::jax
