// Rules of PyTorch: loaders, compiling, optimizers, the graph of gradients and its backward passes.
//
// A rule sees facts that the hooks reported (runners/bakeoff_observe) and returns a suspicion or nothing. It
// may be generous where its switch is thrown in a heat: a wrong suspicion then costs seconds. It must be
// strict where it books time without a run (`booked`): there it names a cause by itself, so what is booked
// has to be measured, at least, and be gone with the change. Many rules are suspicious of what the other
// script does differently, since a setting alone is rarely a fault.

#include <algorithm>

#include "explain/rules/parts.h"

namespace bakeoff::explain {
namespace {

constexpr double kUsedRows = 0.2;  // of an embedding, up to which most of a dense update is for nothing
constexpr double kOptimizerShare = 0.15;  // of a step
constexpr double kGrows = 2;  // time of a step's last backward passes over its first, from which on they grow
constexpr double kDenormals = 0.01;  // share of one tensor's numbers
constexpr double kEpochStart = 5;    // steps that the start of an epoch takes

double workers(const Subject& s) {
  const Json found = loader(s, "workers");
  return found.is_number() ? found.get<double>() : 0;
}

Maybe per_item(const Subject& s, int) {
  if (s.profile.wait_share < kSomeWaits || loader(s, "dataset") != "TensorDataset" ||
      loader(s, "default_collate") != true)
    return {};
  Suspicion found{
      .evidence = fmt::format("its rows lie in memory and are fetched one by one; waits: {} of its steps",
                              share(s.profile.wait_share)),
      .most = without(s.profile.wait_share)};
  if (workers(s) == 0) found.booked = of_steps(s.profile.wait_share, s);  // it waits for nothing else
  return found;
}

constexpr double kManyParts = 32;  // tensors of a batch
constexpr double kMoreParts = 4;   // times as many as in the other script

Maybe collated_lists(const Subject& s, int) {
  const Json parts = loader(s, "parts");
  if (s.profile.wait_share < kSomeWaits || loader(s, "default_collate") != true || !parts.is_number())
    return {};
  const double others = first_of(fact_of_other(s, "loaders")).value("parts", 0.0);
  if (parts.get<double>() < kManyParts || (s.other_s > 0 && parts.get<double>() < kMoreParts * others))
    return {};
  Suspicion found{
      .evidence = fmt::format("a batch of its loader consists of {} tensors; waits: {} of its steps",
                              parts.get<int64_t>(), share(s.profile.wait_share)),
      .most = without(s.profile.wait_share)};
  if (workers(s) == 0) found.booked = of_steps(s.profile.wait_share, s);
  return found;
}

// Loader workers of the other script; -1 where it has no loader.
double workers_of_other(const Subject& s) {
  return first_of(fact_of_other(s, "loaders")).value("workers", -1.0);
}

Maybe needless_workers(const Subject& s, int) {
  if (workers(s) >= 1 && workers_of_other(s) == 0)
    return Suspicion{fmt::format("{:.0f} loader workers, and none in the other script", workers(s)), {}, 0};
  if (workers(s) < 1 || (s.profile.wait_share < kSomeWaits && s.profile.epoch_start_s < s.profile.step_s))
    return {};
  return Suspicion{
      fmt::format("{:.0f} loader workers, and waits of {}", workers(s), share(s.profile.wait_share)),
      without(s.profile.wait_share), 0};
}

Maybe too_few_workers(const Subject& s, int processors) {
  if (const double other = workers_of_other(s); workers(s) == 0 && other >= 1)
    return Suspicion{fmt::format("no loader workers, and {:.0f} in the other script", other),
                     {},
                     static_cast<int64_t>(other)};
  if (workers(s) > 0 || loader(s, "workers").is_null() || s.profile.wait_share < kWaits) return {};
  return Suspicion{"no loader workers, and waits of " + share(s.profile.wait_share),
                   without(s.profile.wait_share), std::max(1, processors / 2)};
}

Maybe worker_restart(const Subject& s, int) {
  const bool restarts = workers(s) > 0 && loader(s, "persistent") == false;
  if (!restarts || s.profile.epoch_start_s < kEpochStart * s.profile.step_s) return {};
  return Suspicion{fmt::format("an epoch begins with {:.2f} s, {:.0f} times a step", s.profile.epoch_start_s,
                               s.profile.epoch_start_s / s.profile.step_s)};
}

Maybe small_ops(const Subject& s, int) {
  if (s.number("graphs") > 0 || s.framework() != "torch") return {};
  if (number_of_other(s, "graphs") > 0)
    return Suspicion{"its model runs op by op, and the other script's is compiled"};
  if (s.profile.step_s > kShortStep) return {};
  return Suspicion{fmt::format("a step takes {:.2f} ms for {:.0f} modules, op by op", 1e3 * s.profile.step_s,
                               s.number("modules"))};
}

Maybe loop_of_ops(const Subject& s, int) {
  const Json first = first_of(fact(s, "optimizers"));
  if (!first.contains("fused") || first["fused"] == true) return {};
  if (first_of(fact_of_other(s, "optimizers")).value("fused", Json()) == true)
    return Suspicion{"its optimizer is not fused, and the other script's is"};
  if (s.number("parameter_tensors") < 8 || s.profile.step_s > 0.1) return {};
  return Suspicion{
      fmt::format("its optimizer updates {:.0f} tensors op by op", s.number("parameter_tensors"))};
}

// In a script that ends after a few steps compiling is most of the whole.
Maybe costly_compile(const Subject& s, int) {
  if (!s.whole || s.stepless() || s.number("graphs") < 1) return {};
  double start = 0;
  for (const Phase& phase : s.profile.phases)
    if (phase.key == "set_up" || phase.key == "warm_up") start += phase.seconds;
  return Suspicion{fmt::format("set-up and first steps take {:.1f} s of its {:.1f} s, and it makes {} steps",
                               start, s.profile.total_s, s.profile.steps)};
}

Maybe graph_breaks(const Subject& s, int) {
  if (s.whole || s.number("graphs") < 1) return {};
  return Suspicion{fmt::format("compiled to {:.0f} graphs with {:.0f} graph breaks", s.number("graphs"),
                               s.number("graph_breaks"))};
}

Maybe denormals(const Subject& s, int) {
  if (s.number("denormals") < kDenormals) return {};
  return Suspicion{share(s.number("denormals")) + " of one tensor's numbers are denormal"};
}

Maybe autocast(const Subject& s, int) {
  if (s.text("autocast").empty() || s.text("device") != "cpu") return {};
  return Suspicion{"its forward pass runs in " + s.text("autocast") + " on a CPU"};
}

Maybe full_precision(const Subject& s, int) {
  const auto other = s.other.find("autocast");
  if (!s.text("autocast").empty() || other == s.other.end() || !other->is_string() || *other == "") return {};
  return Suspicion{.evidence = "it computes in float32, and the other script in " + other->get<std::string>(),
                   .value = *other};
}

Maybe half_weights(const Subject& s, int) {
  const Json dtypes = fact(s, "dtypes");
  if (dtypes.empty() || !dtypes.front().is_string() || s.text("device") != "cpu") return {};
  const auto type = dtypes.front().get<std::string>();
  if (type != "float16" && type != "bfloat16") return {};
  return Suspicion{"its parameters are " + type + ", on a CPU"};
}

Maybe anomaly(const Subject& s, int) {
  if (!s.flag("anomaly")) return {};
  return Suspicion{"torch.is_anomaly_enabled()"};
}

Maybe deterministic(const Subject& s, int) {
  if (!s.flag("deterministic")) return {};
  return Suspicion{"deterministic algorithms are asked for"};
}

Maybe no_kernels(const Subject& s, int) {
  const auto found = s.facts().find("mkldnn");
  if (found == s.facts().end() || *found != false) return {};
  return Suspicion{"torch.backends.mkldnn.enabled is False"};
}

Maybe layout(const Subject& s, int) {
  if (s.number("convolutions") < 1 || s.text("layout") != "contiguous") return {};
  return Suspicion{fmt::format("{:.0f} convolutions on N,C,H,W", s.number("convolutions"))};
}

Maybe history(const Subject& s, int) {
  if (!s.flag("history")) return {};
  return Suspicion{fmt::format("memory grows by {:.1f} MB a step: graphs of old losses are kept",
                               s.number("rss_slope_bytes") / 1e6)};
}

Maybe recompiles(const Subject& s, int) {
  auto found = recompiled(s);
  const Json reasons = fact(s, "recompiles");
  if (!found || !reasons.is_object() || reasons.empty()) return {};
  std::string all;
  for (const auto& [function, texts] : reasons.items())
    if (texts.is_array() && !texts.empty() && texts[0].is_string())
      all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", function, texts[0].get<std::string>());
  found->evidence += fmt::format("; what no longer held: {}", all);
  return found;
}

Maybe dense_embedding(const Subject& s, int) {
  const Json table = fact(s, "dense_embedding");
  if (!table.is_object()) return {};
  const double rows = table.value("rows", 0.0), used = table.value("used", 0.0),
               numbers = table.value("numbers", 0.0);
  const auto optimizer = part_of_watched(s, s.number("optimizer_s") * static_cast<double>(s.watched_steps));
  if (rows < 1 || used > kUsedRows * rows || optimizer.value_or(0) < kOptimizerShare) return {};
  const double part =
      *optimizer * std::min(1.0, numbers / std::max(1.0, s.number("parameters"))) * (1 - used / rows);
  return Suspicion{
      .evidence = fmt::format(
          "its embedding of {:.0f} rows gets a dense gradient, in which {:.1f}% of the rows "
          "are not zero, and its optimizer, which goes through all of them, takes {} of its steps",
          rows, 100 * used / rows, share(*optimizer)),
      .most = without(part),
      .booked = part};
}

Maybe grad_in_calls(const Subject& s, int) {
  if (s.seen.kind != "call" || s.number("graphs_of_calls") < 0.5) return {};
  Suspicion found{"it trains nothing, and gradients are enabled in the calls of its model"};
  if (s.other_s <= 0 || number_of_other(s, "graphs_of_calls") > 0) return found;
  found.evidence += ", and not in those of the other script";
  found.booked = at_least(std::max(0.0, more_of_account(s, "model")) / s.mean_s(), s);
  return found;
}

Maybe growing_graph(const Subject& s, int) {
  const Json trend = fact(s, "backward_trend");
  if (!trend.is_object() || !trend.value("retains", false)) return {};
  const double first = trend.value("first_s", 0.0), last = trend.value("last_s", 0.0);
  if (last < kGrows * first) return {};
  const double more = trend.value("more_s", 0.0) * static_cast<double>(s.profile.steps);
  return Suspicion{
      .evidence = fmt::format(
          "of {:.0f} backward passes of a step the first ones take {:.1f} ms each and the last ones "
          "{:.1f} ms: the graph grows, as retain_graph keeps what was before",
          trend.value("passes", 0.0), 1e3 * first, 1e3 * last),
      .most = without(more / s.profile.total_s),
      .line = trend.value("line", int64_t{0}),
      .booked = std::clamp(more / s.profile.total_s, 0.0, 1.0)};
}

constexpr double kSomeWeights = 0.1;

// Weights that are computed from others, as weight_norm's, at each use and not once a step.
Maybe made_weights(const Subject& s, int) {
  const double mine_s = account_s(s, "weights"), more_s = more_of_account(s, "weights");
  if (mine_s < kSomeWeights * s.mean_s() || more_s < mine_s / 2) return {};
  return Suspicion{
      .evidence = fmt::format(
          "weight_norm, spectral_norm or other parametrizations take {} of the time without their backward "
          "pass",
          share(mine_s / s.mean_s())),
      .booked = at_least(more_s / s.mean_s(), s)};
}

constexpr double kPadded = 0.2;

// Columns that are padding in every row of a batch are computed for nothing: layers take time for each of them.
Maybe padded(const Subject& s, int) {
  const double part = s.number("padding"), other = number_of_other(s, "padding");
  if (part < kPadded || (s.other_s > 0 && other > part / 2)) return {};
  const double layers = (account_s(s, "model") + account_s(s, "backward")) / s.mean_s();
  return Suspicion{
      .evidence = fmt::format(
          "the last {} of the columns of its batch hold one value in all rows; layers and backward pass, "
          "which go through them, take {} of the time",
          share(part), share(layers)),
      .most = without(part * layers),
      .booked = at_least(part * layers, s)};
}

constexpr double kLonger = 3;  // times as large as the smallest input

// Tokens are generated one by one, and the model is given all of them for each.
Maybe growing_input(const Subject& s, int) {
  const Json grows = fact(s, "growing_input");
  const double least = grows.is_object() ? grows.value("least", 0.0) : 0,
               most = least > 0 ? grows.value("most", 0.0) : 0;
  if (s.seen.kind != "call" || least < 1 || most < kLonger * least ||
      fact_of_other(s, "growing_input").is_object())
    return {};
  const double part =
      std::clamp(grows.value("more_s", 0.0) / std::max(1e-9, grows.value("mean_s", 0.0)), 0.0, 1.0);
  return Suspicion{
      .evidence = fmt::format(
          "from call to call its input grows, from {:.0f} numbers to {:.0f}; calls with the smallest "
          "inputs are shorter by {}",
          least, most, share(part)),
      .most = without(part),
      .booked = of_steps(part, s)};
}

constexpr double kWasted = 0.5;  // backward passes a step

Maybe unused_gradients(const Subject& s, int) {
  const Json mine = fact(s, "unused_gradients"), other = fact_of_other(s, "unused_gradients");
  if (!mine.is_object()) return {};
  const double passes = mine.value("passes", 0.0);
  const double others = other.is_object() ? other.value("passes", 0.0) : 0;
  if (passes < kWasted || passes < 1.5 * others) return {};
  Suspicion found{
      .evidence = fmt::format(
          "the gradients of {:.2g} backward passes a step are thrown away unused, by the zero_grad in {}",
          passes, s.source.words(mine.value("line", int64_t{0})))};
  if (s.other_s > 0) found.booked = at_least(more_of_backward(s) / s.mean_s(), s);
  return found;
}

// A frozen part of the model through which backward passes go all the same.
Maybe untrained(const Subject& s, int) {
  const Json mine = fact(s, "untrained");
  if (!mine.is_object() || fact_of_other(s, "untrained").is_object()) return {};
  Suspicion found{.evidence = fmt::format(
                      "backward passes make gradients of {} tensors with {} numbers that nothing changes",
                      mine.value("tensors", int64_t{0}), mine.value("numbers", int64_t{0}))};
  if (s.other_s > 0) found.booked = at_least(more_of_backward(s) / s.mean_s(), s);
  return found;
}

Maybe profiled(const Subject& s, int) {
  if (!s.flag("profiler")) return {};
  return Suspicion{"PyTorch's profiler is on"};
}

Maybe checkpoints(const Subject& s, int) {
  if (s.number("checkpoints_per_step") < 0.5) return {};
  const Json lines = fact(s, "lines");
  return Suspicion{.evidence = fmt::format("{:.1f} calls of torch.utils.checkpoint a step",
                                           s.number("checkpoints_per_step")),
                   .line = lines.is_object() ? lines.value("checkpoint", int64_t{0}) : 0};
}

std::vector<Rule> input_rules() {
  return {
      {.id = "R2",
       .key = "per_item",
       .framework = "torch",
       .signal = "a DataLoader over a TensorDataset with the default collate, and waits of at least 5%",
       .cause = "rows in memory are fetched one by one",
       .change = "index the tensors by a whole batch, in place of a DataLoader over a TensorDataset",
       .method = "takes the rows of a batch by one index",
       .thrown = "batched_fetch",
       .place = "DataLoader\\(",
       .suspect = per_item,
       .within = "input"},
      {.id = "R2",
       .key = "collated_lists",
       .framework = "torch",
       .signal =
           "a DataLoader with the default collate whose batch has 32 tensors or more, and waits of at least 5%",
       .cause = "lists of numbers become a tensor for each of their places",
       .change =
           "make tensors or arrays of the lists in the dataset (torch.tensor(row)), once if they lie in memory",
       .method = "",
       .thrown = "",
       .place = "DataLoader\\(",
       .suspect = collated_lists,
       .within = "input"},
      {.id = "R3",
       .key = "workers",
       .framework = "torch",
       .signal =
           "loader workers, and waits of at least 5%, epochs that begin late, or a faster script that has "
           "none",
       .cause = "loader workers cost more than they save",
       .change = "num_workers=0, and no persistent_workers, prefetch_factor or multiprocessing_context",
       .method = "loads in the process itself",
       .thrown = "workers",
       .place = "num_workers",
       .suspect = needless_workers,
       .within = "input",
       .from =
           R"(num_workers\s*=\s*[0-9]+(, *persistent_workers *= *True)?(, *prefetch_factor *= *[0-9]+)?(, *persistent_workers *= *True)?)",
       .to = "num_workers={}"},
      {.id = "R1",
       .key = "no_workers",
       .framework = "torch",
       .signal = "a DataLoader without workers, and waits of at least 15%, or a faster script that has some",
       .cause = "one process loads and trains in turn",
       .change = "num_workers={}",
       .method = "loads in other processes",
       .thrown = "workers",
       .place = "DataLoader\\(",
       .suspect = too_few_workers,
       .within = "input",
       .from = R"((DataLoader\(.+)\)(:?)\s*$)",
       .to = "$1, num_workers={})$2",
       .tries =
           [](const Subject& s, int processors) {
             return only(!loader(s, "workers").is_null() && workers(s) == 0, std::max(1, processors / 2));
           }},
      {.id = "R4",
       .key = "worker_restart",
       .framework = "torch",
       .signal = "an epoch begins with the time of five steps or more, and workers do not persist",
       .cause = "loader workers start again at each epoch",
       .change = "persistent_workers=True",
       .method = "keeps the workers",
       .thrown = "persistent_workers",
       .place = "num_workers",
       .suspect = worker_restart,
       .from = R"((num_workers\s*=\s*[0-9]+))",
       .to = "$1, persistent_workers=True"},
  };
}

std::vector<Rule> dispatch_rules() {
  return {
      {.id = "R6",
       .key = "small_ops",
       .framework = "torch",
       .signal = "nothing is compiled, and a step takes at most 20 ms, or the faster script is compiled",
       .cause = "its model is not compiled: ops are started one by one",
       .change = "torch.compile(model)",
       .method = "compiles the model",
       .thrown = "compile",
       .numbers = true,
       .suspect = small_ops,
       .tries = [](const Subject& s, int) { return only(s.number("graphs") == 0); }},
      {.id = "R6",
       .key = "optimizer_ops",
       .framework = "torch",
       .signal =
           "an optimizer that is not fused, and eight parameter tensors or more, or a faster script whose "
           "optimizer is",
       .cause = "the optimizer updates tensors op by op",
       .change = "fused=True in the optimizer",
       .method = "makes the optimizer with fused=True",
       .thrown = "fused",
       .place = "optim\\.\\w+\\(",
       .numbers = true,
       .suspect = loop_of_ops,
       .from = R"((optim\.\w+\(.+)\)\s*$)",
       .to = "$1, fused=True)"},
      {.id = "R8",
       .key = "compiled",
       .framework = "torch",
       .signal = "the model is compiled",
       .cause = "the compiled model is slower than the plain one",
       .change = "no torch.compile",
       .method = "runs the model as it is",
       .thrown = "no_compile",
       .place = "\\.compile\\(",
       .numbers = true,
       .suspect = graph_breaks},
      {.id = "R9",
       .key = "compile_cost",
       .framework = "torch",
       .signal = "the model is compiled, and the script ends after fewer than 40 steps",
       .cause = "compiling takes longer than it saves",
       .change = "no torch.compile in so short a run",
       .method = "runs the model as it is",
       .thrown = "no_compile",
       .place = "\\.compile\\(",
       .numbers = true,
       .suspect = costly_compile},
      {.id = "R12",
       .key = "history",
       .framework = "torch",
       .signal = "resident memory grows from step to step, and so do the graphs that are kept",
       .cause = "graphs of old steps are kept in memory",
       .change = "keep loss.item() or loss.detach(), not the loss",
       .method = "frees the graph of a loss after its backward",
       .thrown = "free_graph",
       .place = "append\\(|\\+= ?\\w*loss",
       .suspect = history},
      {.id = "R7",
       .key = "recompiles",
       .framework = "torch",
       .signal =
           "three or more compilations after the first steps, and guards of compiled functions that failed",
       .cause = "a compiled function is compiled again and again, as what it was compiled for changes",
       .change =
           "give it tensors in place of Python numbers that change, keep shapes equal by padding, or mark them: "
           "torch._dynamo.mark_dynamic(x, 0)",
       .method = "",
       .thrown = "",
       .place = "torch\\.compile|\\.compile\\(",
       .suspect = recompiles,
       .within = "shapes"},
      {.id = "R28",
       .key = "dense_embedding",
       .framework = "torch",
       .signal =
           "an embedding of at least a million numbers whose dense gradient has at most 20% rows that are not zero, and "
           "an optimizer that takes at least 15% of a step",
       .cause = "its optimizer updates every row of a large embedding, of which a batch uses few",
       .change =
           "nn.Embedding(..., sparse=True), with SparseAdam or SGD for it; rows that a batch does not use then keep "
           "their values and their state",
       .method = "",
       .thrown = "",
       .place = "Embedding\\(",
       .numbers = true,
       .suspect = dense_embedding},
      {.id = "R12",
       .key = "grad_in_calls",
       .framework = "torch",
       .signal = "nothing trains, and gradients are enabled in at least half of the calls of its model",
       .cause = "calls of its model keep what a backward pass would need",
       .change = "torch.inference_mode() or torch.no_grad() around the calls",
       .method = "calls the model under torch.no_grad()",
       .thrown = "no_grad",
       .suspect = grad_in_calls},
      {.id = "R30",
       .key = "made_weights",
       .framework = "torch",
       .signal =
           "parametrizations take at least 10% of the time, and of a pair twice as much as in the other script",
       .cause = "weights are computed again from other weights at each use",
       .change =
           "with torch.nn.utils.parametrize.cached(): around the forward pass, which computes them once",
       .method = "",
       .thrown = "",
       .place = "weight_norm\\(|spectral_norm\\(|parametriz",
       .suspect = made_weights},
      {.id = "R28",
       .key = "padded",
       .framework = "torch",
       .signal =
           "at least 20% of the last columns of a batch of whole numbers hold one value in all rows, and of a pair twice as many as "
           "in the other script",
       .cause = "its batches are padded far beyond their longest row",
       .change = "pad each batch to the longest of its rows, and put rows of like length into one batch",
       .method = "",
       .thrown = "",
       .place = "pad|MAX_LEN|max_len",
       .suspect = padded},
      {.id = "R30",
       .key = "growing_input",
       .framework = "torch",
       .signal =
           "nothing trains, and the input of a model grows from call to call to 3 times its size or more",
       .cause = "each call of its model computes again what earlier calls computed, as its input grows",
       .change =
           "keep keys and values of what was computed (a cache: use_cache=True, past_key_values), and give the model what is "
           "new alone",
       .method = "",
       .thrown = "",
       .numbers = true,
       .suspect = growing_input},
      {.id = "R12",
       .key = "untrained",
       .framework = "torch",
       .signal =
           "parameters get gradients, and no optimizer holds them; without any optimizer: they stay what they are",
       .cause = "backward passes go through parameters that nothing trains",
       .change =
           "torch.no_grad() around the part that stays as it is, or requires_grad_(False) for its parameters",
       .method = "",
       .thrown = "",
       .place = "\\.backward\\(",
       .suspect = untrained},
      {.id = "R12",
       .key = "unused_gradients",
       .framework = "torch",
       .signal = "zero_grad throws away gradients that no optimizer used, of at least every second step",
       .cause = "backward passes go through a model whose gradients nothing uses",
       .change =
           "detach what that model made (fake.detach()), or make it under torch.no_grad(), where it is not trained",
       .method = "",
       .thrown = "",
       .place = "\\.backward\\(",
       .suspect = unused_gradients},
      {.id = "R12",
       .key = "growing_graph",
       .framework = "torch",
       .signal =
           "at least 8 backward passes a step with retain_graph, the last ones at least twice as long as the first",
       .cause = "its graph grows from one backward pass to the next, and each goes through all of it",
       .change =
           "detach what one pass takes over from the last one (h = h.detach()) and leave retain_graph out: "
           "gradients then end there, so the model learns something else",
       .method = "",
       .thrown = "",
       .place = "retain_graph",
       .numbers = true,
       .suspect = growing_graph},
  };
}

std::vector<Rule> arithmetic_rules() {
  return {
      {.id = "R12",
       .key = "checkpoints",
       .framework = "torch",
       .signal = "torch.utils.checkpoint in at least every second step",
       .cause = "parts of the model are computed twice to save memory",
       .change = "no torch.utils.checkpoint where memory suffices",
       .method = "keeps all activations",
       .thrown = "no_checkpoints",
       .place = "checkpoint\\(",
       .suspect = checkpoints},
      {.id = "R17",
       .key = "profiler",
       .framework = "torch",
       .signal = "PyTorch's profiler is on",
       .cause = "PyTorch's profiler records each op",
       .change = "no torch.profiler in the run that counts",
       .method = "leaves it off",
       .thrown = "no_profiler",
       .place = "profile\\(",
       .suspect = profiled},
      {.id = "R13",
       .key = "denormals",
       .framework = "torch",
       .signal = "at least 1% of one tensor's numbers are denormal",
       .cause = "denormal numbers slow its arithmetic",
       .change = "torch.set_flush_denormal(True)",
       .method = "sets denormal numbers to 0",
       .thrown = "flush_denormals",
       .numbers = true,
       .suspect = denormals,
       .tries = [](const Subject&, int) { return only(true); }},
      {.id = "R14",
       .key = "threads",
       .framework = "torch",
       .signal = "it computes with more or fewer threads than the machine has processors, or than the faster "
                 "script",
       .cause = "it computes with too few or too many threads",
       .change = "torch.set_num_threads({})",
       .method = "sets the number of threads",
       .thrown = "threads",
       .place = "set_num_threads|NUM_THREADS",
       .numbers = true,
       .suspect = other_threads,
       .from = R"(set_num_threads\(\s*[0-9]+\s*\))",
       .to = "set_num_threads({})",
       .tries = [](const Subject& s,
                   int processors) { return only(processors > 1 && s.number("threads") == processors, 1); }},
      {.id = "R16",
       .key = "autocast",
       .framework = "torch",
       .signal = "autocast on a CPU",
       .cause = "this CPU emulates the half precision it asks for",
       .change = "no autocast",
       .method = "computes in float32",
       .thrown = "no_autocast",
       .place = "autocast",
       .numbers = true,
       .suspect = autocast},
      {.id = "R16",
       .key = "half_weights",
       .framework = "torch",
       .signal = "parameters in half precision on a CPU",
       .cause = "this CPU computes in half precision more slowly than in float32",
       .change = "float32: no half(), no bfloat16(), no dtype=torch.float16",
       .method = "computes in float32",
       .thrown = "no_half",
       .place = "float16|bfloat16|half\\(",
       .numbers = true,
       .suspect = half_weights},
      {.id = "R19",
       .key = "full_precision",
       .framework = "torch",
       .signal = "float32, where the faster script computes in half precision",
       .cause = "it computes in float32, the other script in half precision",
       .change = "torch.autocast around the forward pass, where half precision is wanted",
       .method = "computes its forward pass under autocast",
       .thrown = "autocast",
       .numbers = true,
       .suspect = full_precision},
      {.id = "R17",
       .key = "anomaly",
       .framework = "torch",
       .signal = "anomaly detection is on",
       .cause = "anomaly detection is on",
       .change = "no torch.autograd.set_detect_anomaly(True)",
       .method = "leaves it off",
       .thrown = "no_anomaly",
       .place = "detect_anomaly",
       .suspect = anomaly,
       .from = R"(set_detect_anomaly\(\s*True)",
       .to = "set_detect_anomaly(False"},
      {.id = "R17",
       .key = "deterministic",
       .framework = "torch",
       .signal = "deterministic algorithms are asked for",
       .cause = "deterministic algorithms are slower here",
       .change = "no use_deterministic_algorithms(True)",
       .method = "leaves the choice of algorithms to the framework",
       .thrown = "nondeterministic",
       .place = "deterministic",
       .numbers = true,
       .suspect = deterministic,
       .from = R"(use_deterministic_algorithms\(\s*True)",
       .to = "use_deterministic_algorithms(False"},
      {.id = "R17",
       .key = "mkldnn",
       .framework = "torch",
       .signal = "the CPU's kernel library is switched off",
       .cause = "the CPU's fast kernels are switched off",
       .change = "no torch.backends.mkldnn.enabled = False",
       .method = "leaves them on",
       .thrown = "mkldnn",
       .place = "mkldnn",
       .numbers = true,
       .suspect = no_kernels,
       .from = R"(enabled\s*=\s*False)",
       .to = "enabled = True"},
      {.id = "R28",
       .key = "layout",
       .framework = "torch",
       .signal = "convolutions whose weights lie as N,C,H,W",
       .cause = "its convolutions want channels last",
       .change = "model.to(memory_format=torch.channels_last)",
       .method = "turns the model's memory format",
       .thrown = "channels_last",
       .numbers = true,
       .suspect = layout},
  };
}

const std::map<std::string, const char*> kTorchRemedies = {
    {"R1",
     "Give the DataLoader `num_workers` of 1 to the number of processors, or keep small data as "
     "tensors in memory and index them."},
    {"R2",
     "`for rows in torch.randperm(n).split(batch): x[rows], y[rows]`, or a dataset with "
     "`__getitems__` that takes all rows at once."},
    {"R3", "`num_workers=0` where preparing a batch takes less than a millisecond."},
    {"R4", "`persistent_workers=True` in the DataLoader; `torch.save` once in some epochs."},
    {"R5", "Validate every few epochs; compute metrics on the device and read them once an epoch."},
    {"R6",
     "`torch.compile(model)`, `fused=True` in the optimizer, larger batches, on a GPU "
     "`mode=\"reduce-overhead\"`."},
    {"R7", "`drop_last=True`, padding to few lengths, `torch.compile(model, dynamic=True)`."},
    {"R8",
     "Take `.item()`, `print` and data-dependent `if` out of the model (`TORCH_LOGS=graph_breaks` "
     "shows where it breaks), or do not compile."},
    {"R9", "No `torch.compile` for runs of few steps; a warm cache on disk shortens the next start."},
    {"R10", "`nn.LSTM` or `nn.GRU` over the whole sequence in place of `nn.LSTMCell` in a loop."},
    {"R11", "Add losses up as tensors and call `.item()` every hundred steps; no `.cpu()` in the loop."},
    {"R12",
     "`total += loss.item()` or `loss.detach()`, not `total += loss`; `torch.no_grad()` for "
     "validation; no `retain_graph=True`; checkpointing only where memory is short."},
    {"R13", "`torch.set_flush_denormal(True)` at the start."},
    {"R14",
     "`torch.set_num_threads(n)` or `OMP_NUM_THREADS=n`; n is the number of processors of the "
     "process, and 1 for very small models."},
    {"R16", "No `torch.autocast(\"cpu\")` on processors without AMX or AVX512-BF16; on a GPU it stays."},
    {"R17",
     "No `set_detect_anomaly(True)`, profiler, `use_deterministic_algorithms(True)`; print and log "
     "every hundred steps."},
    {"R18", "`torch.cuda.synchronize()` before the clock is read, at the start and at the end."},
    {"R20", "Compare `reduction`, `eps` (1e-8 in Adam), `betas`, `weight_decay`, `momentum` of batch norm."},
    {"R21", "`loss(model(x).squeeze(-1), y)`, or targets of shape (N, 1)."},
    {"R22", "No softmax at the end of the model: `nn.CrossEntropyLoss` takes logits."},
    {"R23", "`batch_first=True` where the input is (batch, time, features); the default is time first."},
    {"R24",
     "The order is `zero_grad()`, `backward()`, `step()`; give the optimizer the parameters of the "
     "model that is trained; no `detach()` on the way to the loss."},
    {"R25", "`(loss / number_of_parts).backward()`; with sequences of several lengths weight by tokens."},
    {"R28", "`model.to(memory_format=torch.channels_last)` for convolutions, `torch.compile` to fuse ops."},
};

}  // namespace

std::vector<Rule> torch_rules() {
  std::vector<Rule> all = input_rules();
  for (auto part : {dispatch_rules, arithmetic_rules}) std::ranges::move(part(), std::back_inserter(all));
  return all;
}

Remedies torch_remedies() { return {"PyTorch", kTorchRemedies}; }

}  // namespace bakeoff::explain
