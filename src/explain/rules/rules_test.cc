// Each rule on a script that it suspects and on one just like it that it leaves alone.

#include "explain/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "explain/rules/parts.h"

namespace bakeoff::explain {
namespace {

using Json = nlohmann::json;

using Facts = std::map<std::string, Json>;

struct Sign {
  const char* key;
  const char* framework;
  Facts fires;  // words with a capital are what a run shows, below
  Facts silent;
};

// 400 steps of 100 ms, on two processors.
Subject script(const std::string& framework, const Facts& all) {
  const Json facts = Json(all);
  Subject s{.name = "train.py", .seen = {.kind = facts.value("Kind", "optimizer")}};
  s.profile.steps = 400;
  s.profile.total_s = 40;
  s.profile.step_s = facts.value("Step", 0.1);
  s.profile.wait_share = facts.value("Waits", 0.0);
  s.profile.epoch_start_s = facts.value("Epoch", 0.0);
  s.profile.epoch_steps = facts.value("EpochSteps", 0);
  s.seen.compiles = facts.value("Compiles", 0);
  s.seen.compile_ns = s.seen.compiles * 50'000'000;
  s.seen.collections = facts.value("Collections", 0);
  s.output_bytes = facts.value("Bytes", 0.0);
  s.faults = facts.value("Faults", 0.0);
  s.other = facts.value("Other", Json::object());
  s.whole = facts.value("Whole", false);
  s.file = "train.py";
  s.source = facts.value("Source", std::string("\n\n"));
  s.seen.lines = {
      {2, "main", facts.value("Hot", 0.0), facts.value("Eager", 0.0), 0, facts.value("Hot", 0.0)}};
  s.seen.conversions = facts.value("Given", Json());
  s.watched_steps = facts.value("Watched", 0);
  s.watched_s = 0.1 * static_cast<double>(s.watched_steps);
  s.other_s = facts.value("OtherTime", 0.0);
  s.start_compile_s = facts.value("StartCompile", 0.0);
  s.seen.input_s = facts.value("Input", 0.0);
  s.other_source = facts.value("OtherSource", std::string());
  const Json ops = facts.value("Ops", Json::object());
  for (const auto& [name, seconds] : ops.items())
    s.seen.ops.push_back({name, seconds, facts.value("OpCalls", 2.0)});
  const Json other_ops = facts.value("OtherOps", Json::object());
  for (const auto& [name, seconds] : other_ops.items()) s.other_ops[name] = {name, seconds, 1};
  s.seen.children = facts.value("Children", 0);
  s.seen.children_running = facts.value("Running", 0.0);
  for (int64_t k = 1; k <= 100 && facts.contains("Longer"); ++k)
    s.seen.marks.push_back(k * 1'000'000 + k * k * facts.value("Longer", int64_t{0}));
  s.seen.waits.resize(s.seen.marks.size());
  if (const double part = facts.value("Loop", 0.0); part > 0) s.seen.loops = {{2, 40, part, 0}};
  if (facts.contains("Weights")) s.seen.accounts = {{"weights", facts.value("Weights", 0.0)}};
  if (facts.contains("Constant")) s.seen.constants = {{"filters", 2, 2, facts.value("Constant", 0.0)}};
  if (facts.contains("Traced")) s.start_loops = {{2, 0, 0.2, facts.value("Traced", 0.0)}};
  if (facts.contains("OtherSource")) {
    s.code = code_times(s);
    s.exchanges = exchanges(s.source, s.other_source);
  }
  Json own = {{"parameters", 1000}, {"threads", 2}};
  own.update(facts);
  s.seen.facts = {{framework, own}};
  return s;
}

Facts calls(const char* word, double rate) { return {{"calls_per_step", Json{{word, rate}}}}; }

Facts predicts(int64_t rows) {
  Facts facts = calls("model.predict", 1);
  facts["rows"] = Json{{"model.predict", rows}};
  facts["predict_batch"] = 32;
  return facts;
}

const Json kLoader = {{"workers", 0}, {"dataset", "TensorDataset"}, {"default_collate", true}};
const Json kWorked = {{"workers", 2}, {"persistent", false}};
const Json kArrays = {{"line", 2}, {"given", "a list of 64 arrays of 8 float32"}, {"arrays", true}};
const Facts kFused = {{"parameter_tensors", 8}, {"optimizers", Json::array({Json{{"fused", true}}})}};

// A run of 40 s, and one of 10 s, of which it compiles for 20 s until its first steps are made.
const Facts kCompilesLong = {{"Whole", true}, {"OtherTime", 10}, {"StartCompile", 20}};
const Facts kCompilesShort = {{"Whole", true}, {"OtherTime", 10}, {"StartCompile", 2}};

Facts with(Facts facts, const Facts& more) {
  for (const auto& [word, value] : more) facts[word] = value;
  return facts;
}

// A line in which it is seen half of the time.
Facts in_line(const std::string& text) {
  return {{"Hot", 0.5}, {"Source", "memory = deque()\n" + text + "\n"}};
}

Sign line_sign(const char* key, const char* text) {
  return {key, "torch", in_line(text), in_line("loss = model(x)")};
}

// A line in which it is seen 90% of the time, which the other script writes otherwise.
Facts written(const std::string& mine, const std::string& other) {
  return {{"Hot", 0.9},
          {"OtherTime", 0.02},
          {"Source", "import x\n" + mine + "\n"},
          {"OtherSource", "import x\n" + other + "\n"}};
}

Sign code_sign(const char* key, const char* mine, const char* other) {
  return {key, "torch", written(mine, other), written("y = f(x)", "y = g(x)")};
}

// An op that takes 90 of 100 ms, where the other script takes 20 ms in all, and by no other op as long.
Sign op_sign(const char* key, const char* op) {
  return {key,
          "torch",
          {{"OtherTime", 0.02}, {"Ops", {{op, 0.09}}}, {"OtherOps", {{op, 0.001}, {"aten::mm", 0.005}}}},
          {{"OtherTime", 0.02}, {"Ops", {{op, 0.09}}}, {"OtherOps", {{"aten::fused", 0.08}}}}};
}

const std::vector<Sign> kSigns = {
    op_sign("op_index", "aten::_index_put_impl_"),
    op_sign("op_sort", "aten::_unique2"),
    op_sign("op_copy", "aten::copy_"),
    op_sign("op_random", "StatelessRandomUniformV2"),
    op_sign("op_decomposition", "aten::linalg_inv_ex"),
    op_sign("op_mask", "aten::nonzero"),
    op_sign("op_slow_conv", "aten::slow_conv_dilated2d"),
    op_sign("op_fill", "aten::fill_"),
    op_sign("op_alone", "aten::cdist"),
    {"unfused_recurrence",
     "torch",
     {{"OtherTime", 0.02},
      {"OpCalls", 250},
      {"Ops", {{"aten::mm", 0.05}}},
      {"OtherOps", {{"aten::mkldnn_rnn_layer", 0.01}}}},
     {{"OtherTime", 0.02},
      {"OpCalls", 250},
      {"Ops", {{"aten::mm", 0.05}}},
      {"OtherOps", {{"aten::mm", 0.01}}}}},
    code_sign("not_donated", "y = jax.jit(f)(x)", "y = jax.jit(f, donate_argnums=0)(x)"),
    code_sign("row_callbacks", "y = call(f, x, vmap_method='sequential')",
              "y = call(f, x, vmap_method='broadcast_all')"),
    code_sign("mapped_too_much", "y = vmap(f)(x, n)", "y = vmap(f, in_axes=(0, None))(x, n)"),
    code_sign("whole_derivatives", "h = jax.hessian(f)(x) @ v", "h = jax.jvp(jax.grad(f), (x,), (v,))[1]"),
    code_sign("reverse_mode", "j = jax.jacrev(f)(x)", "j = jax.jacfwd(f)(x)"),
    code_sign("row_at_a_time", "y = tf.map_fn(f, x)", "y = f(x)"),
    code_sign("weights_by_numpy", "t.set_weights(mix(m.get_weights()))", "mix(t.variables, m.variables)"),
    code_sign("metric_thresholds", "m = AUC(thresholds=list(r))", "m = AUC(num_thresholds=200)"),
    code_sign("batch_metrics", "m.compile(loss=f, metrics=[A()])", "m.compile(loss=f, metrics=[])"),
    code_sign("every_step", "histogram(x)", "if step % every[\"draw\"] == 0: histogram(x)"),
    code_sign("copied_updates", "bank = tf.tensor_scatter_nd_update(bank, i, x)",
              "bank.scatter_nd_update(i, x)"),
    code_sign("made_dense", "g = tf.convert_to_tensor(g)", "g = f(g)"),
    code_sign("grouped_convolution", "y = conv(x, w, feature_group_count=n)", "y = shifted(x, w)"),
    code_sign("row_norms", "e = nn.Embedding(9, 4, max_norm=1.0)", "e = nn.Embedding(9, 4)"),
    code_sign("attention_weights", "y, w = attention(x, x, x)",
              "y, _ = attention(x, x, x, need_weights=False)"),
    code_sign("argument_checks", "d = Normal(m, s)", "d = Normal(m, s, validate_args=False)"),
    code_sign("full_decomposition", "u, s, v = torch.linalg.svd(x)",
              "u, s, v = torch.linalg.svd(x, full_matrices=False)"),
    code_sign("moved_out",
              "  kernel = make_kernel(n)\nfor x in xs:", "for x in xs:\nkernel = make_kernel(n)"),
    code_sign("second_graph", "g = grad(y, x, create_graph=True)", "g = grad(y, x)"),
    code_sign("full_sort", "best = torch.argsort(x)[:5]", "best = torch.topk(x, 5).indices"),
    code_sign("direct_convolution", "y = F.conv1d(x, w)", "y = irfft(rfft(x) * rfft(w))"),
    code_sign("dense_zeros", "y = adjacency @ x", "y = torch.sparse.mm(adjacency, x)"),
    code_sign("skips_nothing", "y = head(h)", "y = head(h[mask])"),
    code_sign("again_kept", "d = d.map(f)", "d = d.map(f).cache()"),
    code_sign("whole_files", "x = load(path)[:64]", "x = load(path, mmap_mode='r')[:64]"),
    code_sign("hooks", "h = layer.register_forward_hook(f)", "h = None"),
    code_sign("hooks_kept", "layer.register_forward_hook(f)", "handle = layer.register_forward_hook(f)"),
    code_sign("state_kept", "y = net.predict(text)[-1]", "y, h, c = net.predict([new, h, c])"),
    code_sign("one_hot_lookup", "y = tf.matmul(tf.one_hot(i, 5000), table)", "y = tf.gather(table, i)"),
    code_sign("single_rows", "y = net(x.unsqueeze(0))", "y = net(batch)"),
    code_sign("all_pairs", "y = (p == c[:, None]).sum(1)", "y = torch.bincount(p)"),
    code_sign("gradient_calls", "y = net(x)", "with torch.no_grad():\n    y = net(x)"),
    code_sign("graph_kept", "y = net(x)", "y = net(x).detach()"),
    code_sign("element_reads", "y = x[i]", "x = np.asarray(x)\ny = x[i]"),
    code_sign("rows_of_file", "y = f[\"x\"]", "y = f[\"x\"][:]"),
    code_sign("one_model_each", "y = [m(x) for m in models]", "y = torch.bmm(w, x)"),
    code_sign("not_compiled", "y = step(x)", "y = tf.function(step)(x)"),
    code_sign("not_scanned", "y = loop(f, x)", "y = jax.lax.scan(f, x, n)"),
    code_sign("denormal_numbers", "pass", "torch.set_flush_denormal(True)"),
    code_sign("another_precision", "y = f(x.astype(jnp.bfloat16))", "y = f(x)"),
    code_sign("another_layout", "m = Net()", "m = Net().to(memory_format=torch.channels_last)"),
    code_sign("array_copies", "y = x.repeat(9, 1)", "y = x.expand(9, -1)"),
    code_sign("decompositions", "s = jnp.linalg.svd(w)[1][0]", "s = u @ w @ v"),
    code_sign("new_iterators", "x, y = next(iter(loader))", "x, y = next(batches)"),
    code_sign("compressed_files", "np.savez_compressed(path, x)", "np.save(path, x)"),
    code_sign("lists_searched", "if word not in words: continue", "known = set(words)"),
    code_sign("random_draws", "i = rng.choice(n, 64, p=w)", "i = rng.integers(n, size=64)"),
    code_sign("recomputed", "x = checkpoint(layer, x, use_reentrant=False)", "x = layer(x)"),
    code_sign("compiled_loop", "y = jax.lax.fori_loop(0, n, f, y)", "y = jnp.cumsum(x)"),
    code_sign("picked_by_mask", "y = x[mask].sum()", "y = torch.where(mask, x, 0).sum()"),
    code_sign("compile_off", "m.compile(loss=f, jit_compile=False)", "m.compile(loss=f)"),
    code_sign("separable_filter", "y = F.conv2d(x, w)", "y = F.conv2d(F.conv2d(x, a), b)"),
    code_sign("read_again", "for line in open(path): yield f(line)", "yield from rows"),
    code_sign("another_number", "rows = write(path, chunk=64)", "rows = write(path, chunk=1)"),
    code_sign("both_branches", "y = lax.cond(done, lambda: fresh, lambda: x)",
              "y = lax.cond(done, lambda: reset(key), lambda: x)"),
    code_sign("switched_off", "out = model(x)", "out = model(x, forces=False)"),
    code_sign("switched_on", "out = model(x)", "out = model(x, packed=True)"),
    code_sign("each_alone", "y = [f(v) for v in x]", "y = f(x)"),
    code_sign("read_backs", "n += y.sum().item()", "n += y.sum()"),
    {"other_code",
     "torch",
     written("y = f(x)", "y = g(x)"),
     {{"Hot", 0.9}, {"OtherTime", 0.02}, {"Source", "a\ny = f(x)\n"}}},
    {"growing_steps", "torch", {{"Longer", 10'000}}, {{"Longer", 0}}},
    {"crowded", "torch", {{"Children", 4}, {"Running", 7.5}}, {{"Children", 4}, {"Running", 2.1}}},
    line_sign("grown_array", "  self.rows = np.concatenate([self.rows, row])"),
    line_sign("array_updates", "x = x.at[i].set(row)"),
    line_sign("deque_access", "return random.sample(memory, 32)"),
    {"deque_access", "torch", in_line("x = memory[pick]"), in_line("x = rows[pick]; memory.append(x)")},
    line_sign("choice", "rows = np.random.choice(n, 64, replace=False)"),
    line_sign("shuffles", "rows = torch.randperm(n)[:64]"),
    line_sign("table_rows", "row = table.iloc[i]"),
    line_sign("table_apply", "y = table.apply(lambda row: row.a, axis=1)"),
    line_sign("vectorize", "y = np.vectorize(clip)(x)"),
    line_sign("searches", "at = words.index(word)"),
    line_sign("map_fn", "y = tf.map_fn(f, x)"),
    line_sign("one_hot_product", "y = F.one_hot(i, n).float() @ table"),
    line_sign("einsum_of_three", "y = torch.einsum('bi,ij,bj->b', x, w, z)"),
    line_sign("all_differences", "d = ((x[:, None] - c[None]) ** 2).sum(-1)"),
    {"row_gradients", "torch", with(in_line("g = torch.autograd.grad(y[i], x)"), {{"Loop", 0.5}}),
     in_line("g = torch.autograd.grad(y[i], x)")},
    line_sign("row_derivatives", "j = torch.autograd.functional.jacobian(f, x)"),
    line_sign("inverse", "y = torch.linalg.inv(a) @ b"),
    line_sign("covariance", "z = rng.multivariate_normal(mean, cov)"),
    line_sign("state_dicts", "for name, p in model.state_dict().items():"),
    line_sign("tables", "with open(path, 'w') as file:"),
    line_sign("reads_files", "x = np.load(files[i])"),
    line_sign("tokens", "ids = tokenizer(text, padding=True)"),
    line_sign("number_checks", "if torch.isnan(h).any():"),
    line_sign("pictures", "plt.plot(losses)"),
    line_sign("processes", "out = subprocess.run(['nvidia-smi'])"),
    line_sign("folders", "files = glob.glob('*.npy')"),
    line_sign("caches_emptied", "torch.cuda.empty_cache()"),
    line_sign("downloads", "x = requests.get(address)"),
    {"rebuilt", "torch", {{"Constant", 0.6}}, {{"Constant", 0.05}}},
    {"python_loop",
     "torch",
     {{"Loop", 0.8}, {"OtherTime", 0.02}, {"Source", "a\nfor t in range(40):\n  h = cell(x[t], h)\n"}},
     {{"Loop", 0.8},
      {"OtherTime", 0.02},
      {"Source", "a\nfor t in range(40):\n  h = cell(x[t], h)\n"},
      {"OtherSource", "b\n for t in range(40):\n  h = cell(x[t], h)\n"}}},
    {"compile_start", "torch", kCompilesLong, kCompilesShort},
    {"unrolled", "jax", with(kCompilesLong, {{"Traced", 0.1}}), kCompilesLong},
    {"large_graph", "tensorflow", with(kCompilesLong, {{"graph_ops", 9000}, {"Other", {{"graph_ops", 300}}}}),
     with(kCompilesLong, {{"graph_ops", 400}, {"Other", {{"graph_ops", 300}}}})},
    {"static_values",
     "jax",
     {{"Compiles", 30}, {"retraces", {{"step", {"cfg: another object"}}}}},
     {{"Compiles", 30}, {"retraces", {{"step", {"x: shape"}}}}}},
    {"other_types",
     "jax",
     {{"Compiles", 30}, {"retraces", {{"step", {"x: weak type"}}}}},
     {{"Compiles", 30}, {"retraces", {{"step", {"x: shape"}}}}}},
    {"shapes",
     "jax",
     {{"Compiles", 30}, {"retraces", {{"step", {"x: shape"}}}}},
     {{"Compiles", 30}, {"retraces", {{"step", {"cfg: another object"}}}}}},
    {"small_calls",
     "jax",
     {{"Hot", 0.8},
      {"OtherTime", 0.02},
      {"functions", {{"energy", {9000, 2}}}},
      {"Other", {{"functions", {{"energy", {90, 2}}}}}}},
     {{"Hot", 0.8},
      {"OtherTime", 0.02},
      {"functions", {{"energy", {9000, 2}}}},
      {"Other", {{"functions", {{"energy", {8000, 2}}}}}}}},
    {"conversion",
     "torch",
     {{"Hot", 0.5}, {"Source", "for i in n:\n  x = torch.tensor(rows)\n"}},
     {{"Hot", 0.5}, {"Source", "for i in n:\n  x = np.array([f(y) for y in rows])\n"}}},
    {"input", "torch", {{"Waits", 0.2}}, {{"Waits", 0.1}}},
    {"input", "tf_keras", {{"data", "generator"}}, {{"data", "ndarray"}}},
    {"conversion",
     "torch",
     {{"Hot", 0.5}, {"Source", "for i in n:\n  x = torch.tensor(rows[i])\n"}},
     {{"Hot", 0.05}, {"Source", "for i in n:\n  x = torch.tensor(rows[i])\n"}}},
    {"conversion",
     "jax",
     {{"Hot", 0.5}, {"Source", "for i in n:\n  x = jnp.array(rows[i])\n"}},
     {{"Hot", 0.5}, {"Source", "for i in n:\n  x = step(rows[i])\n"}}},
    {"array_lists",
     "torch",
     {{"Hot", 0.5}, {"Given", Json::array({kArrays})}},
     {{"Hot", 0.05}, {"Given", Json::array({kArrays})}}},
    {"elements",
     "tensorflow",
     {{"Waits", 0.7}, {"generator_elements_per_step", 64}},
     {{"Waits", 0.1}, {"generator_elements_per_step", 64}}},
    {"recompiles",
     "torch",
     {{"Compiles", 30}, {"recompiles", {{"forward", {"L['n'] == 3"}}}}},
     {{"Compiles", 30}, {"recompiles", Json::object()}}},
    {"dense_embedding",
     "torch",
     {{"optimizer_s", 0.05},
      {"dense_embedding", {{"rows", 1e6}, {"used", 1e3}, {"numbers", 1e3}}},
      {"Watched", 40}},
     {{"optimizer_s", 0.05},
      {"dense_embedding", {{"rows", 1e6}, {"used", 9e5}, {"numbers", 1e3}}},
      {"Watched", 40}}},
    {"hot_line",
     "torch",
     {{"Hot", 0.8}, {"OtherTime", 0.02}, {"Source", "a\nb = torch.cat([b, x])\n"}},
     {{"Hot", 0.2}, {"OtherTime", 0.02}, {"Source", "a\nb = torch.cat([b, x])\n"}}},
    {"hot_line",
     "jax",
     {{"Hot", 0.8}, {"OtherTime", 0.02}, {"Source", "a\nx = shuffled(rows)\n"}},
     {{"Hot", 0.8}, {"OtherTime", 0.02}, {"Source", "a\nprint(float(loss))\n"}}},
    {"grad_in_calls",
     "torch",
     {{"Kind", "call"}, {"graphs_of_calls", 1}},
     {{"Kind", "optimizer"}, {"graphs_of_calls", 1}}},
    {"made_weights", "torch", {{"Weights", 0.3}}, {{"Weights", 0.05}}},
    {"padded",
     "torch",
     {{"padding", 0.8}},
     {{"padding", 0.8}, {"OtherTime", 0.02}, {"Other", {{"padding", 0.7}}}}},
    {"untrained",
     "torch",
     {{"untrained", {{"tensors", 8}, {"numbers", 90000}}}},
     {{"untrained", {{"tensors", 8}, {"numbers", 90000}}},
      {"Other", {{"untrained", {{"tensors", 8}, {"numbers", 90000}}}}}}},
    {"growing_input",
     "torch",
     {{"Kind", "call"},
      {"growing_input", {{"least", 16}, {"most", 128}, {"mean_s", 0.01}, {"more_s", 0.006}}}},
     {{"Kind", "call"},
      {"growing_input", {{"least", 16}, {"most", 20}, {"mean_s", 0.01}, {"more_s", 0.006}}}}},
    {"unused_gradients",
     "torch",
     {{"unused_gradients", {{"passes", 0.8}, {"line", 4}}}},
     {{"unused_gradients", {{"passes", 0.8}, {"line", 4}}},
      {"Other", {{"unused_gradients", {{"passes", 0.8}, {"line", 4}}}}}}},
    {"growing_graph",
     "torch",
     {{"backward_trend", {{"retains", true}, {"first_s", 0.001}, {"last_s", 0.03}, {"more_s", 0.05}}}},
     {{"backward_trend", {{"retains", true}, {"first_s", 0.001}, {"last_s", 0.0012}, {"more_s", 0.001}}}}},
    {"save", "jax", calls("pickle.dump", 1), calls("pickle.dump", 0.01)},
    {"allocator", "torch", {{"Faults", 30'000}}, {{"Faults", 3'000}}},
    {"shapes", "jax", {{"Compiles", 30}}, {{"Compiles", 10}}},
    {"prints", "keras", {{"Bytes", 50}}, {{"Bytes", 5}}},
    {"log", "tensorflow", calls("tf.summary.scalar", 1), calls("tf.summary.scalar", 0.1)},
    {"sleep", "torch", calls("time.sleep", 0.5), calls("time.sleep", 0.1)},
    {"copies", "torch", calls("copy.deepcopy", 1), calls("copy.deepcopy", 0.1)},
    {"tracing", "jax", {{"tracing", {"tracemalloc"}}}, {{"tracing", Json::array()}}},
    {"collections", "torch", {{"Collections", 200}}, {{"Collections", 20}}},
    {"batch",
     "torch",
     {{"batch", 16}, {"Other", {{"batch", 128}}}},
     {{"batch", 100}, {"Other", {{"batch", 128}}}}},
    {"half_weights",
     "torch",
     {{"dtypes", {"float16"}}, {"device", "cpu"}},
     {{"dtypes", {"float16"}}, {"device", "cuda:0"}}},
    {"float64", "jax", {{"dtypes", {"float64"}}}, {{"dtypes", {"float32"}}}},
    {"collated_lists",
     "torch",
     {{"Waits", 0.4}, {"loaders", {{{"parts", 300}, {"default_collate", true}}}}},
     {{"Waits", 0.4}, {"loaders", {{{"parts", 2}, {"default_collate", true}}}}}},
    {"per_item",
     "torch",
     {{"Waits", 0.1}, {"loaders", Json::array({kLoader})}},
     {{"Waits", 0.01}, {"loaders", Json::array({kLoader})}}},
    {"no_workers",
     "torch",
     {{"Waits", 0.2}, {"loaders", Json::array({kLoader})}},
     {{"Waits", 0.1}, {"loaders", Json::array({kLoader})}}},
    {"workers",
     "torch",
     {{"Waits", 0.1}, {"loaders", Json::array({kWorked})}},
     {{"Waits", 0.01}, {"loaders", Json::array({kWorked})}}},
    {"worker_restart",
     "torch",
     {{"Epoch", 1}, {"loaders", Json::array({kWorked})}},
     {{"Epoch", 0.2}, {"loaders", Json::array({kWorked})}}},
    {"small_ops", "torch", {{"Step", 0.01}}, {{"Step", 0.05}}},
    {"optimizer_ops",
     "torch",
     {{"parameter_tensors", 8}, {"optimizers", Json::array({Json{{"fused", nullptr}}})}},
     kFused},
    {"compiled", "torch", {{"graphs", 1}}, {{"graphs", 0}}},
    {"compile_cost", "torch", {{"graphs", 1}, {"Whole", true}}, {{"graphs", 1}}},
    {"threads",
     "torch",
     {{"threads", 2}, {"Other", {{"threads", 1}}}},
     {{"threads", 2}, {"Other", {{"threads", 2}}}}},
    {"small_ops",
     "torch",
     {{"Step", 0.05}, {"Other", {{"graphs", 1}}}},
     {{"Step", 0.05}, {"Other", {{"graphs", 0}}}}},
    {"full_precision",
     "torch",
     {{"autocast", ""}, {"Other", {{"autocast", "bfloat16"}}}},
     {{"autocast", ""}, {"Other", {{"autocast", ""}}}}},
    {"workers",
     "torch",
     {{"loaders", Json::array({kWorked})}, {"Other", {{"loaders", Json::array({kLoader})}}}},
     {{"loaders", Json::array({kWorked})}, {"Other", {{"loaders", Json::array({kWorked})}}}}},
    {"no_workers",
     "torch",
     {{"loaders", Json::array({kLoader})}, {"Other", {{"loaders", Json::array({kWorked})}}}},
     {{"loaders", Json::array({kLoader})}, {"Other", {{"loaders", Json::array({kLoader})}}}}},
    {"one_step_calls",
     "keras",
     {{"Kind", "fit"}, {"Step", 0.1}, {"Other", {{"steps_per_execution", 8}}}},
     {{"Kind", "fit"}, {"Step", 0.1}, {"Other", {{"steps_per_execution", 1}}}}},
    {"mixed_precision",
     "keras",
     {{"dtype_policy", "mixed_bfloat16"}, {"device", "cpu"}},
     {{"dtype_policy", "float32"}, {"device", "cpu"}}},
    {"history", "torch", {{"history", true}}, {{"history", false}}},
    {"checkpoints", "torch", {{"checkpoints_per_step", 4}}, {{"checkpoints_per_step", 0.1}}},
    {"denormals", "torch", {{"denormals", 0.02}}, {{"denormals", 0.001}}},
    {"threads", "torch", {{"threads", 1}}, {{"threads", 2}}},
    {"autocast", "torch", {{"autocast", "bfloat16"}, {"device", "cpu"}}, {{"autocast", ""}}},
    {"anomaly", "torch", {{"anomaly", true}}, {{"anomaly", false}}},
    {"deterministic", "torch", {{"deterministic", true}}, {{"deterministic", false}}},
    {"profiler", "torch", {{"profiler", true}}, {{"profiler", false}}},
    {"mkldnn", "torch", {{"mkldnn", false}}, {{"mkldnn", true}}},
    {"layout", "torch", {{"convolutions", 2}, {"layout", "contiguous"}}, {{"layout", "channels_last"}}},
    {"compiled_again",
     "keras",
     {{"calls_per_step", {{"model.compile", 0.1}}}, {"Watched", 40}, {"Compiles", 8}},
     {{"calls_per_step", {{"model.compile", 0.01}}}, {"Watched", 40}, {"Compiles", 8}}},
    {"validation", "keras", {{"validation", true}, {"Epoch", 0.5}}, {{"validation", true}}},
    {"validation",
     "keras",
     {{"validation", true}, {"Epoch", 0.5}},
     {{"validation", true}, {"Epoch", 0.5}, {"Watched", 40}}},
    {"callbacks", "keras", {{"callbacks", {"Tell"}}}, {{"callbacks", Json::array()}}},
    {"one_step_calls", "keras", {{"Kind", "fit"}, {"Step", 0.01}}, {{"Kind", "fit"}, {"Step", 0.03}}},
    {"xla", "keras", {{"Kind", "fit"}, {"jit_compile", true}}, {{"Kind", "fit"}, {"jit_compile", false}}},
    {"no_xla", "keras", {{"Kind", "fit"}, {"backend", "tensorflow"}}, {{"Kind", "fit"}, {"backend", "jax"}}},
    {"progress_bar",
     "keras",
     {{"Kind", "fit"}, {"verbose", "auto"}, {"Step", 0.002}},
     {{"Kind", "fit"}, {"verbose", 2}, {"Step", 0.002}}},
    {"run_eagerly", "keras", {{"Kind", "fit"}, {"run_eagerly", true}}, {{"Kind", "fit"}}},
    {"metrics",
     "keras",
     {{"Kind", "fit"}, {"metrics", {"mae"}}},
     {{"Kind", "fit"}, {"metrics", Json::array()}}},
    {"predict", "keras", calls("model.predict", 1), calls("model.predict_on_batch", 1)},
    {"predict_batch", "keras", predicts(2048), predicts(32)},
    {"short_epochs",
     "keras",
     {{"Kind", "fit"}, {"Waits", 0.7}, {"EpochSteps", 1}},
     {{"Kind", "fit"}, {"Waits", 0.7}, {"EpochSteps", 100}}},
    {"short_epochs",
     "keras",
     {{"Kind", "fit"}, {"Epoch", 0.5}, {"EpochSteps", 2}},
     {{"Kind", "fit"}, {"Epoch", 0.5}, {"EpochSteps", 2}, {"validation_s", 0.24}}},
    {"fits", "keras", {{"Kind", "fit"}, {"fits_per_step", 1}}, {{"Kind", "fit"}, {"fits_per_step", 0.01}}},
    {"no_graph", "tensorflow", {{"eager_loop", {{"function", "step"}}}}, {}},
    {"retraces", "tensorflow", {{"Compiles", 30}}, {{"Compiles", 10}}},
    {"python_numbers",
     "tensorflow",
     {{"Compiles", 30}, {"retraces", {{"step", {{"reasons", {"rate: Python value"}}}}}}},
     {{"Compiles", 30}, {"retraces", {{"step", {{"reasons", {"x: shape"}}}}}}}},
    {"new_tf_functions",
     "tensorflow",
     {{"Compiles", 30}, {"retraces", {{"step", {{"reasons", {"a new function each time"}}}}}}},
     {{"Compiles", 30}}},
    {"new_functions",
     "jax",
     {{"Compiles", 30}, {"retraces", {{"step", {"a new function each time"}}}}},
     {{"Compiles", 30}, {"retraces", {{"step", {"x: shape"}}}}}},
    {"tf_threads", "tensorflow", {{"threads", 1}}, {{"threads", 2}}},
    {"eager", "tensorflow", {{"run_eagerly", true}}, {{"run_eagerly", false}}},
    {"check_numerics", "tensorflow", {{"check_numerics", true}}, {{"check_numerics", false}}},
    {"function_without_xla",
     "tensorflow",
     {{"Kind", "function"}},
     {{"Kind", "function"}, {"jit_compile", true}}},
    {"no_cache",
     "tensorflow",
     {{"Waits", 0.5}, {"pipelines", Json::array({Json{{"map", true}, {"cache", false}}})}},
     {{"Waits", 0.5}, {"pipelines", Json::array({Json{{"map", true}, {"cache", true}}})}}},
    {"python_map",
     "tensorflow",
     {{"Waits", 0.5}, {"pipelines", Json::array({Json{{"python", true}}})}},
     {{"Waits", 0.5}, {"pipelines", Json::array({Json{{"python", false}}})}}},
    {"elements",
     "tensorflow",
     {{"Kind", "fit"}, {"Input", 0.09}, {"generator_elements_per_step", 64}},
     {{"Kind", "fit"}, {"Input", 0.02}, {"generator_elements_per_step", 64}}},
    {"serial_map",
     "tensorflow",
     {{"Waits", 0.1}, {"pipelines", Json::array({Json{{"map", true}}})}},
     {{"Waits", 0.1}, {"pipelines", Json::array({Json{{"map", false}}})}}},
    {"map_rows",
     "tensorflow",
     {{"Waits", 0.5}, {"pipelines", Json::array({Json{{"stages", {"tensor_slice", "map", "batch"}}}})}},
     {{"Waits", 0.5}, {"pipelines", Json::array({Json{{"stages", {"tensor_slice", "batch", "map"}}}})}}},
    {"prefetch",
     "tensorflow",
     {{"Waits", 0.1}, {"pipelines", Json::array({Json{{"prefetch", false}}})}},
     {{"Waits", 0.1}, {"pipelines", Json::array({Json{{"prefetch", true}}})}}},
    {"no_jit", "jax", {{"eager_loop", {{"function", "step"}}}}, {}},
    {"eager_ops", "jax", {{"Eager", 0.6}, {"Hot", 0.8}}, {{"Eager", 0.1}, {"Hot", 0.8}}},
    {"eager_elements", "jax",
     with({{"Eager", 0.6}}, in_line("acc = rewards[t] + acc\nfor t in reversed(range(9)):")),
     with({{"Eager", 0.6}}, in_line("p = {k: p[k] - g[k] for k in p}"))},
    {"blocks", "jax", {{"blocks_per_step", 1}}, {{"blocks_per_step", 0.1}}},
    {"jax_threads", "jax", {{"threads", 1}}, {{"threads", 2}}},
    {"debug_nans", "jax", {{"debug_nans", true}}, {{"debug_nans", false}}},
    {"jit_off", "jax", {{"disable_jit", true}}, {{"disable_jit", false}}},
};

std::set<std::string> suspected(const Sign& sign, const Facts& facts) {
  std::set<std::string> keys;
  for (const Suspect& one : suspects(script(sign.framework, facts), 2)) keys.insert(one.rule->key);
  return keys;
}

TEST(RuleSigns, FireAndStaySilent) {
  for (const Sign& sign : kSigns) {
    EXPECT_THAT(suspected(sign, sign.fires), ::testing::Contains(sign.key)) << sign.framework;
    EXPECT_THAT(suspected(sign, sign.silent), ::testing::Not(::testing::Contains(sign.key)))
        << sign.framework;
  }
}

// What is said without a run, by topic: facts that fire it, and facts that do not.
const std::vector<Sign> kRemarkSigns = {
    {"R6", "keras", calls("model.evaluate", 1), calls("model.evaluate", 0.1)},
    {"R10", "torch", {{"cell_calls_per_step", 20}}, {{"cell_calls_per_step", 1}}},
    {"R18", "jax", {{"early_clocks", 0.9}}, {{"early_clocks", 0.1}}},
    {"R21", "torch", {{"broadcast_loss", {{16, 1}, {16}}}}, {}},
    {"R22", "torch", {{"double_softmax", true}}, {{"double_softmax", false}}},
    {"R22", "keras", {{"missing_softmax", true}}, {{"missing_softmax", false}}},
    {"R23", "torch", {{"batch_as_time", {"LSTM", {32, 20, 16}}}}, {}},
    {"R24", "torch", {{"unchanged", {"fc.weight"}}}, {{"unchanged", Json::array()}}},
    {"R24", "torch", {{"unchanged", {"fc.weight"}}}, {{"Kind", "call"}, {"unchanged", {"fc.weight"}}}},
};

std::optional<Suspicion> suspicion_of(const std::string& key, const Subject& s) {
  for (Suspect& one : suspects(s, 2))
    if (one.rule->key == key) return std::move(one.suspicion);
  return std::nullopt;
}

TEST(RuleBooks, CompilationsThatGoOnAreBooked) {
  Subject s = script("jax", {{"Compiles", 30}, {"retraces", {{"step", {"x: shape"}}}}});
  EXPECT_FALSE(suspicion_of("shapes", s)->booked) << "its steps were not watched";
  s.watched_steps = 40;
  s.watched_s = 2;
  for (int64_t step = 0; step < 30; ++step) s.seen.compile_steps.push_back(step + 5);
  EXPECT_NEAR(suspicion_of("shapes", s)->booked.value(), 0.75, 1e-9);
  s.seen.compile_steps = {0, 1, 2, 3, 4, 5};
  EXPECT_FALSE(suspicion_of("shapes", s)->booked) << "it warmed up";
}

TEST(RuleBooks, CallsWaitsAndLooksAreBooked) {
  Facts facts = calls("time.sleep", 1);
  facts["call_seconds_per_step"] = Json{{"time.sleep", 0.06}};
  Subject s = script("torch", facts);
  s.watched_steps = 40;
  s.watched_s = 4;
  EXPECT_NEAR(suspicion_of("sleep", s)->booked.value(), 0.6, 1e-9);
  EXPECT_NEAR(suspicion_of("input", script("torch", {{"Waits", 0.7}}))->booked.value(), 0.7, 1e-9);
  s = script("torch", {{"Hot", 0.5}, {"Given", Json::array({kArrays})}});
  s.watched_s = 5;
  const auto found = suspicion_of("array_lists", s);
  EXPECT_GT(found->booked.value(), 0.45);
  EXPECT_LT(found->booked.value(), 0.5) << "looks are a sample";
  EXPECT_THAT(found->evidence, ::testing::HasSubstr("a list of 64 arrays of 8 float32"));
}

TEST(RuleBooks, WhatAloneDiffersIsNamedThoughNoLineShowsIt) {
  Subject s = script("torch", written("y = f(x)\nsetting = 'a'", "y = f(x)\nsetting = 'b'"));
  s.watched_s = 5;
  auto found = suspicion_of("other_code", s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->line, 3);
  EXPECT_THAT(found->evidence, ::testing::HasSubstr("differ in one place: 'setting = 'a'', where"));
  EXPECT_GT(found->booked.value(), 0.7) << "0.08 of 0.1 s";
  EXPECT_TRUE(found->value.is_null()) << "the other script is the run with these lines";

  s = script("torch", written("y = f(x)\nsetting = 1\nz = 1", "y = f(x)\nz = 1\nother = 2"));
  found = suspicion_of("other_code", s);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->booked) << "one of two";
  const auto all = suspects(s, 2);
  EXPECT_EQ(
      std::ranges::count(all, std::string("other_code"), [](const Suspect& one) { return one.rule->key; }),
      2);
  EXPECT_EQ(found->value, Json::array({0}));
  const auto named = suspicion_of(
      "another_layout",
      script("torch", written("y = f(x)\nm = Net()", "y = f(x)\nm = Net().to(torch.channels_last)")));
  EXPECT_TRUE(named && named->booked);
}

TEST(RuleBooks, PythonNumbersAreNamed) {
  const Subject s =
      script("tensorflow",
             {{"Compiles", 30},
              {"retraces", {{"step", {{"reasons", {"lr: Python value", "t: Python value", "x: shape"}}}}}}});
  EXPECT_THAT(suspicion_of("python_numbers", s)->evidence,
              ::testing::HasSubstr("that change: lr, t of step"));
}

TEST(RuleSigns, RemarksFireAndStaySilent) {
  const auto topics_of = [](const Sign& sign, const Facts& facts) {
    std::set<std::string> all;
    for (const Remark& one : remarks(script(sign.framework, facts))) all.insert(one.id);
    return all;
  };
  for (const Sign& sign : kRemarkSigns) {
    EXPECT_THAT(topics_of(sign, sign.fires), ::testing::ElementsAre(sign.key)) << sign.framework;
    EXPECT_THAT(topics_of(sign, sign.silent), ::testing::IsEmpty()) << sign.framework;
  }
}

TEST(RulePatterns, AreOnesOfPosix) {
  for (const Rule& rule : rules())
    for (const char* pattern : {rule.place, rule.from}) {
      if (pattern == nullptr) continue;
      EXPECT_NO_THROW(Pattern{pattern}) << rule.key;
      EXPECT_EQ(std::string(pattern).find("\\d"), std::string::npos)
          << rule.key << ": [0-9], \\d is none of POSIX";
    }
}

TEST(RuleSigns, AreThereForEveryRule) {
  std::set<std::string> known, all;
  for (const Sign& sign : kSigns) known.insert(sign.key);
  for (const Rule& rule : rules()) all.insert(rule.key);
  EXPECT_EQ(known, all);
}

}  // namespace
}  // namespace bakeoff::explain
