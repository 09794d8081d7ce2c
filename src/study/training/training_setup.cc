#include "study/training/training_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/files.h"
#include "data/data.h"
#include "evidence/invariants.h"
#include "evidence/machine_use.h"
#include "evidence/usage.h"
#include "plan/lane.h"
#include "plan/rows.h"
#include "plan/weights.h"
#include "tensor/rng.h"
#include "tensor/safetensors.h"

namespace bakeoff {

TrainingSetup::TrainingSetup(const Plan& plan, std::string what, int64_t held)
    : plan_(plan), what_(std::move(what)), held_(held) {}

TrainingSetup::~TrainingSetup() {
  std::error_code ignored;
  for (const char* kind : {"weights", "data", "state"}) fs::remove(file(kind), ignored);
}

fs::path TrainingSetup::file(const char* kind) const {
  return plan_.gate.folder / fmt::format("{}_{}.safetensors", what_, kind);
}

Status TrainingSetup::prepare(const Progress& progress) {
  const recipe::Recipe& recipe = plan_.recipe;
  fs::path data = plan_.gate.data;
  rows_ = trained_rows(recipe, plan_.gate.rows, held_);
  int64_t first = rows_;
  if (held_ > 0 && has_test_split(recipe)) {
    TRY(const DataSet test, test_split(recipe, progress));
    data = test.file;
    first = 0;
  }
  TRY(held_out_, hold_out(recipe.workload, data, recipe.training.input_divisor, first, held_));
  return Done{};
}

uint64_t TrainingSetup::seed_of(int seed) const {
  return tensor::mix(plan_.recipe.training.seed * 1000003 + static_cast<uint64_t>(seed)) >> 1;
}

Result<referee::Weights> TrainingSetup::lay_out(int seed) const {
  TRY(auto weights,
      write_initial_weights(plan_.recipe.workload, seed_of(seed), plan_.gate.weights, file("weights")));
  CHECK_OK(write_shuffled(plan_.recipe.workload, plan_.gate.data, rows_, seed_of(seed), data()));
  return weights;
}

std::vector<size_t> TrainingSetup::shuffled(std::vector<size_t> lanes, int seed) const {
  tensor::Rng rng(seed_of(seed), what_);
  tensor::shuffle(lanes, rng);
  return lanes;
}

TrainingProcess TrainingSetup::start(size_t lane, int seed) const {
  const ContenderStart& entry = plan_.lanes[lane].entry;
  WorkerSpec spec = entry.worker;
  spec.log_file =
      plan_.directory.logs() / fmt::format("{}.{}{}.log", entry.script.stem().string(), what_, seed);
  TrainingProcess process{.worker = Worker::start(spec)};
  Worker& worker = *process.worker;
  process.start_up_ns = worker.start_ns();
  if (const auto imported = worker.import()) {
    process.start_up_ns += imported->ns;
    process.effective = imported->effective;
  }
  const bool as_is = plan_.recipe.training.track == ir::Track::kAsIs;
  const auto built = worker.build({.script = entry.script,
                                   .weights = as_is ? fs::path() : file("weights"),
                                   .data = data(),
                                   .layout = entry.layout},
                                  process.effective);
  if (built) process.start_up_ns += *built;
  return process;
}

Result<referee::Weights> TrainingSetup::state(Worker& worker) const {
  if (!worker.state(file("state"))) return Error{.message = "the worker wrote no state"};
  return read_state(plan_.recipe.workload, file("state"), plan_.recipe.training.optimizer.ema != 0);
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

int64_t stretch_ns(const Burst& stretch, bool first) { return first ? stretch.ns : stretch.counted_ns(); }

std::optional<Failure> broken_rule(const Plan& plan, size_t lane, std::vector<Burst> bursts,
                                   const std::vector<HostRound>& rounds, const TrainingProcess& process) {
  if (bursts.empty()) return std::nullopt;
  Burst& first = bursts.front();
  // Of several the first one is left out, as 0 means there.
  if (bursts.size() > 1) first.elapsed_ns = 0;
  if (first.elapsed_ns > first.ns)
    first.elapsed_ns = std::max(first.ns, first.elapsed_ns - process.start_up_ns);
  const Contender& contender = plan.manifest.contenders[lane];
  const TrialBounds bounds = trial_bounds(contender, nullptr, plan.recipe.workload, plan.recipe.training,
                                          plan.manifest.host.cpus, nullptr);
  const Trial trial{.contender = contender.id,
                    .bursts = std::move(bursts),
                    .rounds = rounds,
                    .effective = process.effective};
  const std::vector<Broken> broken = check_trial(trial, bounds);
  if (broken.empty()) return std::nullopt;
  return Failure{Stage::kRun, broken.front().verdict(), {}};
}

std::optional<Failure> failure_of(const Plan& plan, size_t lane, std::vector<Burst> bursts,
                                  const std::vector<HostRound>& rounds, const TrainingProcess& process,
                                  const Status& looked) {
  std::optional<Failure> failure;
  if (!looked) failure = Failure{Stage::kState, looked.error().text(), {}};
  if (!process.worker->ok()) failure = process.worker->failure();
  // What it answered before its state was asked for is judged all the same.
  if (!failure || failure->stage == Stage::kState) {
    if (auto broken = broken_rule(plan, lane, std::move(bursts), rounds, process)) return broken;
  }
  return failure;
}

}  // namespace bakeoff
