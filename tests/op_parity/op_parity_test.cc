// Every op of the table through every framework: random shapes and attributes, prediction, loss, every
// gradient, running statistics and the optimizer's update in float64 against the referee. The cases are
// generated from the op table, so no op can be forgotten. And the same for predictions: every op once, in
// inference mode, in double and in single precision.
//
// BAKEOFF_OP_CASES=n tries n random workloads an op (default 2), BAKEOFF_OP_SEED another seed. An environment
// that is not there skips its frameworks, or fails them where BAKEOFF_REQUIRE_ENVS=1.

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "emit/all/frameworks.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "lab/environments.h"
#include "lab/gate.h"
#include "lab/runner_files.h"
#include "tensor/safetensors.h"
#include "zoo/op_cases.h"

namespace bakeoff::lab {
namespace {

constexpr int64_t kBatch = 4;

int64_t number_from(const char* variable, int64_t fallback) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoll(text) : fallback;
}

struct Target {
  const char* framework;
  const char* backend;  // "" where the framework has none
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.framework << " " << target.backend; }

std::string label(const ::testing::TestParamInfo<Target>& info) {
  const std::string backend = info.param.backend;
  return info.param.framework + (backend.empty() ? "" : "_" + backend);
}

// A random optimizer that all frameworks must express exactly.
ir::Optimizer random_optimizer(tensor::Rng& rng) {
  using K = ir::OptimizerKind;
  const K kinds[] = {K::kSgd, K::kRmsprop, K::kAdam, K::kAdamW};
  ir::Optimizer o{.kind = kinds[rng.integer(0, 3)], .lr = 1e-2, .eps = 1e-3};
  if (o.kind == K::kSgd && rng.chance(0.7)) {
    o.momentum = 0.9;
    o.nesterov = rng.chance(0.5);
  }
  if (o.kind == K::kRmsprop) {
    o.eps_form = rng.chance(0.5) ? ir::EpsForm::kInside : ir::EpsForm::kOutside;
    if (rng.chance(0.3)) o.momentum = 0.5;
  }
  if (o.kind == K::kAdam || o.kind == K::kAdamW) {
    const ir::EpsForm forms[] = {ir::EpsForm::kOutside, ir::EpsForm::kInside, ir::EpsForm::kHat};
    o.eps_form = forms[rng.integer(0, 2)];
  }
  if (o.kind == K::kAdamW) o.decay_form = ir::DecayForm::kDecoupled;
  if (o.kind == K::kAdamW || rng.chance(0.3)) o.weight_decay = 0.05;
  o.stated = {"kind", "lr"};
  return o;
}

class OpParity : public ::testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    framework_ = emit::find_framework(GetParam().framework);
    ASSERT_NE(framework_, nullptr);
    for (const emit::Setting& s : framework_->settings) settings_[s.name] = s.fallback;
    if (*GetParam().backend != '\0') settings_["backend"] = GetParam().backend;
    const std::string wanted = framework_->environment(settings_);
    for (const Environment& e : list_environments({.home = bakeoff_home()})) {
      if (e.name == wanted) python_ = e.ok() ? e.python : fs::path(), why_not_ = e.why_not();
    }
    if (python_.empty()) {
      if (std::getenv("BAKEOFF_REQUIRE_ENVS") != nullptr) FAIL() << why_not_;
      GTEST_SKIP() << why_not_;
    }
    std::string name = (fs::temp_directory_path() / "bakeoff_ops_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    runner_ = *unpack_runner(bakeoff_home());
  }
  void TearDown() override {
    if (worker_) worker_->close();
    if (!folder_.empty() && !HasFailure()) fs::remove_all(folder_);
  }

  // One worker serves all cases; a new one where a case has broken the last.
  Worker& worker(const GateContender& entry) {
    if (!worker_ || !worker_->ok()) {
      WorkerSpec spec = entry.worker;
      spec.dtype = dtype_;
      worker_ = Worker::start(spec);
      worker_->import();
    }
    return *worker_;
  }

  // Emits and proves one workload; gives what went wrong, "" if nothing.
  std::string prove(const ir::Workload& workload, const std::string& name, bool train, tensor::Rng& rng,
                    ir::Scenario scenario = ir::Scenario::kTrain) {
    GateJob job{.workload = workload, .rows = 2 * kBatch, .steps = 1, .folder = folder_};
    job.training.scenario = scenario;
    job.training.optimizer = random_optimizer(rng);
    job.training.batch = kBatch;
    job.training.seed = static_cast<uint64_t>(rng.integer(1, 1'000'000));
    job.data = folder_ / (name + ".data.safetensors");
    tensor::NamedTensors data;
    const auto inputs = zoo::random_inputs(workload, job.rows, rng);
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto raw = std::visit([](const auto& t) { return tensor::encode(t, stored(t)); }, inputs[i]);
      if (!raw) return raw.error().text();
      data.emplace_back(workload.inputs[i].name, std::move(*raw));
    }
    if (const auto written = tensor::write_safetensors(job.data, data); !written)
      return written.error().text();
    const auto reference = make_reference(job);
    if (!reference) return reference.error().text();

    GateContender entry;
    entry.contender = {
        .id = name, .framework = framework_->name, .environment = "", .settings = settings_, .script = ""};
    entry.script = folder_ / (name + ".py");
    entry.unbiased_running_var = framework_->unbiased_running_var(settings_);
    entry.worker = {.python = python_,
                    .runner = runner_,
                    .framework = framework_->name,
                    .options = settings_,
                    .environment = {{"OMP_NUM_THREADS", "1"}, {"TF_CPP_MIN_LOG_LEVEL", "2"}},
                    .log_file = folder_ / "worker.log",
                    .stage_seconds = 120};
    const auto emitted =
        framework_->emit({workload, job.training, settings_, entry.script.filename().string()});
    if (!emitted) return emitted.error().text();
    if (!write_file(entry.script, emitted->source)) return "cannot write the script";
    if (!emitted->layout_json.empty()) {
      entry.layout = folder_ / (name + ".layout.json");
      if (!write_file(entry.layout, emitted->layout_json)) return "cannot write the layout";
    }
    Parity parity;
    Tolerances tolerances;
    if (dtype_ == "float32") tolerances.output64 = tolerances.output32;
    prove_in(worker(entry), job, *reference, entry, train, parity, tolerances);
    return complaint(parity);
  }

  static tensor::DType stored(const tensor::Tensor&) { return tensor::DType::kF32; }
  static tensor::DType stored(const tensor::IntTensor&) { return tensor::DType::kI32; }

  static std::string complaint(const Parity& parity) {
    if (parity.failure)
      return parity.failure->stage + ": " + parity.failure->reason + "\n" + parity.failure->log_tail;
    if (parity.passed()) return "";
    return "diverges at " + parity.diverges_at + " by " + std::to_string(parity.divergence) + "; " +
           parity.explanation;
  }

  // Every op of the table once, and random networks.
  void predict(const std::string& dtype) {
    dtype_ = dtype;
    tensor::Rng rng(static_cast<uint64_t>(number_from("BAKEOFF_OP_SEED", 1)) + 4711);
    const auto check = [&](const ir::Workload& workload, const std::string& name) {
      const std::string problem = prove(workload, name, false, rng, ir::Scenario::kPredict);
      EXPECT_EQ(problem, "") << ir::dump(workload) << "files: " << folder_;
    };
    for (const ir::OpInfo& row : ir::op_table()) check(zoo::random_case(row.op, rng), "predict_" + row.name);
    for (int64_t n = 0; n < number_from("BAKEOFF_OP_CASES", 2); ++n)
      check(zoo::random_network(rng), "predict_network_" + std::to_string(n));
  }

  std::string dtype_ = "float64";
  const emit::Framework* framework_ = nullptr;
  emit::Settings settings_;
  fs::path python_, folder_, runner_;
  std::string why_not_ = "no such environment";
  std::unique_ptr<Worker> worker_;
};

TEST_P(OpParity, EveryOpComputesWhatTheRefereeComputes) {
  const int64_t cases = number_from("BAKEOFF_OP_CASES", 2);
  for (const ir::OpInfo& row : ir::op_table()) {
    tensor::Rng rng(static_cast<uint64_t>(number_from("BAKEOFF_OP_SEED", 1)) * 1000 +
                    static_cast<uint64_t>(row.op));
    for (int64_t n = 0; n < cases; ++n) {
      const ir::Workload workload = zoo::random_case(row.op, rng);
      const std::string problem = prove(workload, row.name + "_" + std::to_string(n), n == 0, rng);
      EXPECT_EQ(problem, "") << ir::dump(workload) << "files: " << folder_;
    }
  }
}

TEST_P(OpParity, RandomNetworksTrainAsTheRefereeTrains) {
  const int64_t cases = 2 * number_from("BAKEOFF_OP_CASES", 2);
  tensor::Rng rng(static_cast<uint64_t>(number_from("BAKEOFF_OP_SEED", 1)) + 77);
  for (int64_t n = 0; n < cases; ++n) {
    const ir::Workload workload = zoo::random_network(rng);
    const std::string problem = prove(workload, "network_" + std::to_string(n), true, rng);
    EXPECT_EQ(problem, "") << ir::dump(workload) << "files: " << folder_;
  }
}

class PredictionParity : public OpParity {};

TEST_P(PredictionParity, EveryOpPredictsWhatTheRefereePredicts) { predict("float64"); }

// In double precision ONNX's reference stands in where ONNX Runtime lacks a kernel: here every kernel is its
// own.
class SinglePredictionParity : public OpParity {};

TEST_P(SinglePredictionParity, EveryOpPredictsWhatTheRefereePredicts) { predict("float32"); }

INSTANTIATE_TEST_SUITE_P(Frameworks, SinglePredictionParity, ::testing::Values(Target{"onnxruntime", ""}),
                         label);

INSTANTIATE_TEST_SUITE_P(Frameworks, PredictionParity,
                         ::testing::Values(Target{"torch", ""}, Target{"tensorflow", ""}, Target{"jax", ""},
                                           Target{"keras", "tensorflow"}, Target{"keras", "jax"},
                                           Target{"keras", "torch"}, Target{"onnxruntime", ""}),
                         label);

INSTANTIATE_TEST_SUITE_P(Frameworks, OpParity,
                         ::testing::Values(Target{"torch", ""}, Target{"tensorflow", ""}, Target{"jax", ""},
                                           Target{"keras", "tensorflow"}, Target{"keras", "jax"},
                                           Target{"keras", "torch"}),
                         label);

}  // namespace
}  // namespace bakeoff::lab
