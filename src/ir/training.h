#pragma once

// How a workload is used: scenario, track, optimizer, precision. Plain values; the recipe fills them.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace bakeoff::ir {

enum class Track { kEqualised, kAsIs };
// kTrain: a step is forward, backward and one update. kPredict: it is one forward pass in inference mode, up
// to Workload::prediction(); dropout passes its input on, batch_norm uses its running statistics, and nothing
// is updated. kGenerate: it is an answer to each prompt of one batch, word by word, in inference mode (Generation).
enum class Scenario { kTrain, kPredict, kGenerate };
enum class OptimizerKind { kSgd, kRmsprop, kAdam, kAdamW };

// Where epsilon sits in v -> 1/denominator.
//   kOutside  sqrt(v) + eps, Adam: sqrt(v_hat) + eps    (torch, optax.adam)
//   kInside   sqrt(v + eps), Adam: sqrt(v_hat + eps)    (Keras RMSprop, optax.rmsprop)
//   kHat      Adam only: lr sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v) + eps), the "epsilon hat" of Kingma & Ba 2015,
//             section 2, i.e. an epsilon that changes with t   (Keras Adam)
enum class EpsForm { kOutside, kInside, kHat };

// How weight decay enters.
//   kL2         g += weight_decay * p before the update       (torch SGD/RMSprop/Adam)
//   kDecoupled  p -= lr * weight_decay * p in addition to it  (AdamW, Loshchilov & Hutter 2019)
enum class DecayForm { kL2, kDecoupled };

enum class ScheduleKind { kConstant, kStep, kCosine, kLinear };

// The learning rate of update t, t counted from 0, is lr * factor(t):
//   t < warmup_steps   warmup_from + (1 - warmup_from) t / warmup_steps
//   else, with u = t - warmup_steps and p = min(u / steps, 1):
//   constant           1
//   step               step_factor ^ floor(u / every)
//   cosine             final + (1 - final) (1 + cos(pi p)) / 2
//   linear             1 + (final - 1) p
// So update warmup_steps is the first with the whole rate, and from update warmup_steps + steps on it stays
// at final.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  int64_t warmup_steps = 0;
  double warmup_from = 0;
  int64_t steps = 0;  // cosine, linear
  double final = 0;
  int64_t every = 0;  // step
  double step_factor = 0.1;
  // Updates by which a training is late (or, below 0, early). A recipe's never is; the causes of a divergence
  // are looked for with it.
  int64_t late = 0;
  bool varies() const { return kind != ScheduleKind::kConstant || warmup_steps > 0; }
  double factor(int64_t t) const;
  // The updates at which its formula changes: the end of the warm-up, the steps, the end. Ascending, and
  // beginning with 0.
  std::vector<int64_t> corners() const;
  bool operator==(const Schedule&) const = default;
};

// One update, in this order:
//   1. the gradients are clipped: each element to [-clip_value, clip_value], or all of them are multiplied
//      with min(1, clip_norm / norm), norm being that of all gradients as one vector
//   2. the optimizer's update below, at the schedule's learning rate; a parameter in `no_decay` does not decay
//   3. ema: the average of each parameter becomes ema * average + (1 - ema) * parameter; the first update
//      copies the parameter. Averages do not enter training: what is evaluated uses them
// SGD:     v = momentum v + g;  step = nesterov ? g + momentum v : v;  p -= lr step
//          (no momentum: p -= lr g)
// RMSprop: v = rho v + (1-rho) g^2;  u = g / denominator(v);  momentum: b = momentum b + u, p -= lr b
// Adam(W): m = beta1 m + (1-beta1) g;  v = beta2 v + (1-beta2) g^2;  m_hat, v_hat corrected for bias
struct Optimizer {
  OptimizerKind kind = OptimizerKind::kSgd;
  double lr = 1e-3;
  double momentum = 0;    // SGD, RMSprop
  bool nesterov = false;  // SGD
  double rho = 0.9;       // RMSprop
  double beta1 = 0.9;     // Adam, AdamW
  double beta2 = 0.999;
  double eps = 1e-7;
  EpsForm eps_form = EpsForm::kOutside;
  double weight_decay = 0;
  DecayForm decay_form = DecayForm::kL2;  // AdamW: always decoupled
  std::set<int> no_decay = {};            // ParamIds
  Schedule schedule = {};
  double clip_norm = 0;   // 0: gradients are not clipped
  double clip_value = 0;  // the same
  // Added to the norm before dividing by it. A recipe's is 0; torch's clip_grad_norm_ has 1e-6.
  double clip_eps = 0;
  double ema = 0;  // 0: no average
  // Equal parts of a batch that are worked off one after the other; the update is made from the mean of their
  // gradients. Where a loss is a mean over rows that is the batch's own gradient: nothing that a step computes
  // depends on it, but what memory it takes.
  int64_t accumulate = 1;
  // Keys that the recipe states. In the as-is track an emitter writes these (and the learning rate) and
  // leaves all others to the framework's defaults.
  std::set<std::string> stated = {};
  bool adam() const { return kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamW; }
  // Its decay, where it has one, does not pass through the gradient.
  bool decoupled() const {
    return kind == OptimizerKind::kAdamW || (weight_decay != 0 && decay_form == DecayForm::kDecoupled);
  }
  bool clips() const { return clip_norm != 0 || clip_value != 0; }
  bool decays(int parameter) const { return weight_decay != 0 && !no_decay.contains(parameter); }
  double rate(int64_t t) const { return lr * schedule.factor(t); }
  bool operator==(const Optimizer&) const = default;
};

// The first `prompt` words of each row of the data are read, then the likeliest next word is chosen `words` times.
struct Generation {
  int64_t prompt = 0, words = 0;
  bool operator==(const Generation&) const = default;
};

struct Training {
  Scenario scenario = Scenario::kTrain;
  Track track = Track::kEqualised;
  Optimizer optimizer = {};    // of kTrain
  Generation generation = {};  // of kGenerate
  int64_t batch = 32;
  std::string precision = "float32";
  // Data files hold raw values; on loading, float inputs become float32(raw) / float32(input_divisor),
  // rounded once to float32 (255 for bytes), also where the computation then runs in float64.
  double input_divisor = 1.0;
  uint64_t seed = 1;
  bool predicts() const { return scenario != Scenario::kTrain; }  // nothing is learned
  bool generates() const { return scenario == Scenario::kGenerate; }
  bool equalised() const { return track == Track::kEqualised; }
  // Whether a script states this key of the optimizer; if not, the framework's default holds.
  bool says(const std::string& key) const { return equalised() || optimizer.stated.contains(key); }
  bool operator==(const Training&) const = default;
};

// Every number of it in one line: equal trainings have equal texts.
std::string dump(const Training& training);

std::string name(Scenario);       // "train", "predict", "generate"
std::string name(Track);          // "equalised", "as-is"
std::string name(OptimizerKind);  // "sgd", "rmsprop", "adam", "adamw"
std::string name(EpsForm);        // "outside", "inside", "hat"
std::string name(DecayForm);      // "l2", "decoupled"
std::string name(ScheduleKind);   // "constant", "step", "cosine", "linear"

}  // namespace bakeoff::ir
