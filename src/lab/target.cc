#include "lab/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/clock.h"
#include "base/files.h"
#include "lab/controls.h"
#include "lab/data.h"
#include "lab/evidence.h"
#include "lab/gate.h"
#include "lab/inputs.h"
#include "lab/race.h"
#include "proc/interrupt.h"
#include "referee/optimizer.h"
#include "tensor/rng.h"
#include "tensor/safetensors.h"

namespace bakeoff::lab {
namespace {

constexpr int64_t kChunk = 250;  // rows that the referee predicts at once
constexpr int64_t kTestPictures = 10'000;

int64_t last_step(const recipe::Target& target, int64_t rows, int64_t batch) {
  const auto steps = std::llround(target.epochs * static_cast<double>(rows / batch));
  return std::max<int64_t>(1, steps);
}

// Predictions that are right, over the last axis; labels in the same order.
int64_t right_ones(const tensor::Tensor& prediction, const tensor::IntTensor& labels) {
  const auto classes = static_cast<size_t>(prediction.shape.back());
  int64_t right = 0;
  for (size_t i = 0; i < labels.data.size(); ++i) {
    const auto begin = prediction.data.begin() + static_cast<long>(i * classes);
    right += std::max_element(begin, begin + static_cast<long>(classes)) - begin == labels.data[i];
  }
  return right;
}

Result<referee::Weights> read_weights(const ir::Workload& workload, const fs::path& file) {
  TRY(const auto stored, tensor::SafetensorsFile::open(file));
  referee::Weights weights;
  for (const ir::Parameter& p : workload.parameters) {
    TRY(tensor::Tensor one, stored.read(p.name));
    if (one.shape != p.shape)
      return Error{.message = fmt::format("the state of '{}' has another shape", p.name),
                   .where = file.string()};
    weights.push_back(std::move(one));
  }
  return weights;
}

}  // namespace

bool has_classes(const ir::Workload& workload) {
  const ir::Node& loss = workload.nodes.back();
  if (loss.op != ir::Op::kSoftmaxCrossEntropy || loss.inputs.size() < 2) return false;
  return workload.is_input(loss.inputs[1]);
}

Status check_target(const recipe::Recipe& recipe, int64_t rows) {
  const recipe::Target& target = recipe.target;
  if (target.accuracy && !has_classes(recipe.workload)) {
    return Error{
        .message = fmt::format("workload '{}' has no classes to be accurate about", recipe.workload.name),
        .where = recipe::where(recipe, "target", "accuracy"),
        .remedy = "state target.loss instead"};
  }
  const int64_t available =
      recipe.data.kind == "mnist" ? kTestPictures : std::max<int64_t>(rows - recipe.training.batch, 0);
  if (!target.wanted() || target.rows <= available) return Done{};
  return Error{.message = fmt::format("{} rows are to be held out, {} can be", target.rows, available),
               .where = recipe::where(recipe, "target", "rows"),
               .remedy = "set target.rows to fewer, or bring more data"};
}

Result<TargetLook> look_at(const HeldOut& held_out, const referee::Weights& weights) {
  double loss = 0, rows = 0;
  int64_t right = 0, labelled = 0;
  const auto target = static_cast<size_t>(held_out.workload.nodes.back().inputs.back());
  for (const referee::Inputs& batch : held_out.batches) {
    TRY(const auto found,
        referee::evaluate(held_out.workload, weights, batch, {.train = false, .gradients = false}));
    TRY(const int64_t count, referee::check_inputs(held_out.workload, batch));
    loss += found.loss * static_cast<double>(count);
    rows += static_cast<double>(count);
    if (!held_out.has_classes) continue;
    const auto& labels = std::get<tensor::IntTensor>(batch[target]);
    right += right_ones(found.prediction, labels);
    labelled += static_cast<int64_t>(labels.data.size());
  }
  TargetLook look{.loss = loss / rows};
  if (labelled > 0) look.accuracy = static_cast<double>(right) / static_cast<double>(labelled);
  return look;
}

bool meets(const recipe::Target& target, const TargetLook& look) {
  return target.accuracy ? look.accuracy >= *target.accuracy : look.loss <= *target.loss;
}

std::string target_text(const recipe::Target& target) {
  const std::string what = target.accuracy ? fmt::format("an accuracy of {:g}%", 100 * *target.accuracy)
                                           : fmt::format("a loss of {:g}", *target.loss);
  return fmt::format("{} on {} rows that are not trained on", what, target.rows);
}

Status write_shuffled(const ir::Workload& workload, const fs::path& data, int64_t rows, uint64_t seed,
                      const fs::path& to) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  tensor::Rng rng(seed, "order");
  tensor::shuffle(order, rng);
  TRY(const auto file, tensor::SafetensorsFile::open(data));
  tensor::NamedTensors shuffled;
  for (const ir::Input& input : workload.inputs) {
    const auto* entry = file.find(input.name);
    TRY(const std::string_view bytes, file.bytes(input.name));
    tensor::RawTensor raw{.dtype = entry->dtype, .shape = entry->shape, .bytes = {}};
    const size_t row = bytes.size() / static_cast<size_t>(entry->shape[0]);
    raw.shape[0] = rows;
    raw.bytes.reserve(row * static_cast<size_t>(rows));
    for (const int64_t from : order) raw.bytes += bytes.substr(static_cast<size_t>(from) * row, row);
    shuffled.emplace_back(input.name, std::move(raw));
  }
  return tensor::write_safetensors(to, shuffled);
}

Result<TargetTrial> train_referee(const HeldOut& held_out, const ir::Training& training,
                                  const recipe::Target& target, referee::Weights weights,
                                  const fs::path& data, int64_t rows) {
  TargetTrial trial{.contender = TargetTrial::kReferee, .started = utc_now()};
  auto state = referee::initial_state(weights);
  const int64_t last = last_step(target, rows, training.batch), whole = rows / training.batch;
  for (int64_t step = 0; step < last && !proc::interrupted();) {
    TRY(const auto batch, read_inputs(held_out.workload, data, training.input_divisor,
                                      step % whole * training.batch, training.batch));
    const referee::DropoutMasks masks{.seed = training.seed, .step = static_cast<uint64_t>(step)};
    TRY(auto found, referee::evaluate(held_out.workload, weights, batch, {.dropout = masks}));
    referee::step(training.optimizer, found.gradients, state, weights);
    for (size_t p = 0; p < weights.size(); ++p) {
      if (!found.running.unbiased[p].data.empty()) weights[p] = std::move(found.running.unbiased[p]);
    }
    if (++step % target.every != 0 && step < last) continue;
    TRY(TargetLook look, look_at(held_out, weights));
    look.steps = step;
    trial.looks.push_back(look);
    trial.reached = meets(target, look);
    if (trial.reached || !std::isfinite(look.loss)) break;
  }
  return trial;
}

namespace {

// Everybody's trainings of one plan.
class Trainings {
 public:
  Trainings(const Plan& plan, const Watch& watch, std::vector<TargetTrial> done)
      : plan_(plan), target_(plan.recipe.target), watch_(watch), done_(std::move(done)) {}

  Status prepare(const Progress& progress) {
    const recipe::Recipe& recipe = plan_.recipe;
    held_out_.workload = recipe.workload;
    held_out_.has_classes = has_classes(recipe.workload);
    fs::path file = plan_.gate.data;
    rows_ = plan_.gate.rows;
    int64_t first = 0;
    if (recipe.data.kind == "mnist") {
      TRY(const DataSet test, lab::prepare({.kind = DataKind::kMnist, .split = "test"}, recipe.workload,
                                           bakeoff_home() / "data", progress));
      file = test.file;
    } else {
      first = rows_ -= target_.rows;
    }
    for (int64_t at = 0; at < target_.rows; at += kChunk) {
      TRY(auto chunk, read_inputs(recipe.workload, file, recipe.training.input_divisor, first + at,
                                  std::min(kChunk, target_.rows - at)));
      held_out_.batches.push_back(std::move(chunk));
    }
    return Done{};
  }

  Status run(const std::vector<size_t>& lanes) {
    const bool referee = target_.referee && plan_.recipe.training.track == ir::Track::kEqualised;
    now_ = {.stage = "target",
            .total = static_cast<int>(target_.seeds * static_cast<int64_t>(lanes.size() + referee)),
            .contenders = static_cast<int>(plan_.lanes.size())};
    for (int seed = 1; seed <= target_.seeds && !proc::interrupted(); ++seed) {
      std::vector<size_t> order = lanes;
      tensor::Rng rng(seed_of(seed), "target");
      tensor::shuffle(order, rng);
      std::erase_if(order, [&](size_t lane) { return known(id(lane), seed); });
      const bool own = referee && !known(TargetTrial::kReferee, seed);
      if (order.empty() && !own) continue;
      TRY(const auto weights, write_initial_weights(plan_.recipe.workload, seed_of(seed), weights_file()));
      CHECK_OK(write_shuffled(plan_.recipe.workload, plan_.gate.data, rows_, seed_of(seed), data_file()));
      if (own) CHECK_OK(train_own(seed, weights));
      for (const size_t lane : order) CHECK_OK(train(lane, seed));
    }
    std::error_code ignored;
    for (const fs::path& file : {weights_file(), data_file(), state_file()}) fs::remove(file, ignored);
    return Done{};
  }

 private:
  const std::string& id(size_t lane) const { return plan_.manifest.contenders[lane].id; }
  uint64_t seed_of(int seed) const {
    return tensor::mix(plan_.recipe.training.seed * 1000003 + static_cast<uint64_t>(seed)) >> 1;
  }
  fs::path weights_file() const { return plan_.gate.folder / "target_weights.safetensors"; }
  fs::path data_file() const { return plan_.gate.folder / "target_data.safetensors"; }
  fs::path state_file() const { return plan_.gate.folder / "target_state.safetensors"; }

  // Whoever failed once is not trained again.
  bool known(const std::string& contender, int seed) const {
    return std::any_of(done_.begin(), done_.end(), [&](const TargetTrial& t) {
      return t.contender == contender && (t.seed == seed || t.failure);
    });
  }

  void tell(const std::string& what, int seed) {
    now_.detail = fmt::format("{}, seed {} of {}", what, seed, target_.seeds);
    now_.elapsed_s = seconds_since(begin_);
    watch_(now_);
  }

  Status train_own(int seed, const referee::Weights& weights) {
    tell("the referee in float64", seed);
    ir::Training training = plan_.recipe.training;
    training.seed = seed_of(seed);
    TRY(TargetTrial trial, train_referee(held_out_, training, target_, weights, data_file(), rows_));
    trial.seed = seed;
    return add(std::move(trial));
  }

  Status train(size_t lane, int seed) {
    if (proc::interrupted() || known(id(lane), seed)) return Done{};
    tell(id(lane), seed);
    const GateContender& entry = plan_.lanes[lane].entry;
    TargetTrial trial{.contender = id(lane), .seed = seed, .started = utc_now()};
    WorkerSpec spec = entry.worker;
    spec.log_file =
        plan_.directory.logs() / fmt::format("{}.target{}.log", entry.script.stem().string(), seed);
    const auto worker = Worker::start(spec);
    trial.start_up_ns = worker->start_ns();
    if (const auto imported = worker->import()) {
      trial.start_up_ns += imported->ns;
      trial.effective = imported->effective;
    }
    const bool as_is = plan_.recipe.training.track == ir::Track::kAsIs;
    const auto built = worker->build({.script = entry.script,
                                      .weights = as_is ? fs::path() : weights_file(),
                                      .data = data_file(),
                                      .layout = entry.layout},
                                     trial.effective);
    if (built) trial.start_up_ns += *built;
    if (const auto looked = look_on(*worker, trial); !looked)
      trial.failure = Failure{"state", looked.error().text(), {}};
    if (!worker->ok()) trial.failure = worker->failure();
    worker->close();
    return add(std::move(trial));
  }

  // Trains and looks until the target, the last step, or a failure, which the worker holds.
  Status look_on(Worker& worker, TargetTrial& trial) {
    const int64_t last = last_step(target_, rows_, plan_.recipe.training.batch);
    TargetLook so_far;
    while (so_far.steps < last && !proc::interrupted()) {
      const auto ran = worker.run(std::min(target_.every, last - so_far.steps));
      if (!ran || !worker.state(state_file())) return Done{};
      TRY(const auto weights, read_weights(held_out_.workload, state_file()));
      TRY(TargetLook look, look_at(held_out_, weights));
      look.steps = so_far.steps + ran->burst.steps;
      look.ns = so_far.ns + ran->burst.ns;
      so_far = look;
      trial.looks.push_back(look);
      trial.reached = meets(target_, look);
      if (trial.reached || !std::isfinite(look.loss)) break;
    }
    return Done{};
  }

  Status add(TargetTrial trial) {
    if (proc::interrupted()) return Done{};  // cut short
    ++now_.done;
    CHECK_OK(plan_.directory.append(trial));
    done_.push_back(std::move(trial));
    return Done{};
  }

  const Plan& plan_;
  const recipe::Target& target_;
  const Watch& watch_;
  std::vector<TargetTrial> done_;
  HeldOut held_out_;
  int64_t rows_ = 0;  // that are trained on
  Happening now_;
  int64_t begin_ = monotonic_clock().now_ns();
};

}  // namespace

Status train_to_target(const Plan& plan, const std::vector<Parity>& parities,
                       const std::vector<Trial>& trials, const Progress& progress, const Watch& watch) {
  if (!plan.recipe.target.wanted()) return Done{};
  TRY(auto known, plan.directory.targets());
  std::vector<size_t> lanes = eligible(plan, parities);
  const std::set<std::string> out = failed_in(trials);
  std::erase_if(lanes, [&](size_t lane) { return out.contains(plan.manifest.contenders[lane].id); });
  Trainings trainings(plan, watch, std::move(known));
  CHECK_OK(trainings.prepare(progress));
  return trainings.run(lanes);
}

}  // namespace bakeoff::lab
