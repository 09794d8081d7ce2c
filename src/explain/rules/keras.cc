// Keras 2 and 3 on any backend. Most rules concern fit(), whose facts both generations have (by_fit).
// Training loops of the user's own are left to the rules of the backend.

#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "explain/rules/parts.h"

namespace bakeoff::explain {
namespace {

constexpr double kManyBatches = 8;    // of a call of predict
constexpr double kShortEpoch = 4;     // of an epoch, up to which its start may take most of it
constexpr double kMuchOfEpoch = 0.2;  // of the time, from which on starts of epochs are told
constexpr double kDrawnStep = 0.005;  // s, of a step that a progress bar may lengthen

// Both generations of Keras have these facts; plain loops of its backends have not.
bool by_fit(const Subject& s) { return s.seen.kind == "fit"; }

Maybe one_step_calls(const Subject& s, int) {
  const double mine = s.number("steps_per_execution", 1), other = number_of_other(s, "steps_per_execution");
  if (by_fit(s) && other > mine && !s.flag("run_eagerly") && !s.uses("torch"))
    return Suspicion{fmt::format("{:.0f} steps a call, and {:.0f} in the other script", mine, other),
                     {},
                     static_cast<int64_t>(other)};
  if (!by_fit(s) || s.profile.step_s > kShortStep || s.number("steps_per_execution", 1) > 1 ||
      s.flag("run_eagerly") || s.uses("torch"))
    return {};
  return Suspicion{
      fmt::format("a step takes {:.2f} ms, and each is a call of its own", 1e3 * s.profile.step_s), {}, 16};
}

Maybe progress_bar(const Subject& s, int) {
  const std::string verbose = s.text("verbose");
  if (!by_fit(s) || verbose.empty() || verbose == "0" || verbose == "2" || s.profile.step_s > kDrawnStep)
    return {};
  return Suspicion{
      fmt::format("verbose={} draws a bar at each step of {:.1f} ms", verbose, 1e3 * s.profile.step_s)};
}

Maybe no_xla(const Subject& s, int) {
  if (!by_fit(s) || s.text("backend") != "tensorflow" || s.flag("jit_compile") || s.flag("run_eagerly"))
    return {};
  return Suspicion{"its step is a graph without XLA"};
}

Maybe mixed(const Subject& s, int) {
  if (s.text("dtype_policy").find("mixed_") == std::string::npos || s.text("device") != "cpu") return {};
  return Suspicion{"its layers compute by the policy " + s.text("dtype_policy") + " on a CPU"};
}

Maybe xla(const Subject& s, int) {
  if (!by_fit(s) || !s.flag("jit_compile") || s.text("backend") == "jax") return {};
  return Suspicion{"its step is compiled by XLA"};
}

Maybe eager_fit(const Subject& s, int) {
  if (!by_fit(s) || !s.flag("run_eagerly") || s.uses("tensorflow")) return {};
  return Suspicion{"run_eagerly=True"};
}

Maybe validation(const Subject& s, int) {
  if (!s.flag("validation") || s.profile.epoch_start_s < s.profile.step_s) return {};
  const double spent_s = s.number("validation_s") * static_cast<double>(s.watched_steps);
  if (s.watched_steps > 0 && spent_s == 0) return {};  // as validation_freq says
  return Suspicion{.evidence = fmt::format("epochs end with a validation, and begin {:.2g} s late",
                                           s.profile.epoch_start_s),
                   .booked = spent_s > 0 ? part_of_watched(s, spent_s) : std::nullopt};
}

Maybe callbacks(const Subject& s, int) {
  const Json found = fact(s, "callbacks");
  if (found.empty()) return {};
  return Suspicion{fmt::format("callbacks of its own: {}", dump(found))};
}

// Batches of a call of predict; 0: not known.
double predicted_batches(const Subject& s) {
  const Json rows = fact(s, "rows");
  const double batch = s.number("predict_batch");
  return batch > 0 && rows.is_object() ? std::ceil(rows.value("model.predict", 0.0) / batch) : 0;
}

Maybe predicts(const Subject& s, int) {
  if (predicted_batches(s) > 1) return {};
  return called(s, {"model.predict"});
}

// Of two scripts that predict: what this one spends on it beyond the other's is booked.
Maybe predict_batches(const Subject& s, int) {
  const double batches = predicted_batches(s), other = number_of_other(s, "predict_batch");
  if (batches < kManyBatches || (other > 0 && other < 2 * s.number("predict_batch"))) return {};
  auto found = called(s, {"model.predict"});
  if (!found) return {};
  found->evidence +=
      fmt::format(", each in {:.0f} batches of {:.0f} rows", batches, s.number("predict_batch"));
  const double size = other > 0 ? other : s.number("predict_batch") * std::min(batches, kManyBatches * 4);
  found->value = static_cast<int64_t>(size);
  const auto seconds = [](const Json& of) { return of.is_object() ? of.value("model.predict", 0.0) : 0; };
  const double mine_s = seconds(fact(s, "call_seconds_per_step")),
               other_s = seconds(fact_of_other(s, "call_seconds_per_step"));
  if (found->booked && other <= 0 && s.other_s > 0)  // the other script predicts in another way
    found->booked = std::min(*found->booked, at_least(std::min(1.0, gap_s(s) / s.mean_s()), s));
  else if (other <= 0 || mine_s <= 0)
    found->booked.reset();
  else if (found->booked)
    *found->booked *= std::max(0.0, 1 - other_s / mine_s);
  return found;
}

Maybe fits(const Subject& s, int) {
  if (!by_fit(s) || s.number("fits_per_step") < kOnce) return {};
  return Suspicion{fmt::format("{:.1f} calls of fit a step", s.number("fits_per_step"))};
}

// What each epoch makes anew is seen as waits for data of its first step, and as time between epochs; validation is a cause
// of its own.
Maybe short_epochs(const Subject& s, int) {
  const double steps = s.profile.epoch_steps, step_s = s.step_with_waits_s();
  if (!by_fit(s) || steps < 1 || steps > kShortEpoch || s.number("steps_per_execution", 1) > 1 ||
      batches_in_python(s))
    return {};
  const double start_s = std::max(0.0, s.profile.epoch_start_s / steps - s.number("validation_s"));
  const double part = (s.input_share() * step_s + start_s) / (step_s + start_s);
  if (part < kMuchOfEpoch) return {};
  return Suspicion{
      .evidence = fmt::format("an epoch has {:.0f} step{}; what fit does at its start, and waiting for its "
                              "data, take {} of the time",
                              steps, steps > 1 ? "s" : "", share(part)),
      .most = without(part),
      .booked = of_steps(part, s)};
}

constexpr int64_t kSeveral = 3;

Maybe compiled_again(const Subject& s, int) {
  const Json calls = fact(s, "calls_per_step"), lines = fact(s, "lines");
  const double steps = static_cast<double>(s.watched_steps);
  const double times = calls.is_object() ? calls.value("model.compile", 0.0) * steps : 0;
  if (times < static_cast<double>(kSeveral) || s.seen.compiles < kSeveral) return {};
  const double seconds = 1e-9 * static_cast<double>(s.seen.compile_ns);
  const auto booked = part_of_watched(s, seconds);
  return Suspicion{
      .evidence = fmt::format(
          "{:.0f} calls of model.compile in {:.0f} steps, and {} traces and compilations: {:.2g} of {:.2g} s",
          times, steps, s.seen.compiles, seconds, s.watched_s),
      .most = without(booked.value_or(0)),
      .line = lines.is_object() ? lines.value("model.compile", int64_t{0}) : 0,
      .booked = booked};
}

Maybe metrics(const Subject& s, int) {
  const Json found = fact(s, "metrics");
  if (!by_fit(s) || found.empty()) return {};
  return Suspicion{fmt::format("metrics that each batch computes: {}", dump(found))};
}

const std::map<std::string, const char*> kKerasRemedies = {
    {"R1",
     "Pass arrays or a `tf.data` pipeline with `.prefetch(tf.data.AUTOTUNE)` in place of a Python "
     "generator; `workers` of a PyDataset."},
    {"R2", "Pass the arrays themselves to `fit`; it takes whole batches."},
    {"R3", "`workers=1, use_multiprocessing=False` of the PyDataset."},
    {"R4", "`ModelCheckpoint(save_freq=1000)`, or `save_best_only=True`."},
    {"R5", "`validation_freq=5`, fewer metrics in `compile`, callbacks that act every hundred batches."},
    {"R6", "`steps_per_execution=16` and `jit_compile=True` in `compile`, larger batches."},
    {"R7", "Batches of equal size: `drop_remainder=True`, padding to few lengths."},
    {"R8", "`jit_compile=False`."},
    {"R9", "`jit_compile=False` for short runs; `run_eagerly` only for debugging."},
    {"R10",
     "`LSTM` and `GRU` with their default activations, `recurrent_dropout=0` and `unroll=False`; no "
     "`RNN(cell)`."},
    {"R11", "No callback that reads numbers at every batch."},
    {"R12", "No list of tensors that a callback fills."},
    {"R13", "Larger epsilons, no decay to zero; on the torch backend as for PyTorch."},
    {"R14", "The setting of its backend."},
    {"R16", "`keras.config.set_dtype_policy(\"float32\")`."},
    {"R17", "No `run_eagerly=True`; `verbose=2` in `fit`."},
    {"R18", "Time whole calls of `fit`, or read a result (`float(loss)`) before the clock is read."},
    {"R20",
     "`epsilon` is 1e-7 in Adam and 1e-3 in BatchNormalization; `momentum` of BatchNormalization is "
     "1 less that of PyTorch."},
    {"R21", "Targets of shape (N, 1) for a `Dense(1)`."},
    {"R22", "Either `activation=\"softmax\"`, or `from_logits=True` in the loss, not both."},
    {"R23", "Inputs are (batch, time, features); `time_major` is gone."},
    {"R24", "`layer.trainable = True` before `compile`."},
    {"R25", "`gradient_accumulation_steps` of the optimizer."},
    {"R28", "`jit_compile=True`; `data_format=\"channels_last\"`."},
};

}  // namespace

std::vector<Rule> keras_rules() {
  return {
      {.id = "R6",
       .key = "predict",
       .framework = "keras",
       .signal = "predict is called at least every fifth step, on no more than one batch",
       .cause = "predict sets up a whole data pipeline for each call",
       .change = "model.predict_on_batch(x), or model(x, training=False)",
       .method = "calls predict_on_batch in its place",
       .thrown = "direct_predict",
       .place = "\\.predict\\(",
       .suspect = predicts,
       .from = R"(\.predict\(([^(),]+)[^()]*\))",
       .to = ".predict_on_batch($1)"},
      {.id = "R6",
       .key = "predict_batch",
       .framework = "keras",
       .signal = "predict is called at least every fifth step, on 8 batches or more",
       .cause = "predict sets up a data pipeline for each call, and takes its rows in many small batches",
       .change =
           "model.predict(x, batch_size={}) or as many rows as memory allows, or model(x, training=False)",
       .method = "gives predict larger batches",
       .thrown = "predict_batch",
       .place = "\\.predict\\(",
       .suspect = predict_batches},
      {.id = "R6",
       .key = "fits",
       .framework = "keras",
       .signal = "fit is called at least every fifth step, on no more than one batch",
       .cause = "fit sets up a whole data pipeline for each call",
       .change = "model.train_on_batch(x, y), or one fit over all batches",
       .method = "calls train_on_batch in its place",
       .thrown = "direct_fit",
       .place = "\\.fit\\(",
       .numbers = true,
       .suspect = fits},
      {.id = "R6",
       .key = "short_epochs",
       .framework = "keras",
       .signal =
           "epochs of fit have 4 steps at most, and 20% of the time is waiting for data or lies between epochs",
       .cause = "each epoch is a few steps long, and fit makes a new iterator over the data for each",
       .change =
           "fewer and longer epochs: a dataset with .repeat() and steps_per_epoch, or a loop over train_on_batch",
       .method = "",
       .thrown = "",
       .place = "\\.fit\\(",
       .suspect = short_epochs,
       .within = "input"},
      {.id = "R7",
       .key = "compiled_again",
       .framework = "keras",
       .signal = "three or more calls of model.compile while it trains, and as many compilations",
       .cause = "model.compile throws its compiled step away, which is traced and compiled again",
       .change =
           "set what changes in place, as model.optimizer.learning_rate = rate, or give a schedule; call compile once",
       .method = "",
       .thrown = "",
       .place = "\\.compile\\(",
       .suspect = compiled_again,
       .within = "shapes"},
      {.id = "R5",
       .key = "metrics",
       .framework = "keras",
       .signal = "compile has metrics",
       .cause = "metrics take part of every step",
       .change = "fewer metrics in compile(), or evaluate() once an epoch",
       .method = "computes no metrics",
       .thrown = "no_metrics",
       .place = "metrics",
       .suspect = metrics},
      {.id = "R5",
       .key = "validation",
       .framework = "keras",
       .signal = "fit validates, and epochs begin later than a step takes",
       .cause = "validation takes part of every epoch",
       .change = "validate less often: validation_freq",
       .method = "leaves validation out",
       .thrown = "no_validation",
       .place = "validation_",
       .suspect = validation},
      {.id = "R5",
       .key = "callbacks",
       .framework = "keras",
       .signal = "callbacks of its own",
       .cause = "callbacks of its own take time",
       .change = "call them less often",
       .method = "leaves them out",
       .thrown = "no_callbacks",
       .place = "callbacks",
       .suspect = callbacks},
      {.id = "R6",
       .key = "one_step_calls",
       .framework = "keras",
       .signal = "fit with steps of at most 20 ms, one step per execution, or fewer than the faster script",
       .cause = "every step is a call of its own",
       .change = "steps_per_execution={} in compile()",
       .method = "makes several steps in one call",
       .thrown = "steps_per_execution",
       .place = "\\.compile\\(",
       .suspect = one_step_calls,
       .from = R"((\.compile\(.+)\)\s*$)",
       .to = "$1, steps_per_execution={})"},
      {.id = "R8",
       .key = "xla",
       .framework = "keras",
       .signal = "fit with jit_compile",
       .cause = "XLA makes it slower",
       .change = "jit_compile=False in compile()",
       .method = "compiles without XLA",
       .thrown = "no_jit_compile",
       .place = "jit_compile|\\.compile\\(",
       .numbers = true,
       .suspect = xla,
       .from = R"(jit_compile\s*=\s*True)",
       .to = "jit_compile=False"},
      {.id = "R16",
       .key = "mixed_precision",
       .framework = "keras",
       .signal = "a policy of mixed precision on a CPU",
       .cause = "this CPU emulates the half precision it asks for",
       .change = "no mixed precision policy on this machine",
       .method = "computes in float32",
       .thrown = "no_mixed",
       .place = "mixed_",
       .numbers = true,
       .suspect = mixed},
      {.id = "R17",
       .key = "progress_bar",
       .framework = "keras",
       .signal = "fit draws a progress bar, and a step takes at most 5 ms",
       .cause = "its progress bar is drawn at each step",
       .change = "verbose=0 or 2",
       .method = "draws none",
       .thrown = "silent",
       .place = "\\.fit\\(",
       .suspect = progress_bar,
       .within = "prints",
       .from = R"(verbose\s*=\s*("auto"|1))",
       .to = "verbose=2"},
      {.id = "R17",
       .key = "run_eagerly",
       .framework = "keras",
       .signal = "run_eagerly=True",
       .cause = "it runs eagerly, op by op",
       .change = "no run_eagerly=True",
       .method = "runs compiled functions",
       .thrown = "no_eager",
       .place = "eager",
       .numbers = true,
       .suspect = eager_fit,
       .from = R"(run_eagerly\s*=\s*True)",
       .to = "run_eagerly=False"},
      {.id = "R28",
       .key = "no_xla",
       .framework = "keras",
       .signal = "fit without jit_compile, where a graph is computed op by op",
       .cause = "XLA would fuse its ops",
       .change = "jit_compile=True in compile()",
       .method = "compiles with XLA",
       .thrown = "jit_compile",
       .place = "\\.compile\\(",
       .numbers = true,
       .suspect = no_xla,
       .from = R"((\.compile\(.+)\)\s*$)",
       .to = "$1, jit_compile=True)"},
  };
}

Remedies keras_remedies() { return {"Keras", kKerasRemedies}; }

}  // namespace bakeoff::explain
