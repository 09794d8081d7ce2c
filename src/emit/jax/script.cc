// A model in JAX is a function of a tree of parameters, and all state is given and returned: running
// statistics and frozen weights (`stats`), caches of keys and values (`cache`), keys of dropout. Which of
// these a network has changes nearly every signature, so all signatures are made in one place (signature(),
// state_.carry()).
//
// A block that repeats becomes a function that gets the parameters below its path: `below(params,
// "encoder.0")`. A block that writes into `stats` or `cache` needs whole names and gets its path instead
// (writes()). Blocks that follow each other with numbered paths become a loop; keys of dropout are then
// counted on by the block's number, or every round would drop the same.
//
// Imports and helper functions are put in last, from the names that the finished text uses: no part has to
// know what another one needs.

#include "emit/jax/script.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/devices.h"
#include "emit/generation.h"
#include "emit/jax/input.h"
#include "emit/jax/ops.h"
#include "emit/jax/optimizer.h"
#include "emit/jax/state.h"
#include "emit/precision.h"
#include "emit/python_script.h"
#include "emit/updates.h"

namespace bakeoff::emit::jax {
namespace {

// Whether the function of a family reads what the forward pass keeps.
bool reads(const Family& family, const std::string& kept) {
  const std::string text = family.text.body.text();
  for (const char* end : {"[", ",", ")"})
    if (text.find(kept + end) != std::string::npos) return true;
  return false;
}

// A block that writes running statistics or caches needs whole names: it gets all parameters, and its path. Any
// other block gets the parameters below its path.
bool writes(const Graph& graph, const Stretch& stretch) {
  const ir::Workload& workload = graph.workload;
  for (int n = stretch.first; n < stretch.end; ++n)
    for (const ir::Slot& slot : workload.nodes[static_cast<size_t>(n)].params) {
      const ir::Role role = workload.parameters[static_cast<size_t>(slot.param)].role;
      const bool running = role == ir::Role::kRunningMean || role == ir::Role::kRunningVar;
      if (role == ir::Role::kCache || (running && !graph.predicts)) return true;
    }
  return false;
}

// encoder(below(params, "encoder.0"), x, keys[2:], stride=2)
class Calls : public BlockCalls {
 public:
  Calls(const Graph& graph, const Blocks& blocks, const Stretch& within, std::string kept)
      : graph_(graph), blocks_(blocks), within_(within), kept_(std::move(kept)) {}

  size_t loop(const std::vector<const Block*>& chain) const override {
    return first_key(*chain[0]) < per_block(*chain[0]) * block_number(*chain[0])
               ? 1
               : numbered_alike(blocks_, chain);
  }

  void print(CodeWriter& out, const std::string& variable, const std::vector<std::string>& inputs,
             const std::vector<const Block*>& chain) const override {
    const Block& block = *chain[0];
    const bool loop = chain.size() > 1;
    const bool whole = writes(graph_, block.stretch);
    const std::string path = block_path(block.stretch.path, within_.path, '.', loop, writes(graph_, within_));
    const auto tree = [&](const std::string& name) {
      return whole ? name : fmt::format("below({}, {})", name, path);
    };
    std::vector<std::string> arguments = {tree("params")};
    if (!kept_.empty() && reads(blocks_.family(block), kept_)) arguments.push_back(tree(kept_));
    if (whole) arguments.push_back(path);
    arguments.insert(arguments.end(), inputs.begin(), inputs.end());
    if (per_block(block) > 0) arguments.push_back(keys(block, loop));
    const std::vector<std::string> options = blocks_.arguments(block, true);
    arguments.insert(arguments.end(), options.begin(), options.end());
    const std::string head = variable + " = " + blocks_.family(block).name;
    if (!loop) return out.call(head, arguments);
    const int first = block_number(block), end = first + static_cast<int>(chain.size());
    out.line(first == 0 ? fmt::format("for i in range({}):", end)
                        : fmt::format("for i in range({}, {}):", first, end));
    const auto body = out.indent();
    out.call(head, arguments);
  }

 private:
  int per_block(const Block& block) const { return dropouts(graph_, block.stretch.first, block.stretch.end); }
  int first_key(const Block& block) const { return dropouts(graph_, within_.first, block.stretch.first); }

  std::string keys(const Block& block, bool loop) const {
    const int first = first_key(block), each = per_block(block);
    if (!loop) return first == 0 ? "keys" : fmt::format("keys[{}:]", first);
    const int offset = first - each * block_number(block);
    const std::string step = each == 1 ? "i" : fmt::format("{} * i", each);
    if (offset > 0) return fmt::format("keys[{} + {} :]", offset, step);
    return each == 1 ? "keys[i:]" : fmt::format("keys[{} :]", step);
  }

  const Graph& graph_;
  const Blocks& blocks_;
  Stretch within_;
  std::string kept_;
};

class Script {
 public:
  Script(const Request& request, const Graph& graph, const Namer& names, bool has_layout)
      : request_(request),
        graph_(graph),
        names_(names),
        has_layout_(has_layout),
        state_(state_of(request, graph)) {}

  std::string text() {
    imports();
    constants();
    load_data();
    print_batches(out_, request_);
    out_.blank(2);
    const size_t head = out_.text().size();
    forward();
    if (predicts()) {
      print_initialisers(out_, request_, graph_, state_);
      generates() ? generate() : predict_step();
      print_predict_main();
    } else {
      loss_fn();
      print_optimizer(out_, request_.training);
      out_.print("\n\nOPTIMIZER = make_optimizer()\n\n\n");
      print_initialisers(out_, request_, graph_, state_);
      train_step();
      if (scans()) train_steps();
      print_main();
    }
    std::string text = out_.text();
    std::set<std::string> variants = helper_variants(precision_, predicts());
    if (even_convolutions(graph_)) variants.insert("even");
    text.insert(head, helpers().used_by(text.substr(head), variants));
    drop_unused(text, "from typing import Any, NamedTuple\n", "NamedTuple)");
    drop_unused(text, "import jax.numpy as jnp\n", "jnp.");
    drop_unused(text, "from jax import lax\n", "lax.");
    return text;
  }

 private:
  bool predicts() const { return graph_.predicts; }
  bool stats() const { return state_.stats(); }
  bool stateful() const { return state_.whole(); }
  bool generates() const { return request_.training.generates(); }
  // What the forward pass takes and gives besides: "stats", "cache" or nothing.
  std::string kept() const { return stats() ? "stats" : state_.caches ? "cache" : ""; }

  void imports() {
    const bool exact = equalised(request_);
    const std::string& name = request_.workload.name;
    out_.line(predicts() ? fmt::format("\"\"\"{} with {} in JAX.\"\"\"",
                                       generates() ? "Generates" : "Predicts", name)
                         : fmt::format("\"\"\"Trains {} with JAX and optax.\"\"\"", name));
    out_.blank();
    out_.line("import argparse");
    if (exact || predicts()) out_.line("import itertools");
    if (exact && has_layout_) out_.line("import json");
    if (over_processes(request_)) out_.print("import os\nimport sys\n");
    if (donate() || generates()) out_.line("from functools import partial");
    out_.line("from pathlib import Path");
    out_.print(
        "from typing import Any, NamedTuple\n\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\n");
    if (!predicts()) out_.line("import optax");
    out_.line("from jax import lax");
    if (on_devices(request_)) out_.line("from jax.sharding import AxisType, NamedSharding, PartitionSpec");
    out_.line(load_file_import(predicts()));
    out_.blank();
  }

  bool donate() const { return !predicts() && request_.settings.at("donate") == "true"; }
  const std::string& steps_per_call() const { return request_.settings.at("steps_per_call"); }
  bool scans() const { return jax::scans(request_); }

  void constants() {
    std::vector<std::string> more;
    if (!predicts()) more = update_constants(request_.training.optimizer);
    if (scans()) more.push_back("STEPS_PER_CALL = " + steps_per_call());
    if (on_devices(request_)) more.push_back(devices_constant(request_));
    print_constants(out_, request_, graph_, more);
    if (!predicts()) print_no_decay(out_, request_.training.optimizer, canonical_names(request_.workload));
    if (state_.dropout || !equalised(request_)) out_.line(fmt::format("SEED = {}", request_.training.seed));
    if (stats() && equalised(request_))
      print_list(out_, not_trained(request_.workload) + " = ", '(', state_.running);
    if (!state_.in_half.empty()) print_list(out_, "IN_HALF_PRECISION = ", '(', state_.in_half);
    if (precision_.tf32) {
      out_.print("\njax.config.update(\"jax_default_matmul_precision\", \"tensorfloat32\")\n");
    } else if (equalised(request_)) {
      out_.print(
          "\n# No TF32 or bfloat16 passes inside float32 matrix products and convolutions.\n"
          "jax.config.update(\"jax_default_matmul_precision\", \"highest\")\n");
    }
    if (on_devices(request_)) mesh();
    out_.blank(2);
  }

  void processes() {
    out_.print(R"(
# One process for each device; JAX_PROCESS_ID says which of them this one is.
jax.config.update("jax_cpu_collectives_implementation", "gloo")
if not jax.distributed.is_initialized():
    if "JAX_PROCESS_ID" not in os.environ:
        every = f"$loop$"
        sys.exit(f"start one process for each device: {every}")
    process = int(os.environ["JAX_PROCESS_ID"])
    address = os.environ.get("JAX_COORDINATOR_ADDRESS", "localhost:12355")
    jax.distributed.initialize(address, DEVICES, process, local_device_ids=[process])
)",
               {{"loop", process_loop(request_, "JAX_PROCESS_ID=$i")}});
  }

  void mesh() {
    if (over_processes(request_))
      processes();
    else
      out_.print(
          "\n# Without an accelerator, DEVICES devices are made of the processors.\n"
          "jax.config.update(\"jax_num_cpu_devices\", DEVICES)\n");
    out_.print(
        "MESH = jax.make_mesh((DEVICES,), (\"data\",), axis_types=(AxisType.Auto,))\n"
        "BY_ROWS = NamedSharding(MESH, PartitionSpec($rows$))\n",
        {{"rows", scans() ? "None, \"data\"" : "\"data\""}});
    if (!splits_state(request_)) return out_.line("REPLICATED = NamedSharding(MESH, PartitionSpec())");
    out_.print(R"(

def split_over_devices(tree):
    """Where its arrays lie: split along the first axis that DEVICES divides, or whole."""

    def sharding(array):
        axes = [i for i, size in enumerate(array.shape) if size % DEVICES == 0]
        spec = (*[None] * axes[0], "data") if axes else ()
        return NamedSharding(MESH, PartitionSpec(*spec))

    return jax.tree.map(sharding, tree)
)");
  }

  void load_data() {
    print_load_data(out_, request_, graph_);
    out_.blank(2);
    if (!equalised(request_)) return;
    print_load_weights(out_, request_, has_layout_);
    out_.blank(2);
  }

  // params, [stats], inputs..., [key]
  std::vector<std::string> signature(const std::vector<std::string>& inputs) const {
    std::vector<std::string> all = {"params"};
    if (!kept().empty()) all.push_back(kept());
    all.insert(all.end(), inputs.begin(), inputs.end());
    if (state_.dropout) all.push_back("key");
    return all;
  }

  std::vector<std::string> forward_signature() const { return signature(graph_.forward_names()); }

  // The expression of each parameter, relative to the path of a stretch where that is not empty.
  std::vector<std::string> params(const Stretch& stretch) const {
    const std::string& path = stretch.path;
    const bool whole = writes(graph_, stretch);
    std::vector<std::string> all;
    for (const ir::Parameter& parameter : request_.workload.parameters) {
      const bool kept = parameter.frozen && !predicts();
      const bool inside = !path.empty() && parameter.name.starts_with(path + ".");
      const std::string rest = inside ? parameter.name.substr(path.size() + 1) : parameter.name;
      const std::string key =
          fmt::format("{}\"{}\"", inside && whole ? "f" : "", inside && whole ? "{prefix}." + rest : rest);
      const bool cache = parameter.role == ir::Role::kCache;
      all.push_back(cache ? key : fmt::format("{}[{}]", kept ? "stats" : "params", key));
    }
    return all;
  }

  ForwardPrinter printer(CodeWriter& out, const Stretch& stretch) const {
    ForwardPrinter made(out, graph_, "jnp.transpose", params(stretch),
                        stretch.path.empty() ? names_ : Namer(reserved_names()), equalised(request_),
                        precision_.mixed() ? "half" : "");
    if (state_.caches) made.caches_in("cache");
    made.stored_in_half(stored_in_half(request_));
    return made;
  }

  void plan_blocks() {
    const auto print = [this](const Stretch& stretch, const Blocks& blocks) -> std::optional<Printed> {
      CodeWriter body;
      Printed printed = printer(body, stretch)
                            .print(op_functions(), stretch, blocks, Calls(graph_, blocks, stretch, kept()));
      printed.body = std::move(body);
      // Keys of dropout are passed where there are any.
      if (dropouts(graph_, stretch.first, stretch.end) > 0) printed.formals.push_back("keys");
      return printed;
    };
    blocks_ = Blocks::plan(request_.workload, graph_.types, {.names = names_, .functions = true}, print);
  }

  void print_blocks() {
    for (const Family& family : blocks_.families()) {
      std::vector<std::string> parameters = {"params"};
      if (!kept().empty() && reads(family, kept())) parameters.push_back(kept());
      if (family.text.body.text().find("{prefix}") != std::string::npos) parameters.push_back("prefix");
      parameters.insert(parameters.end(), family.text.formals.begin(), family.text.formals.end());
      if (!family.parameters.empty()) parameters.push_back("*");
      const std::vector<std::string> declared = family.declared();
      parameters.insert(parameters.end(), declared.begin(), declared.end());
      out_.call("def " + family.name, parameters, ":");
      const auto body = out_.indent();
      for (const Statement& s : family.text.body.statements()) out_.statement(s);
      out_.blank(2);
    }
  }

  void forward() {
    plan_blocks();
    print_blocks();
    const Stretch whole{"", 0, request_.workload.model_end()};
    ForwardPrinter printer = this->printer(out_, whole);
    out_.call("def forward", forward_signature(), ":");
    {
      const auto body = out_.indent();
      if (stats())
        out_.print(fmt::format("\"\"\"The prediction and {}.\"\"\"\nstats = dict(stats)\n",
                               not_trained(request_.workload) == "NOT_TRAINED"
                                   ? "what is not trained"
                                   : "the new running statistics"));
      if (state_.caches) out_.print("\"\"\"The prediction and the new cache.\"\"\"\ncache = dict(cache)\n");
      if (const int count = dropouts(graph_, 0, whole.end); count > 1)
        out_.line(fmt::format("keys = jax.random.split(key, {})", count));
      if (precision_.mixed()) print_half_inputs(out_, graph_);
      printer.print(op_functions(), blocks_, Calls(graph_, blocks_, whole, kept()));
      print_return(out_, printer.results(precision_.mixed() ? "{}.astype(jnp.float32)" : "{}"),
                   kept().empty() ? "" : ", " + kept());
    }
    out_.blank(2);
  }

  void loss_fn() {
    Namer names = names_;
    const std::vector<std::string> outputs = loss_arguments(graph_, names);
    out_.call("def loss_fn", signature(graph_.inputs), ":");
    {
      const auto body = out_.indent();
      const std::string all = join(outputs, ", ");
      const std::string left = !stats() ? all : outputs.size() > 1 ? "(" + all + "), stats" : all + ", stats";
      out_.call(left + " = forward", forward_signature());
      const auto print = [this](const auto&... parts) { print_loss(out_, parts...); };
      print_losses(out_, graph_, outputs, names, "jnp.transpose", print);
      stats() ? out_.line("return loss, stats") : out_.give_back("loss");
    }
    out_.blank(2);
  }

  void predict_step() {
    out_.line("@jax.jit");
    out_.call("def predict_step", forward_signature(), ":");
    {
      const auto body = out_.indent();
      out_.call("return forward", forward_signature());
    }
    out_.blank(2);
  }

  // Names and sizes of the caches.
  void empty_cache() {
    out_.print("def empty_cache():\n    \"\"\"Zeros for the keys and values of all places.\"\"\"\n");
    const auto body = out_.indent();
    out_.line("return {");
    {
      const auto inner = out_.indent();
      for (const ir::Parameter& p : request_.workload.parameters) {
        if (p.role != ir::Role::kCache) continue;
        const ir::Shape sizes(p.shape.begin() + 1, p.shape.end());
        out_.call(fmt::format("\"{}\": jnp.zeros", p.name),
                  {fmt::format("(BATCH_SIZE, {}){}", join(sizes, ", "),
                               precision_.mixed() ? ", jnp." + precision_.half : "")},
                  ",");
      }
    }
    out_.line("}");
    out_.blank(2);
  }

  // Only the words that were read are kept, in rows.
  void generate_without_cache() {
    out_.print(R"(@partial(jax.jit, donate_argnums=1)
def decode_step(params, read, words, first):
    """Logits of the word that follows `words`, which join `read` at `first`; `read`."""
    words = words.astype(read.dtype)
    read = lax.dynamic_update_slice_in_dim(read, words, first, axis=1)
    positions = first + jnp.arange(words.shape[1])
    return forward(params, read, positions[-1:])[:, -1], read


)");
    print_generate(out_, {.model = "params",
                          .begin = "    read = jnp.zeros_like(rows)\n",
                          .call = "logits, read = decode_step(params, read, words, first)",
                          .joined = "jnp.concatenate(parts, axis=1)"});
  }

  void generate() {
    if (!state_.caches) return generate_without_cache();
    empty_cache();
    out_.print(R"(@partial(jax.jit, donate_argnums=1)
def decode_step(params, cache, words, first):
    """Logits of the word that follows `words`, which begin at `first`; the cache."""
    positions = first + jnp.arange(words.shape[1])
    logits, cache = forward(params, cache, words, positions)
    return logits[:, -1], cache


)");
    print_generate(out_, {.model = "params",
                          .begin = "    cache = empty_cache()\n",
                          .call = "logits, cache = decode_step(params, cache, words, first)",
                          .joined = "jnp.concatenate(parts, axis=1)"});
  }

  void print_predict_main() {
    out_.line("def main():");
    {
      const auto body = out_.indent();
      print_arguments(out_, request_);
      out_.blank();
      out_.line(fmt::format("params = init_params({})",
                            equalised(request_) ? "load_weights(args.weights)" : "jax.random.key(SEED)"));
      print_predict_loop(
          out_, request_,
          {.step = "predict_step(params, *next(data))", .turn = output_turn(request_.workload, graph_.plan)});
    }
    out_.print("\n\nif __name__ == \"__main__\":\n    main()\n");
  }

  void train_step() {
    print_jit();
    std::vector<std::string> parameters = state_.carry();
    parameters.insert(parameters.end(), graph_.inputs.begin(), graph_.inputs.end());
    out_.call("def train_step", parameters, ":");
    {
      const auto body = out_.indent();
      stateful() ? stateful_step() : plain_step();
    }
    out_.blank(2);
  }

  void print_jit() {
    if (donate()) {
      out_.line(stateful() ? "@partial(jax.jit, donate_argnums=0)"
                           : "@partial(jax.jit, donate_argnums=(0, 1))");
    } else {
      out_.line("@jax.jit");
    }
  }

  // In the equalised track the data stays on the device, and the scan picks its batches.
  void train_steps() {
    print_jit();
    std::vector<std::string> parameters = state_.carry();
    parameters.insert(parameters.end(), graph_.inputs.begin(), graph_.inputs.end());
    if (equalised(request_)) parameters.push_back("first");
    out_.call("def train_steps", parameters, ":");
    {
      const auto body = out_.indent();
      out_.print("\"\"\"STEPS_PER_CALL training steps in one call.\"\"\"\n\n");
      const std::string kept = stateful() ? "state" : "(params, opt_state)";
      std::string given = fmt::format("({})", join(graph_.inputs, ", "));
      if (graph_.inputs.size() == 1) given = graph_.inputs[0];
      out_.line(equalised(request_) ? "def step(carry, i):" : "def step(carry, batch):");
      {
        const auto inner = out_.indent();
        std::vector<std::string> arguments = {stateful() ? "carry" : "*carry"};
        for (const std::string& input : graph_.inputs) {
          if (equalised(request_)) arguments.push_back(input + "[i]");
        }
        if (!equalised(request_)) arguments.push_back(graph_.inputs.size() == 1 ? "batch" : "*batch");
        out_.call(stateful() ? "return train_step" : "*carry, loss = train_step", arguments);
        if (!stateful()) out_.line("return tuple(carry), loss");
      }
      out_.blank();
      if (equalised(request_)) {
        out_.line(fmt::format("steps = (first + jnp.arange(STEPS_PER_CALL)) % len({})", graph_.inputs[0]));
        given = "steps";
      }
      out_.call(kept + ", losses = lax.scan", {"step", kept, given});
      out_.line(fmt::format("return {}, losses", join(state_.carry(), ", ")));
    }
    out_.blank(2);
  }

  void plain_step() {
    request_.training.optimizer.accumulate > 1
        ? accumulate()
        : out_.call("loss, grads = jax.value_and_grad(loss_fn)", signature(graph_.inputs));
    out_.line("updates, opt_state = OPTIMIZER.update(grads, opt_state, params)");
    if (!splits_state(request_))
      return out_.line("return optax.apply_updates(params, updates), opt_state, loss");
    out_.print(
        "state = optax.apply_updates(params, updates), opt_state\n"
        "return *lax.with_sharding_constraint(state, split_over_devices(state)), loss\n");
  }

  // The mean loss and gradients of the parts of a batch.
  void accumulate() {
    const std::string inputs =
        fmt::format("({}{})", join(graph_.inputs, ", "), graph_.inputs.size() == 1 ? "," : "");
    out_.line("def add(total, part):");
    {
      const auto inner = out_.indent();
      if (stats()) {
        out_.line("grad_fn = jax.value_and_grad(loss_fn, has_aux=True)");
        out_.line("(loss, _), grads = grad_fn(state.params, state.stats, *part)");
        out_.line("found = loss, grads");
      } else {
        out_.line("found = jax.value_and_grad(loss_fn)(params, *part)");
      }
      out_.line("return jax.tree.map(lambda t, f: t + f / ACCUMULATE, total, found), None");
    }
    out_.blank();
    out_.line(fmt::format("parts = [jnp.stack(jnp.split(a, ACCUMULATE)) for a in {}]", inputs));
    out_.line(
        fmt::format("nothing = (jnp.zeros(()), optax.tree.zeros_like({}params))", stats() ? "state." : ""));
    out_.line("(loss, grads), _ = lax.scan(add, nothing, parts)");
  }

  void stateful_step() {
    std::vector<std::string> arguments = {"state.params"};
    if (stats()) arguments.push_back("state.stats");
    arguments.insert(arguments.end(), graph_.inputs.begin(), graph_.inputs.end());
    if (state_.dropout) {
      out_.line("key, dropout_key = jax.random.split(state.key)");
      arguments.push_back("dropout_key");
    }
    if (request_.training.optimizer.accumulate > 1) {
      accumulate();
      out_.line("stats = state.stats");  // all of it is frozen
    } else {
      out_.line(stats() ? "grad_fn = jax.value_and_grad(loss_fn, has_aux=True)"
                        : "grad_fn = jax.value_and_grad(loss_fn)");
      out_.call(stats() ? "(loss, stats), grads = grad_fn" : "loss, grads = grad_fn", arguments);
    }
    out_.line("updates, opt_state = OPTIMIZER.update(grads, state.opt_state, state.params)");
    out_.line("params = optax.apply_updates(state.params, updates)");
    if (!splits_state(request_))
      return out_.line(fmt::format("return TrainState({}), loss", join(state_.fields(), ", ")));
    out_.line(fmt::format("state = TrainState({})", join(state_.fields(), ", ")));
    out_.line("return lax.with_sharding_constraint(state, split_over_devices(state)), loss");
  }

  void print_main() {
    out_.line("def main():");
    {
      const auto body = out_.indent();
      print_arguments(out_, request_);
      out_.blank();
      const std::string source = equalised(request_) ? "load_weights(args.weights)" : "jax.random.key(SEED)";
      if (stateful()) {
        out_.line(fmt::format("state = init_state({})", source));
      } else {
        out_.line(fmt::format("params = init_params({})", source));
        out_.line("opt_state = OPTIMIZER.init(params)");
        if (on_devices(request_)) out_.line("opt_state = " + on_all_devices(request_, "opt_state"));
      }
      out_.line("data = batches(load_data(args.data))");
      print_loop();
    }
    out_.print("\n\nif __name__ == \"__main__\":\n    main()\n");
  }

  void print_loop() {
    const std::string kept = join(state_.carry(), ", ");
    out_.line(scans() ? "for step in range(0, args.steps, STEPS_PER_CALL):"
                      : "for step in range(args.steps):");
    const auto loop = out_.indent();
    if (scans()) {
      out_.line(fmt::format("{0}, losses = train_steps({0}, *next(data))", kept));
      std::optional<CodeWriter::Scope> first;
      if (over_processes(request_)) {
        out_.line("if jax.process_index() == 0:");
        first.emplace(out_);
      }
      out_.print("print(f\"step {step}: loss {losses[0]:.6f}\")\n");
    } else {
      out_.line(fmt::format("{0}, loss = train_step({0}, *next(data))", kept));
      out_.print("if step % 10 == 0$first$:\n    print(f\"step {step}: loss {loss:.6f}\")\n",
                 {{"first", over_processes(request_) ? " and jax.process_index() == 0" : ""}});
    }
  }

  CodeWriter out_;
  const Request& request_;
  const Graph& graph_;
  const Namer& names_;
  bool has_layout_;
  Blocks blocks_;
  State state_;
  Precision precision_ = precision_of(request_);
};

}  // namespace

std::string script_text(const Request& request, const Graph& graph, const Namer& names, bool has_layout) {
  return Script(request, graph, names, has_layout).text();
}

}  // namespace bakeoff::emit::jax
