#include "study/training/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/files.h"
#include "data/inputs.h"
#include "proc/interrupt.h"
#include "race/watched.h"
#include "referee/optimizer.h"
#include "study/ledger.h"
#include "study/training/training_setup.h"

namespace bakeoff {
namespace {

int64_t last_step(const recipe::Target& target, int64_t rows, int64_t batch) {
  const auto steps = std::llround(target.epochs * static_cast<double>(rows / batch));
  return std::max<int64_t>(1, steps);
}

}  // namespace

bool meets(const recipe::Target& target, const TargetLook& look) {
  return target.accuracy ? look.accuracy >= *target.accuracy : look.loss <= *target.loss;
}

Result<TargetTrial> train_referee(const HeldOut& held_out, const ir::Training& training,
                                  const recipe::Target& target, referee::Weights weights,
                                  const fs::path& data, int64_t rows, const std::function<bool()>& over) {
  TargetTrial trial{.contender = TargetTrial::kReferee, .started = utc_now()};
  auto state = referee::initial_state(weights);
  const int64_t last = last_step(target, rows, training.batch), whole = rows / training.batch;
  for (int64_t step = 0; step < last && !over();) {
    TRY(const auto batch, read_inputs(held_out.workload, data, training.input_divisor,
                                      step % whole * training.batch, training.batch));
    const referee::DropoutMasks masks{.seed = training.seed, .step = static_cast<uint64_t>(step)};
    TRY(auto found, referee::evaluate(held_out.workload, weights, batch, {.dropout = masks}));
    referee::step(training.optimizer, found.gradients, state, weights);
    for (size_t p = 0; p < weights.size(); ++p) {
      if (!found.running.unbiased[p].data.empty()) weights[p] = std::move(found.running.unbiased[p]);
    }
    if (++step % target.every != 0 && step < last) continue;
    referee::Weights judged = weights;
    for (size_t p = 0; p < state.average.size(); ++p) {
      if (ir::trainable(held_out.workload.parameters[p])) judged[p] = state.average[p];
    }
    TRY(TargetLook look, look_at(held_out, judged));
    look.steps = step;
    trial.looks.push_back(look);
    trial.reached = meets(target, look);
    if (trial.reached || !std::isfinite(look.loss)) break;
  }
  return trial;
}

namespace {

// All trainings of one plan.
class Trainings {
 public:
  Trainings(const Afterwards& race, Ledger<TargetTrial> done)
      : race_(race),
        plan_(race.plan),
        target_(plan_.recipe.target),
        done_(std::move(done)),
        ground_(plan_, "target", target_.rows) {}

  Status run() {
    const std::vector<size_t> lanes = lanes_of(race_);
    CHECK_OK(ground_.prepare(race_.progress));
    const bool referee = target_.referee && plan_.recipe.training.track == ir::Track::kEqualised;
    now_ = {.stage = "target",
            .total = static_cast<int>(target_.seeds * static_cast<int64_t>(lanes.size() + referee)),
            .contenders = static_cast<int>(plan_.lanes.size())};
    for (int seed = 1; seed <= target_.seeds && !late(seed); ++seed) {
      std::vector<size_t> order = ground_.shuffled(lanes, seed);
      std::erase_if(order, [&](size_t lane) { return known(id(lane), seed); });
      const bool own = referee && !known(TargetTrial::kReferee, seed);
      if (order.empty() && !own) continue;
      if (race_.over()) break;
      TRY(const auto weights, ground_.lay_out(seed));
      if (own) CHECK_OK(train_own(seed, weights));
      for (const size_t lane : order) CHECK_OK(train(lane, seed));
      ++seeds_;
    }
    return Done{};
  }

 private:
  const std::string& id(size_t lane) const { return plan_.manifest.contenders[lane].id; }

  bool known(const std::string& contender, int seed) const {
    return done_.settled(contender, [&](const TargetTrial& t) { return t.seed == seed; });
  }

  // Whether most of another seed would lie beyond the budget.
  bool late(int seed) const {
    if (!race_.left_s || seed == 1) return false;
    const double gone = seconds_since(begin_);
    return gone + gone / std::max(seeds_, 1) / 2 > *race_.left_s;
  }

  bool cut_short() { return cut_ = race_.over(); }

  void tell(const std::string& what, int seed) {
    cut_ = false;
    now_.detail = fmt::format("{}, seed {} of {}", what, seed, target_.seeds);
    now_.elapsed_s = seconds_since(begin_);
    race_.watch(now_);
  }

  Status train_own(int seed, const referee::Weights& weights) {
    tell("the referee in float64", seed);
    ir::Training training = plan_.recipe.training;
    training.seed = ground_.seed_of(seed);
    TRY(TargetTrial trial, train_referee(ground_.held_out(), training, target_, weights, ground_.data(),
                                         ground_.rows(), [&] { return cut_short(); }));
    trial.seed = seed;
    return add(std::move(trial));
  }

  Status train(size_t lane, int seed) {
    if (known(id(lane), seed) || race_.over()) return Done{};
    tell(id(lane), seed);
    TargetTrial trial{.contender = id(lane), .seed = seed, .started = utc_now()};
    TrainingProcess process = ground_.start(lane, seed);
    trial.start_up_ns = process.start_up_ns;
    trial.effective = process.effective;
    std::vector<Burst> bursts;
    const Status looked = look_on(*process.worker, lane, trial, bursts);
    trial.failure = failure_of(plan_, lane, std::move(bursts), trial.rounds, process, looked);
    process.worker->close();
    return add(std::move(trial));
  }

  // Trains and looks until the target, the last step, or a failure, which the worker holds.
  Status look_on(Worker& worker, size_t lane, TargetTrial& trial, std::vector<Burst>& bursts) {
    const int64_t last = last_step(target_, ground_.rows(), plan_.recipe.training.batch);
    TargetLook so_far;
    while (so_far.steps < last && worker.ok() && !cut_short()) {
      std::optional<Ran> ran;
      trial.rounds.push_back(
          watched(plan_.recipe.race.host, race_.sensed, plan_.lanes[lane].entry.worker.cpus, worker.pid(),
                  [&] { ran = worker.run(std::min(target_.every, last - so_far.steps)); }));
      if (!ran) return Done{};
      bursts.push_back(ran->burst);
      TRY(const auto weights, ground_.state(worker));
      TRY(TargetLook look, look_at(ground_.held_out(), weights));
      look.steps = so_far.steps + ran->burst.steps;
      look.ns = so_far.ns + stretch_ns(ran->burst, trial.looks.empty());
      so_far = look;
      trial.looks.push_back(look);
      trial.reached = meets(target_, look);
      if (trial.reached || !std::isfinite(look.loss)) break;
    }
    return Done{};
  }

  Status add(TargetTrial trial) {
    if (cut_ || proc::interrupted()) return Done{};
    ++now_.done;
    return done_.add(std::move(trial));
  }

  const Afterwards& race_;
  const Plan& plan_;
  const recipe::Target& target_;
  Ledger<TargetTrial> done_;
  TrainingSetup ground_;
  bool cut_ = false;  // the training at hand: it leaves no record
  Happening now_;
  int seeds_ = 0;  // trained since begin_
  int64_t begin_ = monotonic_clock().now_ns();
};

}  // namespace

Status train_to_target(const Afterwards& race) {
  if (!race.plan.recipe.target.wanted()) return Done{};
  TRY(auto done, Ledger<TargetTrial>::open(race.plan.directory));
  return Trainings(race, std::move(done)).run();
}

}  // namespace bakeoff
