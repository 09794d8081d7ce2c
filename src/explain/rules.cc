#include "explain/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

namespace bakeoff::explain {
namespace {

using Json = nlohmann::json;
using Maybe = std::optional<Suspicion>;

constexpr double kWaits = 0.15;  // share of steps from which on waiting is a signal
constexpr double kSomeWaits = 0.05;
constexpr double kDenormals = 0.01;   // share of one tensor's numbers
constexpr double kShortStep = 0.020;  // s, of a step in which dispatch may count
constexpr double kPrints = 10;        // bytes a step
constexpr double kEpochStart = 5;     // steps that the start of an epoch takes

bool is(const Subject& s, const char* framework) { return s.framework() == framework; }
bool is_keras(const Subject& s) { return is(s, "keras") || is(s, "tf_keras"); }

std::string share(double value) { return fmt::format("{:.0f}%", 100 * value); }

double without(double part) { return 1 / std::max(0.01, 1 - part); }

// What one of its loaders says; null where there is none.
Json loader(const Subject& s, const char* fact) {
  const auto found = s.facts().find("loaders");
  if (found == s.facts().end() || !found->is_array() || found->empty()) return nullptr;
  return found->front().value(fact, Json());
}

double workers(const Subject& s) {
  const Json found = loader(s, "workers");
  return found.is_number() ? found.get<double>() : 0;
}

Maybe waits(const Subject& s, int) {
  if (s.profile.wait_share < kWaits) return {};
  return Suspicion{"waiting for data takes " + share(s.profile.wait_share) + " of its steps",
                   without(s.profile.wait_share)};
}

Maybe per_item(const Subject& s, int) {
  if (!is(s, "torch") || s.profile.wait_share < kSomeWaits || loader(s, "dataset") != "TensorDataset" ||
      loader(s, "default_collate") != true)
    return {};
  return Suspicion{fmt::format("its rows lie in memory and are fetched one by one; waits: {} of its steps",
                               share(s.profile.wait_share)),
                   without(s.profile.wait_share)};
}

Maybe needless_workers(const Subject& s, int) {
  if (workers(s) < 1 || (s.profile.wait_share < kSomeWaits && s.profile.epoch_start_s < s.profile.step_s))
    return {};
  return Suspicion{
      fmt::format("{:.0f} loader workers, and waits of {}", workers(s), share(s.profile.wait_share)),
      without(s.profile.wait_share), 0};
}

Maybe too_few_workers(const Subject& s, int processors) {
  if (!is(s, "torch") || workers(s) > 0 || loader(s, "workers").is_null() || s.profile.wait_share < kWaits)
    return {};
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
  if (!is(s, "torch") || s.number("graphs") > 0 || s.profile.step_s > kShortStep) return {};
  return Suspicion{fmt::format("a step takes {:.2f} ms for {:.0f} modules, op by op", 1e3 * s.profile.step_s,
                               s.number("modules"))};
}

Maybe loop_of_ops(const Subject& s, int) {
  if (!is(s, "torch") || s.number("parameter_tensors") < 8 || s.profile.step_s > 0.1) return {};
  const auto found = s.facts().find("optimizers");
  if (found == s.facts().end() || found->empty()) return {};
  const Json& first = found->front();
  if (first.value("fused", Json()) == true || !first.contains("fused")) return {};
  return Suspicion{
      fmt::format("its optimizer updates {:.0f} tensors op by op", s.number("parameter_tensors"))};
}

Maybe one_step_calls(const Subject& s, int) {
  if (!is_keras(s) || s.profile.step_s > kShortStep || s.number("steps_per_execution", 1) > 1 ||
      s.flag("run_eagerly") || s.seen.kind != "fit")
    return {};
  return Suspicion{
      fmt::format("a step takes {:.2f} ms, and Keras calls each by itself", 1e3 * s.profile.step_s), {}, 16};
}

Maybe recompiles(const Subject& s, int) {
  if (s.seen.compiles < 3 || s.seen.compiles * 20 < s.profile.steps) return {};
  return Suspicion{
      fmt::format("{} compilations in {} steps after the first", s.seen.compiles, s.profile.steps),
      without(1e-9 * static_cast<double>(s.seen.compile_ns) / s.profile.total_s)};
}

Maybe retraces(const Subject& s, int processors) {
  if (!is(s, "tensorflow")) return {};
  return recompiles(s, processors);
}

Maybe shapes_vary(const Subject& s, int processors) {
  if (is(s, "tensorflow")) return {};
  return recompiles(s, processors);
}

Maybe graph_breaks(const Subject& s, int) {
  if (s.number("graphs") < 1) return {};
  return Suspicion{fmt::format("compiled to {:.0f} graphs with {:.0f} graph breaks", s.number("graphs"),
                               s.number("graph_breaks"))};
}

Maybe denormals(const Subject& s, int) {
  if (s.number("denormals") < kDenormals) return {};
  return Suspicion{share(s.number("denormals")) + " of one tensor's numbers are denormal"};
}

Maybe thread_count(const Subject& s, int processors) {
  const double threads = s.number("threads", processors);
  if (threads == processors || threads < 1) return {};
  return Suspicion{fmt::format("{:.0f} threads on {} processors", threads, processors), {}, processors};
}

Maybe autocast(const Subject& s, int) {
  if (!is(s, "torch") || s.text("autocast").empty() || s.text("device") != "cpu") return {};
  return Suspicion{"its forward pass runs in " + s.text("autocast") + " on a CPU"};
}

Maybe anomaly(const Subject& s, int) {
  if (!s.flag("anomaly")) return {};
  return Suspicion{"torch.is_anomaly_enabled()"};
}

Maybe eager(const Subject& s, int) {
  if (!s.flag("run_eagerly")) return {};
  return Suspicion{"functions run op by op in Python"};
}

Maybe checked_numbers(const Subject& s, int) {
  if (!s.flag("check_numerics")) return {};
  return Suspicion{"every op's numbers are checked"};
}

Maybe debug_nans(const Subject& s, int) {
  if (!s.flag("debug_nans")) return {};
  return Suspicion{"jax_debug_nans is on"};
}

Maybe jit_off(const Subject& s, int) {
  if (!s.flag("disable_jit")) return {};
  return Suspicion{"jax_disable_jit is on"};
}

Maybe blocks(const Subject& s, int) {
  if (s.number("blocks_per_step") < 0.5) return {};
  return Suspicion{fmt::format("waits for its device {:.1f} times a step", s.number("blocks_per_step"))};
}

Maybe deterministic(const Subject& s, int) {
  if (!s.flag("deterministic")) return {};
  return Suspicion{"deterministic algorithms are asked for"};
}

Maybe prints(const Subject& s, int) {
  if (s.output_bytes < kPrints || s.profile.step_s > 0.1) return {};
  return Suspicion{fmt::format("it prints {:.0f} bytes a step", s.output_bytes)};
}

Maybe progress_bar(const Subject& s, int processors) {
  if (!is_keras(s) || s.text("verbose") == "0") return {};
  return prints(s, processors);
}

Maybe collections(const Subject& s, int) {
  const double each =
      static_cast<double>(s.seen.collections) / static_cast<double>(std::max<int64_t>(1, s.profile.steps));
  if (each < 0.2) return {};
  return Suspicion{fmt::format("{:.1f} full garbage collections a step", each)};
}

Maybe layout(const Subject& s, int) {
  if (s.number("convolutions") < 1 || s.text("layout") != "contiguous") return {};
  return Suspicion{fmt::format("{:.0f} convolutions on N,C,H,W", s.number("convolutions"))};
}

Maybe double_precision(const Subject& s, int) {
  const auto found = s.facts().find("dtypes");
  if (found == s.facts().end() || !found->is_array() || found->empty() || found->front() != "float64")
    return {};
  return Suspicion{"its parameters are float64"};
}

Maybe no_xla(const Subject& s, int) {
  const bool keras = is(s, "keras") && s.text("backend") == "tensorflow" && !s.flag("jit_compile");
  if (!keras && !(is(s, "tf_keras") && !s.flag("jit_compile"))) return {};
  if (s.seen.kind != "fit" || s.flag("run_eagerly")) return {};
  return Suspicion{"its step is a TensorFlow graph without XLA"};
}

Maybe xla(const Subject& s, int) {
  if (!is_keras(s) || !s.flag("jit_compile") || s.text("backend") == "jax") return {};
  return Suspicion{"its step is compiled by XLA"};
}

Maybe validation(const Subject& s, int) {
  if (!s.flag("validation") || s.profile.epoch_start_s < s.profile.step_s) return {};
  return Suspicion{
      fmt::format("each epoch ends with a validation; epochs begin {:.2f} s late", s.profile.epoch_start_s)};
}

Maybe callbacks(const Subject& s, int) {
  const auto found = s.facts().find("callbacks");
  if (found == s.facts().end() || !found->is_array() || found->empty()) return {};
  return Suspicion{fmt::format("callbacks of its own: {}", found->dump())};
}

const std::vector<Rule> kRules = {
    {"R1", "input", "it waits for data", "prepare batches ahead of time, or keep them in memory",
     "gives the first batch again and again", "cached_batch", "", true, waits},
    {"R2", "per_item", "rows in memory are fetched one by one",
     "index the tensors by a whole batch, in place of a DataLoader over a TensorDataset",
     "takes the rows of a batch by one index", "batched_fetch", "DataLoader\\(", false, per_item, "input"},
    {"R3", "workers", "loader workers cost more than they do", "num_workers=0", "loads in the process itself",
     "workers", "num_workers", false, needless_workers, "input"},
    {"R1", "no_workers", "one process loads and trains in turn", "num_workers={}", "loads in other processes",
     "workers", "DataLoader\\(", false, too_few_workers, "input"},
    {"R4", "worker_restart", "loader workers start again at each epoch", "persistent_workers=True",
     "keeps the workers", "persistent_workers", "num_workers", false, worker_restart},
    {"R5", "validation", "validation takes part of every epoch", "validate less often: validation_freq",
     "leaves validation out", "no_validation", "validation_", false, validation},
    {"R5", "callbacks", "callbacks of its own take time", "call them less often", "leaves them out",
     "no_callbacks", "callbacks", false, callbacks},
    {"R6", "small_ops", "many small ops are started one by one", "torch.compile(model)", "compiles the model",
     "compile", "", true, small_ops},
    {"R6", "optimizer_ops", "the optimizer updates tensors op by op", "fused=True in the optimizer",
     "makes the optimizer with fused=True", "fused", "optim\\.\\w+\\(", true, loop_of_ops},
    {"R6", "one_step_calls", "every step is a call of its own", "steps_per_execution={} in compile()",
     "makes several steps in one call", "steps_per_execution", "\\.compile\\(", false, one_step_calls},
    {"R7", "retraces", "its function is traced again and again",
     "tf.function(reduce_retracing=True), and tensors "
     "in place of Python numbers",
     "relaxes the shapes that it was traced for", "relax_shapes", "tf\\.function", false, retraces},
    {"R7", "shapes", "new shapes are compiled again and again", "keep shapes equal: drop_last=True, padding",
     "gives the first batch again and again", "cached_batch", "", true, shapes_vary},
    {"R8", "compiled", "the compiled model is slower than the plain one", "no torch.compile",
     "runs the model as it is", "no_compile", "\\.compile\\(", true, graph_breaks},
    {"R11", "blocks", "it waits for its results at each step", "read results every 100 steps, not each",
     "does not wait", "no_block", "block_until_ready", false, blocks},
    {"R13", "denormals", "denormal numbers slow its arithmetic", "torch.set_flush_denormal(True)",
     "sets denormal numbers to 0", "flush_denormals", "", true, denormals},
    {"R14", "threads", "its number of threads does not fit the machine", "torch.set_num_threads({})",
     "sets the number of threads", "threads", "num_threads|NUM_THREADS|_threads", true, thread_count},
    {"R16", "autocast", "this CPU emulates the half precision it asks for", "no autocast",
     "computes in float32", "no_autocast", "autocast", true, autocast},
    {"R17", "anomaly", "anomaly detection is on", "no torch.autograd.set_detect_anomaly(True)",
     "leaves it off", "no_anomaly", "detect_anomaly", false, anomaly},
    {"R17", "eager", "it runs eagerly, op by op", "no run_eagerly=True, no run_functions_eagerly(True)",
     "runs compiled functions", "no_eager", "eager", true, eager},
    {"R17", "check_numerics", "every op's numbers are checked", "no tf.debugging.enable_check_numerics()",
     "leaves the checks out", "no_check_numerics", "check_numerics", false, checked_numbers},
    {"R17", "debug_nans", "every result is checked for NaN", "no jax_debug_nans", "leaves the checks out",
     "no_debug_nans", "debug_nans", false, debug_nans},
    {"R17", "jit_off", "compilation is switched off", "no jax_disable_jit", "compiles", "jit", "disable_jit",
     true, jit_off},
    {"R17", "deterministic", "deterministic algorithms are slower here",
     "no use_deterministic_algorithms(True)", "leaves the choice to PyTorch", "nondeterministic",
     "deterministic", true, deterministic},
    {"R17", "prints", "it prints at each step", "print every 100 steps", "prints nothing", "no_print",
     "print\\(", false, prints},
    {"R17", "progress_bar", "its progress bar is drawn at each step", "verbose=0 or 2", "draws none",
     "silent", "\\.fit\\(", false, progress_bar, "prints"},
    {"R17", "collections", "it collects garbage at each step", "no gc.collect() in the loop",
     "collects nothing", "no_collect", "gc\\.collect", false, collections},
    {"R19", "float64", "it computes in float64", "float32", "computes in float32", "float32",
     "float64|double\\(", true, double_precision},
    {"R28", "layout", "its convolutions want channels last", "model.to(memory_format=torch.channels_last)",
     "turns the model's memory format", "channels_last", "", true, layout},
    {"R28", "no_xla", "XLA would fuse its ops", "jit_compile=True in compile()", "compiles with XLA",
     "jit_compile", "\\.compile\\(", true, no_xla},
    {"R8", "xla", "XLA makes it slower", "jit_compile=False in compile()", "compiles without XLA",
     "no_jit_compile", "jit_compile|\\.compile\\(", true, xla},
};

int64_t line_of(const std::string& source, const std::string& place) {
  if (place.empty()) return 0;
  const std::regex wanted(place);
  int64_t line = 1;
  for (size_t begin = 0; begin < source.size(); ++line) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    const std::string text = source.substr(begin, std::min<size_t>(end - begin, 1000));
    const size_t first = text.find_first_not_of(" \t");
    const bool comment = first != std::string::npos && text[first] == '#';
    if (!comment && !text.starts_with("import ") && !text.starts_with("from ") &&
        std::regex_search(text, wanted))
      return line;
    begin = end + 1;
  }
  return 0;
}

}  // namespace

const std::vector<Rule>& rules() { return kRules; }

std::vector<Suspect> suspects(const Subject& subject, int processors) {
  std::vector<Suspect> found;
  for (const Rule& rule : kRules) {
    if (auto suspicion = rule.suspect(subject, processors))
      found.push_back({&rule, std::move(*suspicion), line_of(subject.source, rule.place)});
  }
  std::ranges::stable_sort(found, std::greater<>{},
                           [](const Suspect& s) { return s.suspicion.most.value_or(1.0); });
  return found;
}

}  // namespace bakeoff::explain
