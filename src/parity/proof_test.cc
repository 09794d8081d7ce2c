#include "parity/proof.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cmath>
#include <optional>
#include <utility>

#include "base/texts.h"
#include "data/inputs.h"
#include "evidence/precision.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "parity/gate.h"
#include "parity/proof_variants.h"
#include "passes/predicting.h"
#include "plan/lane.h"
#include "plan/testing.h"
#include "plan/weights.h"
#include "proc/interrupt.h"
#include "referee/init.h"
#include "referee/optimizer.h"
#include "referee/train.h"
#include "reference/reference.h"
#include "zoo/zoo.h"

namespace bakeoff {
namespace {

using ir::Optimizer;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::fake_spec;
using testing::gate_job;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::network;
using ::testing::StartsWith;
using testing::TestFolder;
using ::testing::UnorderedElementsAre;

// A runner that answers what lies beside it: parity.safetensors (or what its option `recite` names),
// losses64.json and losses32.json.
constexpr const char* kReciter = R"(
import json, os, shutil, sys
folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
requests = os.fdopen(3)
def answer(**fields):
    os.write(4, (json.dumps(fields) + "\n").encode())
answer(id=0, ok=True, event="hello")
for line in requests:
    request = json.loads(line)
    rest = {}
    if request["op"] == "import":
        options = request["options"]
        seen = os.path.join(folder, "imported")
        count = int(open(seen).read()) if os.path.exists(seen) else 0
        with open(seen, "w") as log:
            print(count + 1, end="", file=log)
        rest = {"versions": {"reciter": "1"}, "effective": {"imported": "yes"}, "import_ns": 1}
    elif request["op"] == "build":
        dtype = request["dtype"]
        if options.get("refuse") == dtype:
            answer(id=request["id"], ok=False, error="no " + dtype + " here", traceback="")
            continue
        rest = {"effective": {"dtype": dtype}}
        scenario = request["scenario"]
        initial = "initial" in request["weights"]
        with open(os.path.join(folder, "batch." + dtype), "w") as log:
            print(request.get("batch"), end="", file=log)
        assert request["train"] == (scenario == "train")
        with open(os.path.join(folder, "built." + dtype), "a") as log:
            print(os.path.basename(request["weights"]), request["dropout"], file=log)
    elif request["op"] == "parity":
        assert request["batch"] == [0, 8]
        predicts = scenario == "predict"
        assert request["grads_in"] is None or dtype == "float64" and os.path.exists(request["grads_in"])
        name = "parity32.safetensors" if dtype == "float32" and initial else "parity.safetensors"
        if dtype == "float32" and not initial and os.path.exists(os.path.join(folder, "elsewhere.safetensors")):
            name = "elsewhere.safetensors"
        if request["activations"] and os.path.exists(os.path.join(folder, "layers.safetensors")):
            name = "layers.safetensors"
        name = options.get("recite", name)
        shutil.copy(os.path.join(folder, name), request["out"])
    elif request["op"] == "state":
        name = "state" + dtype[5:] + ".safetensors"
        if os.path.exists(os.path.join(folder, str(trained) + name)):
            name = str(trained) + name
        shutil.copy(os.path.join(folder, name), request["out"])
    elif request["op"] == "run":
        rest = {"ns": 5, "steps": request["steps"], "loss": None}
    elif request["op"] == "losses":
        trained = request["steps"]
        with open(os.path.join(folder, "losses" + dtype[5:] + ".json")) as file:
            rest = {"losses": json.load(file)[: request["steps"]], "first_ns": 7}
    elif request["op"] == "batches":
        seen = os.path.join(folder, "batches.json")
        if not os.path.exists(seen):
            answer(id=request["id"], ok=False, stage="protocol", error="ProtocolError: unknown op 'batches'")
            continue
        with open(seen) as file:
            rest = {"sha256": json.load(file)[: request["count"]]}
    answer(id=request["id"], ok=True, **rest)
    if request["op"] == "close":
        sys.exit(0)
)";

// What a contender writes, by canonical name.
using Dump = std::map<std::string, tensor::Tensor>;

class GateTest : public ::testing::Test {
 protected:
  void SetUp() override { set_up(gate_job(folder_.path(), {.kind = ir::OptimizerKind::kAdam, .lr = 0.01})); }

  void set_up(GateJob job) {
    job_ = std::move(job);
    auto reference = make_reference(job_);
    ASSERT_TRUE(reference) << reference.error().text();
    reference_ = std::move(*reference);
    ASSERT_TRUE(write_file(folder_ / "bakeoff_runner/__main__.py", kReciter));
    entry_.contender.id = "reciter";
    entry_.script = folder_ / "train_reciter.py";
    entry_.worker = fake_spec();
    entry_.worker.framework = "reciter";
    entry_.worker.runner = folder_.path();
    losses64_ = reference_.losses64;
    losses32_ = reference_.losses32;
  }

  // What it shows in float32, and where training leaves its parameters.
  Dump perfect32() const {
    if (reference_.at32.gradients.empty()) return perfect();  // as-is: nothing is compared in float32
    Dump dump = {{"loss", {{}, {reference_.at32.loss}}}, {"output", reference_.at32.prediction}};
    for (size_t id = 0; id < job_.workload.parameters.size(); ++id) {
      if (ir::trainable(job_.workload.parameters[id]))
        dump["grad/" + job_.workload.parameters[id].name] = reference_.at32.gradients[id];
    }
    return dump;
  }
  Dump named(const referee::Weights& weights) const {
    Dump dump;
    for (size_t id = 0; id < weights.size(); ++id) dump[job_.workload.parameters[id].name] = weights[id];
    return dump;
  }
  void write(const std::string& name, const Dump& dump) const {
    tensor::NamedTensors named;
    for (const auto& [key, tensor] : dump) {
      named.emplace_back(key, tensor::encode(tensor, tensor::DType::kF64).value());
    }
    ASSERT_TRUE(tensor::write_safetensors(folder_ / name, named));
  }

  // The referee's own answer: a perfect contender.
  Dump perfect() const {
    Dump dump = {{"loss", {{}, {reference_.at.loss}}}, {"output", reference_.at.prediction}};
    for (size_t id = 0; id < job_.workload.parameters.size(); ++id) {
      const ir::Parameter& p = job_.workload.parameters[id];
      if (ir::trainable(p)) {
        dump["grad/" + p.name] = reference_.at.gradients[id];
        dump["update/" + p.name] = reference_.updated[id];
      } else {
        dump["buffer/" + p.name] = reference_.at.running.biased[id];
      }
    }
    return dump;
  }

  static void scale_gradients(Dump& dump, double factor) {
    for (auto& [name, tensor] : dump) {
      if (!name.starts_with("grad/")) continue;
      for (double& value : tensor.data) value *= factor;
    }
  }

  Parity prove(const Dump& dump, const Tolerances& tolerances = {}) {
    write("parity.safetensors", dump);
    write("parity32.safetensors", dump32_.value_or(perfect32()));
    if (!reference_.after64.empty()) {
      write("state64.safetensors", state64_.value_or(named(reference_.after64)));
      write("state32.safetensors", state32_.value_or(named(reference_.after32)));
    }
    EXPECT_TRUE(write_file(folder_ / "losses64.json", json(losses64_)));
    EXPECT_TRUE(write_file(folder_ / "losses32.json", json(losses32_)));
    Proof proof(entry_);
    proof.float64(job_, reference_, tolerances);
    if (job_.training.track == ir::Track::kEqualised) proof.float32(job_, reference_, tolerances);
    return proof.parity;
  }

  static std::string json(const std::vector<double>& losses) {
    std::vector<std::string> words;
    for (const double loss : losses)
      words.push_back(std::isnan(loss) ? "\"nan\"" : fmt::format("{:.17g}", loss));
    return fmt::format("[{}]", join(words, ", "));
  }

  static std::vector<std::string> groups(const Parity& parity, bool passed) {
    std::vector<std::string> found;
    for (const ParityCheck& check : parity.checks) {
      if (check.passed == passed) found.push_back(check.what);
    }
    return found;
  }

  TestFolder folder_;
  GateJob job_;
  Reference reference_;
  ContenderStart entry_;
  std::vector<double> losses64_, losses32_;
  std::optional<Dump> dump32_ = {}, state64_ = {}, state32_ = {};  // instead of perfect ones
};

// Scales a tensor's distance from what it was to `relative` of its norm.
void disturb(tensor::Tensor& tensor, double relative) { tensor.data[0] += relative * tensor::norm(tensor); }

TEST_F(GateTest, ThePerfectContenderPassesEveryGroup) {
  const Parity parity = prove(perfect());
  ASSERT_FALSE(parity.failure) << parity.failure->reason;
  EXPECT_TRUE(parity.passed());
  EXPECT_THAT(groups(parity, true),
              ElementsAre("float64 prediction", "float64 loss", "float64 gradients", "optimizer update",
                          "running statistics", "float64 training steps", "float64 parameters",
                          "float32 losses", "float32 parameters", "float32 prediction", "float32 gradients"));
  for (const ParityCheck& check : parity.checks) EXPECT_LE(check.error, 1e-14) << check.what;
  EXPECT_EQ(parity.explanation, "");
  EXPECT_EQ(parity.contender, "reciter");
  EXPECT_EQ(parity.losses, reference_.losses32);
  EXPECT_EQ(parity.first_step_cold_ns, 7);
  EXPECT_EQ(parity.versions.at("reciter"), "1");
  EXPECT_EQ(parity.effective.at("dtype"), "float32");
  EXPECT_EQ(parity.effective.at("imported"), "yes");
  // Each proof from its own weights; of dropout nothing is turned off where the recipe has none.
  EXPECT_EQ(read_file(folder_ / "built.float64").value(), "gate_weights.safetensors True\n");
  EXPECT_EQ(read_file(folder_ / "built.float32").value(), "gate_initial.safetensors True\n");
}

TEST_F(GateTest, EveryBatchOfAnEpochIsTheRecipes) {
  const auto quoted = [](std::vector<std::string> hashes) {
    return fmt::format("[\"{}\"]", join(hashes, "\", \""));
  };
  ASSERT_GE(reference_.batches.size(), 3u);
  ASSERT_TRUE(write_file(folder_ / "batches.json", quoted(reference_.batches)));
  const Parity same = prove(perfect());
  EXPECT_TRUE(same.passed());
  EXPECT_THAT(groups(same, true), ::testing::Contains("batches"));
  std::vector<std::string> other = reference_.batches;
  std::swap(other[1], other[2]);
  ASSERT_TRUE(write_file(folder_ / "batches.json", quoted(other)));
  const Parity swapped = prove(perfect());
  EXPECT_EQ(swapped.diverges_at, "batch 1");
  EXPECT_THAT(swapped.explanation, HasSubstr("delivers other rows, or in another order, from batch 1 on"));
}

// The reciter is its own twin; what it recites for the variant is further away than float32.
TEST_F(GateTest, AVariantsDistanceIsKeptAndRefusedOnlyWhereNoRoundingExplainsIt) {
  ASSERT_TRUE(prove(perfect()).passed());
  entry_.contender.settings = {{"precision", "bfloat16"}};
  entry_.twin_script = entry_.script;
  const auto recited = [&](const Dump& dump) {
    prove(dump);  // leaves the files behind that are recited now
    Parity parity;
    prove_variant(job_, reference_, entry_, parity);
    return parity;
  };
  const auto variant = [&](double relative) {
    Dump dump = perfect();
    dump["loss"].data[0] *= 1 + relative;
    scale_gradients(dump, 1 + 3 * relative);
    return recited(dump);
  };
  const Parity near = variant(0.01);
  ASSERT_FALSE(near.failure) << near.failure->reason;
  EXPECT_TRUE(near.passed());
  EXPECT_NEAR(*loss_distance(near), 0.01, 1e-9);
  EXPECT_NEAR(*gradient_distance(near), 0.03, 1e-9);
  EXPECT_EQ(near.losses, reference_.losses32);
  const Parity far = variant(0.2);
  EXPECT_FALSE(far.passed());
  EXPECT_EQ(far.diverges_at, "bfloat16 loss");
  Dump halved = perfect();
  scale_gradients(halved, 0.5);
  EXPECT_EQ(recited(halved).diverges_at, "bfloat16 gradient norm");
  Dump turned = perfect();
  scale_gradients(turned, -1);
  EXPECT_EQ(recited(turned).diverges_at, "bfloat16 gradients");
}

// With one word in answer the likeliest one stands in the logits.
TEST_F(GateTest, AVariantThatGeneratesIsJudgedByItsLogitsAndWords) {
  GateJob job = gate_job(folder_.path());
  job.workload = *ir::parse(R"(workload lm(ids: i32[N,5], y: i32[N,5]) {
    e = embedding(ids; weight=embed.weight[9,8])
    head = linear(e; weight=head.weight[9,8])
    loss = softmax_cross_entropy(head, y)
  })");
  job.training.scenario = ir::Scenario::kGenerate;
  job.training.generation = {.prompt = 3, .words = 1};
  ASSERT_TRUE(testing::write_random_data(job.workload, job.rows, 9, job.data));
  set_up(std::move(job));
  entry_.contender.settings = {{"precision", "bfloat16"}};
  entry_.twin_script = entry_.script;
  const auto judged = [&](double relative, int64_t beside) {
    tensor::Tensor output = reference_.at.prediction, words = tensor::zeros({8, 1});
    for (int64_t row = 0; row < 8; ++row) {
      const auto begin = output.data.begin() + 9 * row;
      words.data[static_cast<size_t>(row)] =
          static_cast<double>((std::max_element(begin, begin + 9) - begin + beside) % 9);
    }
    for (double& logit : output.data) logit *= 1 + relative;
    write("parity.safetensors", {{"output", output}, {"words", words}});
    Parity parity;
    prove_variant(job_, reference_, entry_, parity);
    EXPECT_FALSE(parity.failure);
    return parity;
  };
  const Parity near = judged(0.01, 0);
  EXPECT_TRUE(near.passed()) << near.diverges_at;
  EXPECT_THAT(groups(near, true), ElementsAre("bfloat16 logits", "bfloat16 words"));
  EXPECT_EQ(near.first_step_cold_ns, 5);
  EXPECT_EQ(near.effective.at("dtype"), "float32");
  EXPECT_EQ(judged(0.2, 0).diverges_at, "bfloat16 logits");
  EXPECT_EQ(judged(0.001, 1).diverges_at, "bfloat16 words");
  EXPECT_EQ(judged(std::nan(""), 0).diverges_at, "bfloat16 logits");
}

TEST_F(GateTest, AsIsAVariantsDistanceIsThatFromItsOwnTwin) {
  GateJob job = job_;
  job.training.track = ir::Track::kAsIs;
  set_up(std::move(job));
  entry_.contender.settings = {{"precision", "bfloat16"}};
  entry_.twin_script = entry_.script;
  entry_.twin_options = {{"recite", "twin.safetensors"}};
  // The twin is another model than the referee's, with defaults of its own.
  const auto scaled = [&](double loss, double gradients) {
    Dump dump = perfect();
    dump["loss"].data[0] *= loss;
    scale_gradients(dump, gradients);
    return dump;
  };
  prove(scaled(1.2, 3));
  fs::rename(folder_ / "parity.safetensors", folder_ / "twin.safetensors");
  prove(scaled(1.2 * 1.01, 3 * 1.03));
  Parity parity;
  prove_variant(job_, reference_, entry_, parity);
  ASSERT_FALSE(parity.failure) << parity.failure->reason;
  EXPECT_TRUE(parity.passed());
  EXPECT_NEAR(loss_distance(parity).value(), 0.01, 1e-9);
  EXPECT_NEAR(gradient_distance(parity).value(), 0.03, 1e-9);
  EXPECT_EQ(parity.checks.size(), 3u)
      << "loss, gradients and their norm; no losses of steps, no batches: everybody trains in his own way";
  EXPECT_TRUE(parity.losses.empty());

  entry_.twin_options["refuse"] = "float32";
  Parity without;
  prove_variant(job_, reference_, entry_, without);
  ASSERT_TRUE(without.failure);
  EXPECT_FALSE(loss_distance(without));
}

TEST_F(GateTest, TheReferenceHidesNothingThatStartsAtZero) {
  const auto initial = referee::initial_weights(job_.workload, job_.training.seed);
  for (size_t id = 0; id < reference_.weights.size(); ++id) {
    const std::string& name = job_.workload.parameters[id].name;
    EXPECT_NE(reference_.weights[id], initial[id]) << name;
    for (const double w : reference_.weights[id].data) {
      EXPECT_EQ(w, static_cast<double>(static_cast<float>(w))) << name << " is rounded to float32";
    }
  }
  EXPECT_EQ(reference_.losses64.size(), 5u) << "as many as in float32: they cost little";
  EXPECT_EQ(reference_.losses32.size(), 5u);
  EXPECT_EQ(reference_.losses64[0], reference_.at.loss);
  EXPECT_NE(reference_.losses32[0], reference_.at.loss) << "other weights";
}

// Its gradient is a sum that cancels: every framework rounds it differently, around 1e-17.
TEST_F(GateTest, ABiasBeforeBatchNormMayHaveAnyRounding) {
  const auto id = static_cast<size_t>(job_.workload.find_parameter("conv1.bias"));
  EXPECT_LT(tensor::norm(reference_.at.gradients[id]), 1e-14);
  Dump dump = perfect();
  for (double& g : dump["grad/conv1.bias"].data) g = -3 * g + 1e-17;
  EXPECT_TRUE(prove(dump).passed());
  for (double& g : dump["grad/conv1.bias"].data) g = 1e-6;  // but not any value
  EXPECT_EQ(prove(dump).diverges_at, "grad/conv1.bias");
}

TEST_F(GateTest, AGradientOffByAMillionthFailsAndIsNamedFirst) {
  Dump dump = perfect();
  disturb(dump["grad/fc1.weight"], 1e-9);
  EXPECT_TRUE(prove(dump).passed()) << "below the tolerance of 1e-8";
  dump = perfect();
  disturb(dump["grad/fc1.weight"], 1e-6);
  disturb(dump["grad/fc2.weight"], 1e-3);
  losses64_[2] *= 1.1;
  const Parity parity = prove(dump);
  EXPECT_FALSE(parity.passed());
  EXPECT_EQ(parity.diverges_at, "grad/fc1.weight");
  EXPECT_NEAR(parity.divergence, 1e-6, 1e-8);
  EXPECT_THAT(groups(parity, false), ElementsAre("float64 gradients", "float64 training steps"));
  for (const ParityCheck& check : parity.checks) {
    if (check.what == "float64 gradients") {
      EXPECT_EQ(check.tensor, "grad/fc2.weight") << "the worst";
    }
  }
}

struct Fault {
  const char* tensor;
  double relative;  // above its group's tolerance
  const char* group;
};

TEST_F(GateTest, EveryTensorIsHeldAgainstTheReferee) {
  for (const Fault& fault : {Fault{"output", 1e-7, "float64 prediction"}, Fault{"loss", 1e-8, "float64 loss"},
                             Fault{"grad/ln.bias", 1e-7, "float64 gradients"},
                             Fault{"buffer/bn1.running_mean", 1e-6, "running statistics"},
                             Fault{"buffer/bn1.running_var", 1e-6, "running statistics"}}) {
    SCOPED_TRACE(fault.tensor);
    Dump dump = perfect();
    disturb(dump[fault.tensor], fault.relative);
    const Parity parity = prove(dump);
    EXPECT_THAT(groups(parity, false), ElementsAre(fault.group));
    EXPECT_THAT(parity.diverges_at,
                HasSubstr(std::string(fault.tensor) == "output" ? "prediction" : fault.tensor));
  }
}

TEST_F(GateTest, WhatIsMissingOrNoNumberIsInfinitelyFar) {
  for (const std::string name :
       {"loss", "output", "grad/fc1.weight", "update/conv2.bias", "buffer/bn1.running_var"}) {
    SCOPED_TRACE(name);
    Dump dump = perfect();
    dump.at(name).data[0] = std::nan("");
    const Parity no_number = prove(dump);
    EXPECT_FALSE(no_number.passed());
    EXPECT_TRUE(std::isinf(no_number.divergence)) << no_number.divergence;
    dump.erase(name);
    const Parity missing = prove(dump);
    EXPECT_FALSE(missing.passed());
    EXPECT_TRUE(std::isinf(missing.divergence)) << missing.divergence;
  }
}

TEST_F(GateTest, AnUpdateIsMeasuredByItsStep) {
  Dump dump = perfect();
  const auto id = static_cast<size_t>(job_.workload.find_parameter("fc2.weight"));
  // A thousandth of the step, invisible against the parameter itself.
  for (size_t i = 0; i < dump["update/fc2.weight"].data.size(); ++i) {
    dump["update/fc2.weight"].data[i] +=
        1e-3 * (reference_.updated[id].data[i] - reference_.weights[id].data[i]);
  }
  const Parity parity = prove(dump);
  EXPECT_EQ(parity.diverges_at, "update/fc2.weight");
  EXPECT_NEAR(parity.divergence, 1e-3, 1e-6);
}

TEST_F(GateTest, UnbiasedRunningVarianceIsRightWhereTheFrameworkDeclaresIt) {
  Dump dump = perfect();
  for (const char* name : {"bn1.running_mean", "bn1.running_var"}) {
    dump[std::string("buffer/") + name] =
        reference_.at.running.unbiased[static_cast<size_t>(job_.workload.find_parameter(name))];
  }
  const Parity undeclared = prove(dump);
  EXPECT_EQ(undeclared.diverges_at, "buffer/bn1.running_var");
  EXPECT_EQ(undeclared.explanation, "matches: running variance from the unbiased batch variance");
  entry_.unbiased_running_var = true;
  EXPECT_TRUE(prove(dump).passed());
}

TEST_F(GateTest, AFailureIsExplained) {
  ir::Optimizer theirs = job_.training.optimizer;
  theirs.eps_form = ir::EpsForm::kHat;
  referee::Weights updated = reference_.weights;
  auto state = referee::initial_state(updated);
  referee::step(theirs, reference_.at.gradients, state, updated);
  Dump dump = perfect();
  for (size_t id = 0; id < updated.size(); ++id) {
    const ir::Parameter& p = job_.workload.parameters[id];
    if (ir::trainable(p)) dump["update/" + p.name] = updated[id];
  }
  const auto batches = read_batches(job_.workload, job_.training, job_.data, job_.rows, job_.steps).value();
  const auto run = referee::train(job_.workload, theirs, reference_.weights, batches).value();
  losses64_ = run.losses;
  state64_ = named(run.weights);
  const Parity parity = prove(dump);
  EXPECT_THAT(groups(parity, false),
              ElementsAre("optimizer update", "float64 training steps", "float64 parameters"));
  EXPECT_EQ(parity.explanation, "matches: epsilon that is not bias-corrected (the 'hat' form)");
}

TEST_F(GateTest, ToleranceOfFloat32LossesGrowsWithTheStep) {
  const Tolerances t;
  for (size_t k = 0; k < losses32_.size(); ++k) {
    const double allowed = t.losses32_first + static_cast<double>(k) * t.losses32_growth;
    losses32_[k] = reference_.losses32[k] * (1 + 0.9 * allowed);
  }
  EXPECT_TRUE(prove(perfect()).passed());
  losses32_ = reference_.losses32;
  losses32_[0] *= 1 + 3 * t.losses32_first;  // what step 4 may have, step 0 may not
  losses32_[4] *= 1 + 3 * t.losses32_first;
  const Parity parity = prove(perfect());
  EXPECT_EQ(parity.diverges_at, "float32 loss of step 0");
  EXPECT_THAT(groups(parity, false), ElementsAre("float32 losses"));
  losses32_ = reference_.losses32;
  losses32_[3] = std::nan("");
  EXPECT_EQ(prove(perfect()).diverges_at, "float32 loss of step 3");
}

TEST_F(GateTest, TheFirstDivergenceIsKeptWhenTheFloat32ProofFollows) {
  Dump dump = perfect();
  disturb(dump["grad/fc1.weight"], 1e-6);
  losses32_[0] *= 2;
  EXPECT_EQ(prove(dump).diverges_at, "grad/fc1.weight");
}

// They run those steps as they are written: the adapters compile nothing in double precision.
TEST_F(GateTest, CompiledContendersProveTheFloat64StepsToo) {
  for (const char* compile : {"default", "off"}) {
    entry_.contender.settings = {{"compile", compile}};
    losses64_[1] = 99;
    EXPECT_EQ(prove(perfect()).diverges_at, "loss of step 1");
    losses64_ = reference_.losses64;
    EXPECT_TRUE(prove(perfect()).passed());
  }
}

// Losses after steps at a learning rate of 1e-7 differ by nothing; parameters do, as a share of their moves.
TEST_F(GateTest, ParametersAfterTheFloat64StepsAreHeldAgainstTheirMoves) {
  Optimizer small = job_.training.optimizer;
  small.lr = 1e-7;
  set_up(gate_job(folder_.path(), small));
  const auto id = static_cast<size_t>(job_.workload.find_parameter("fc2.weight"));
  state64_ = named(reference_.after64);
  for (size_t i = 0; i < reference_.weights[id].data.size(); ++i) {
    state64_->at("fc2.weight").data[i] +=
        1e-5 * (reference_.after64[id].data[i] - reference_.weights[id].data[i]);
  }
  const Parity parity = prove(perfect());
  EXPECT_EQ(parity.diverges_at, "moved/fc2.weight");
  EXPECT_THAT(groups(parity, false), ElementsAre("float64 parameters"));
  EXPECT_NEAR(parity.divergence, 1e-5, 1e-7);
  state64_->erase("fc2.weight");
  EXPECT_TRUE(std::isinf(prove(perfect()).divergence));
}

// What rounding does to a gradient near zero is a whole step of RMSprop's or Adam's: it is allowed for.
TEST_F(GateTest, RoundingThatAnOptimizerAmplifiesIsAllowedFor) {
  Optimizer sharp = job_.training.optimizer;
  sharp.eps = 1e-14;
  set_up(gate_job(folder_.path(), sharp));
  const auto bias = static_cast<size_t>(job_.workload.find_parameter("conv1.bias"));
  ASSERT_LT(tensor::norm(reference_.at.gradients[bias]), 1e-14) << "zero by mathematics";
  EXPECT_GT(reference_.noise64[bias], 1e-3 * sharp.lr);
  for (const char* name : {"fc1.weight", "fc2.weight"}) {
    const auto id = static_cast<size_t>(job_.workload.find_parameter(name));
    EXPECT_LT(reference_.noise64[id], 1e-9 * static_cast<double>(reference_.weights[id].data.size())) << name;
  }
}

// A training at a high learning rate carries rounding far. The referee's own float32 training says how far it may go,
// up to a tenth of a loss; beyond, the recipe is named and not the contender.
TEST_F(GateTest, ATrainingThatAmplifiesRoundingSetsItsOwnLimit) {
  struct Case {
    double lr;
    size_t step;       // whose loss is away
    const char* sets;  // the limit
    const char* why;
  };
  const auto own = [&](size_t step) { return 10 * rounded_path(job_, reference_).losses[step]; };
  for (const Case& c :
       {Case{0.01, 3, "tolerance", "lower precision"}, Case{30, 3, "rounding", "lower precision"},
        Case{1000, 4, "a tenth", "amplifies rounding too much"}}) {
    SCOPED_TRACE(c.lr);
    set_up(gate_job(folder_.path(), {.kind = ir::OptimizerKind::kSgd, .lr = c.lr}));
    const Tolerances t;
    const double fixed = t.losses32_first + static_cast<double>(c.step) * t.losses32_growth;
    const double allowed = std::max(fixed, std::min(own(c.step), 0.1));
    ASSERT_STREQ(allowed == fixed ? "tolerance" : allowed == 0.1 ? "a tenth" : "rounding", c.sets);
    losses32_[c.step] *= 1 + 0.9 * allowed;
    EXPECT_TRUE(prove(perfect()).passed());
    losses32_[c.step] = reference_.losses32[c.step] * (1 + 1.1 * allowed);
    const Parity refused = prove(perfect());
    EXPECT_EQ(refused.diverges_at, fmt::format("float32 loss of step {}", c.step));
    EXPECT_THAT(refused.explanation, HasSubstr(c.why));
    losses32_ = reference_.losses32;
    dump32_ = perfect32();
    dump32_->at("output").data[0] *= 1.1;
    EXPECT_THAT(prove(perfect()).explanation, HasSubstr("lower precision")) << "of one step, no training";
    dump32_.reset();
    // However far rounding carries the parameters: half of the moves is another training.
    state32_ = named(reference_.after32);
    for (size_t id = 0; id < reference_.after32.size(); ++id) {
      auto& tensor = state32_->at(job_.workload.parameters[id].name);
      for (size_t i = 0; i < tensor.data.size(); ++i)
        tensor.data[i] += 0.5 * (reference_.after32[id].data[i] - reference_.initial[id].data[i]);
    }
    EXPECT_THAT(groups(prove(perfect()), false),
                ElementsAre(AnyOf("float32 parameters", StartsWith("float32 after "))));
    state32_.reset();
  }
}

// Ten steps amplify rounding beyond what can be compared, as those of deep networks with batch norms do: fewer are.
TEST_F(GateTest, WhereTenStepsAmplifyRoundingTheFirstOnesAreCompared) {
  const double share = (0.3 - Tolerances().moved32) / 10;
  FirstSteps first;
  for (double lr = 20; lr < 2000 && (first.steps == 0 || first.steps == job_.steps); lr *= 1.3) {
    set_up(gate_job(folder_.path(), {.kind = ir::OptimizerKind::kSgd, .lr = lr}));
    first = comparable_steps(job_, reference_, share);
  }
  ASSERT_TRUE(first.steps > 0 && first.steps < job_.steps) << first.steps;
  const auto off = [&](const referee::Weights& after, double share_of_moves) {
    Dump state = named(after);
    for (size_t id = 0; id < after.size(); ++id) {
      auto& data = state.at(job_.workload.parameters[id].name).data;
      for (size_t i = 0; i < data.size(); ++i)
        data[i] += share_of_moves * (after[id].data[i] - reference_.initial[id].data[i]);
    }
    return state;
  };
  state32_ = off(reference_.after32, 0.31);
  const std::string name = std::to_string(first.steps) + "state32.safetensors";
  write(name, off(first.after, 1e-3));
  const Parity same = prove(perfect());
  EXPECT_TRUE(same.passed()) << same.diverges_at << " " << same.divergence;
  EXPECT_THAT(groups(same, true), Contains(HasSubstr("float32 after ")));
  write(name, off(first.after, 0.31));
  EXPECT_EQ(prove(perfect()).diverges_at, "moved/all parameters");
  // What rounding does not explain is refused by the ten steps themselves.
  write(name, off(first.after, 1e-3));
  state32_ = off(reference_.after32, 100);
  EXPECT_THAT(groups(prove(perfect()), false), ElementsAre("float32 parameters"));
}

// Half precision that float64 cannot show.
TEST_F(GateTest, MoreRoundingThanFloat32sIsRefused) {
  const auto coarse = [](tensor::Tensor tensor, double bits) {
    for (double& x : tensor.data) {
      int exponent = 0;
      const double mantissa = std::frexp(x, &exponent);
      x = std::ldexp(std::round(std::ldexp(mantissa, static_cast<int>(bits))),
                     exponent - static_cast<int>(bits));
    }
    return tensor;
  };
  for (const auto& [bits, passes] : {std::pair{24.0, true}, {20.0, true}, {11.0, false}, {8.0, false}}) {
    SCOPED_TRACE(bits);
    dump32_ = perfect32();
    for (auto& [name, tensor] : *dump32_) {
      if (name.starts_with("grad/")) tensor = coarse(tensor, bits);
    }
    const Parity gradients = prove(perfect());
    EXPECT_EQ(gradients.passed(), passes) << gradients.diverges_at << " " << gradients.divergence;
    if (passes) continue;
    EXPECT_THAT(groups(gradients, false), ElementsAre("float32 gradients"));
    EXPECT_THAT(gradients.explanation,
                HasSubstr("it equals the recipe in float64, but differs more in float32"));
    dump32_ = perfect32();
    dump32_->at("output") = coarse(dump32_->at("output"), bits);
    EXPECT_THAT(groups(prove(perfect()), false), ElementsAre("float32 prediction"));
  }
  // By the steps as they will be timed: parameters say what no proof of one step was told.
  dump32_.reset();
  state32_ = named(reference_.after32);
  for (size_t id = 0; id < reference_.after32.size(); ++id) {
    auto& tensor = state32_->at(job_.workload.parameters[id].name);
    for (size_t i = 0; i < tensor.data.size(); ++i)
      tensor.data[i] += 0.05 * (reference_.after32[id].data[i] - reference_.initial[id].data[i]);
  }
  EXPECT_THAT(groups(prove(perfect()), false), ElementsAre("float32 parameters"));
}

// The gradient of a bias before a batch norm is zero: what is left of it is the rounding of terms that cancel, here 3e-13
// of the largest gradient, as Keras 2 had it in a network of random ops.
TEST_F(GateTest, GradientsThatAreZeroByMathematicsAreRounding) {
  GateJob job = gate_job(folder_.path(), {.kind = ir::OptimizerKind::kSgd, .lr = 0.01});
  ir::Builder b("normed");
  const auto x = b.input("x", {ir::DType::kF32, {ir::kBatch, 4}});
  const auto y = b.input("y", {ir::DType::kI32, {ir::kBatch}});
  const auto h = b.relu(b.batch_norm(b.linear(x, "fc1", 5), "bn"));
  job.workload = b.finish(b.softmax_cross_entropy(b.linear(h, "fc2", 3), y)).value();
  ASSERT_TRUE(testing::write_random_data(job.workload, job.rows, 3, job.data));
  set_up(std::move(job));
  double largest = 0;
  for (const tensor::Tensor& g : reference_.at.gradients) largest = std::max(largest, tensor::norm(g));
  const auto right = [&](const char* gradient, double off) {
    Dump dump = perfect();
    dump.at(gradient).data[0] += off * largest;
    return prove(dump).passed();
  };
  EXPECT_TRUE(right("grad/fc1.bias", 3e-13));
  EXPECT_FALSE(right("grad/fc1.bias", 3e-12));
  EXPECT_FALSE(right("grad/fc1.weight", 1e-7));
}

// At initial weights biases are zero, and so is what a convolution makes of the empty part of a picture, but where
// cuDNN transforms it: JAX on a GPU lets ReLUs pass there. At other weights it has to agree.
TEST_F(GateTest, ReluOfExactlyZeroIsOnAnySideInFloat32AndGradientsAreComparedElsewhere) {
  // Half of the values are zero, and what a kernel of 1 x 1 makes of them.
  GateJob job = gate_job(folder_.path(), {.kind = ir::OptimizerKind::kAdam, .lr = 0.01});
  ir::Builder b("empty");
  const auto x = b.input("x", {ir::DType::kF32, {ir::kBatch, 1, 6, 6}});
  const auto y = b.input("y", {ir::DType::kI32, {ir::kBatch}});
  const auto h = b.relu(b.conv(b.relu(x), "conv", {.channels = 3, .kernel = {1, 1}}));
  job.workload =
      b.finish(b.softmax_cross_entropy(b.linear(b.apply(ir::Op::kFlatten, {h}), "fc", 3), y)).value();
  ASSERT_TRUE(testing::write_random_data(job.workload, job.rows, 3, job.data));
  set_up(std::move(job));
  const auto open = referee::evaluate(job_.workload, reference_.initial, reference_.batch,
                                      {.round_to_float32 = true, .edges = referee::Edges::kOpenAtZero});
  dump32_ = perfect32();
  for (size_t id = 0; id < job_.workload.parameters.size(); ++id)
    dump32_->at("grad/" + job_.workload.parameters[id].name) = open->gradients[id];
  ASSERT_GT(zeros_distance(job_, reference_)[1], 0.1) << "the first bias";
  ASSERT_LT(rounding_distance(job_, reference_).gradients[1], 1e-5) << "zero is no edge of its own";
  const Parity honest = prove(perfect());
  EXPECT_TRUE(honest.passed()) << honest.diverges_at << " " << honest.divergence;
  EXPECT_THAT(read_file(folder_ / "built.float32").value(), HasSubstr("gate_weights.safetensors"));
  // At the gate's weights zeros explain nothing; and beyond what they explain nothing else is asked.
  Dump coarse = perfect();
  disturb(coarse.at("grad/conv.bias"), 1e-3);
  write("elsewhere.safetensors", coarse);
  const Parity cheat = prove(perfect());
  EXPECT_THAT(groups(cheat, false), ElementsAre("float32 gradients"));
  EXPECT_NEAR(cheat.divergence, 1e-3, 1e-5) << "what it shows there";
  fs::remove(folder_ / "built.float32");
  scale_gradients(*dump32_, 20);
  EXPECT_THAT(groups(prove(perfect()), false), ElementsAre("float32 gradients"));
  EXPECT_EQ(read_file(folder_ / "built.float32").value(), "gate_initial.safetensors True\n");
}

// Results decide: what layers show only says where a difference begins.
TEST_F(GateTest, OutputsOfLayersLocateAndNeverDecide) {
  Dump layers = perfect();
  const auto output_of = [&](const char* layer) -> const tensor::Tensor& {
    for (size_t n = 0; n < job_.workload.nodes.size(); ++n) {
      const ir::Node& node = job_.workload.nodes[n];
      if (!node.params.empty() &&
          job_.workload.parameters[static_cast<size_t>(node.params[0].param)].name.starts_with(
              std::string(layer) + "."))
        return std::get<tensor::Tensor>(
            reference_.at.activations[static_cast<size_t>(job_.workload.output_of(static_cast<int>(n)))]);
    }
    throw std::runtime_error(layer);
  };
  for (const char* layer : {"conv1", "bn1", "conv2", "fc1", "ln", "fc2"})
    layers[std::string("activation/") + layer] = output_of(layer);
  layers["activation/conv1"].data[0] += 1;  // fused with what follows
  write("layers.safetensors", layers);
  EXPECT_TRUE(prove(perfect()).passed());
  Dump wrong = perfect();
  disturb(wrong["output"], 1e-3);
  EXPECT_EQ(prove(wrong).diverges_at, "prediction") << "a later layer agrees: conv1 is not the place";
  disturb(layers["activation/fc1"], 1e-3);
  disturb(layers["activation/ln"], 1e-3);
  disturb(layers["activation/fc2"], 1e-3);
  write("layers.safetensors", layers);
  EXPECT_EQ(prove(wrong).diverges_at, "output of fc1");
}

TEST_F(GateTest, AnotherShapeIsNamedBesideTheRecipes) {
  Dump dump = perfect();
  dump["output"].shape = {8, 3, 1};
  const Parity parity = prove(dump);
  EXPECT_EQ(parity.diverges_at, "prediction");
  EXPECT_EQ(parity.explanation, "the prediction has shape [8,3,1], the recipe's has [8,3]");
  dump.erase("output");
  EXPECT_EQ(prove(dump).explanation, "the prediction is missing from the answer");
}

TEST_F(GateTest, AsIsContendersAreComparedOnceAndOnTheirOwnTerms) {
  GateJob job = job_;
  job.training.track = ir::Track::kAsIs;
  set_up(std::move(job));
  EXPECT_TRUE(reference_.losses32.empty());
  Dump dump = perfect();
  disturb(dump["grad/fc1.weight"], 1e-3);
  const Parity parity = prove(dump);
  EXPECT_FALSE(parity.failure);
  EXPECT_EQ(parity.diverges_at, "grad/fc1.weight");
  EXPECT_TRUE(parity.losses.empty());
}

TEST_F(GateTest, AWorkerThatRefusesIsAFailureNotADivergence) {
  entry_.worker.options = {{"refuse", "float64"}};
  const Parity first = prove(perfect());
  ASSERT_TRUE(first.failure);
  EXPECT_EQ(first.failure->stage, Stage::kBuild);
  EXPECT_EQ(first.failure->reason, "no float64 here");
  EXPECT_FALSE(first.passed());
  EXPECT_EQ(first.diverges_at, "");
  entry_.worker.options = {{"refuse", "float32"}};
  const Parity second = prove(perfect());
  ASSERT_TRUE(second.failure);
  EXPECT_EQ(second.failure->reason, "no float32 here");
  EXPECT_EQ(groups(second, true).size(), 7u) << "what was proven before stays on record";
}

TEST_F(GateTest, AnAnswerThatIsNoSafetensorsFileIsAFailure) {
  prove(perfect());
  ASSERT_TRUE(write_file(folder_ / "parity.safetensors", "nonsense"));
  Proof proof(entry_);
  proof.float64(job_, reference_);
  const Parity& parity = proof.parity;
  ASSERT_TRUE(parity.failure);
  EXPECT_EQ(parity.failure->stage, Stage::kParity);
  EXPECT_EQ(parity.failure->reason.find('\n'), std::string::npos);
}

TEST_F(GateTest, ParametersThatAreNoSafetensorsFileAreAFailure) {
  for (const char* precision : {"64", "32"}) {
    prove(perfect());
    ASSERT_TRUE(write_file(folder_ / fmt::format("state{}.safetensors", precision), "nonsense"));
    Proof proof(entry_);
    proof.float64(job_, reference_);
    proof.float32(job_, reference_);
    ASSERT_TRUE(proof.parity.failure) << precision;
    EXPECT_EQ(proof.parity.failure->stage, Stage::kParity);
  }
}

TEST_F(GateTest, OneProcessIsImportedOnceAndBuiltInBothPrecisions) {
  ASSERT_TRUE(prove(perfect()).passed());
  EXPECT_EQ(read_file(folder_ / "imported").value(), "1");
}

// The reciter knows the answers of the cut batch alone, and how many rows a build was asked to take.
TEST_F(GateTest, ACutJobIsProvenOnFewerRows) {
  job_.cut = true;
  ASSERT_TRUE(prove(perfect()).passed());
  EXPECT_EQ(read_file(folder_ / "batch.float64").value(), "8");
  EXPECT_EQ(read_file(folder_ / "batch.float32").value(), "None") << "as it will be timed";
}

TEST_F(GateTest, RoundingIsMeasuredOnlyWhereTheFixedToleranceDoesNotDo) {
  const auto measured = [&] { return !reference_.rounding->distance.gradients.empty(); };
  ASSERT_TRUE(prove(perfect()).passed());
  EXPECT_FALSE(measured());
  dump32_ = perfect32();
  disturb((*dump32_)["grad/fc1.weight"], 1e-2);
  prove(perfect());
  EXPECT_TRUE(measured());
}

TEST_F(GateTest, WhereTheRefereeFailsNothingIsCompared) {
  prove(perfect());  // leaves the files behind that are recited now
  Proof proof(entry_);
  proof.float64(job_, reference_);
  const size_t checks = proof.parity.checks.size();
  proof.float32(job_, reference_, {}, [] { return false; });
  EXPECT_EQ(proof.parity.checks.size(), checks);
}

class CutJobTest : public ::testing::Test {
 protected:
  Result<std::optional<GateJob>> cut(const std::string& workload, int64_t batch) {
    GateJob job{.workload = *zoo::build(workload), .rows = 2 * batch, .steps = 10};
    job.training.batch = batch;
    job.training.optimizer = {.kind = ir::OptimizerKind::kRmsprop, .lr = 1e-4};
    job.data = folder_ / "data.safetensors";
    job.folder = folder_.path();
    EXPECT_TRUE(testing::write_random_data(job.workload, job.rows, 3, job.data));
    return cut_job(job);
  }
  TestFolder folder_;
};

TEST_F(CutJobTest, ALongStepTakesTheFirstRowsOfTheData) {
  const auto job = cut("mnist_cnn", 256);
  ASSERT_TRUE(job && *job);
  const GateJob& less = **job;
  EXPECT_TRUE(less.cut);
  EXPECT_EQ(less.training.batch, 20);
  EXPECT_EQ(less.rows, 256);
  const auto reference = make_reference64(less);
  ASSERT_TRUE(reference) << reference.error().text();
  EXPECT_EQ(reference->losses64.size(), 4u);
  EXPECT_EQ(reference->at.prediction.shape, (tensor::Shape{20, 10}));
  const auto rows =
      read_inputs(less.workload, folder_ / "data.safetensors", less.training.input_divisor, 0, 20);
  ASSERT_TRUE(rows);
  EXPECT_EQ(std::get<tensor::Tensor>(reference->batch[0]), std::get<tensor::Tensor>((*rows)[0]));
}

TEST_F(CutJobTest, AShortStepOrRowsThatDependOnEachOtherAreNotCut) {
  for (const auto& [workload, batch] :
       {std::pair{"mlp_small", 256}, {"mnist_cnn", 20}, {"mnist_cnn", 31}, {"residual_cnn", 512}}) {
    const auto job = cut(workload, batch);
    ASSERT_TRUE(job) << workload;
    EXPECT_FALSE(*job) << workload << ", batch " << batch;
  }
}

TEST(WriteInitialWeights, AreTheRefereesRoundedToFloat32) {
  const TestFolder folder;
  const ir::Workload workload = network();
  const auto written = write_initial_weights(workload, 3, {}, folder / "w.safetensors");
  ASSERT_TRUE(written) << written.error().text();
  const auto exact = referee::initial_weights(workload, 3);
  const auto file = tensor::SafetensorsFile::open(folder / "w.safetensors");
  ASSERT_TRUE(file);
  for (size_t id = 0; id < exact.size(); ++id) {
    const std::string& name = workload.parameters[id].name;
    ASSERT_NE(file->find(name), nullptr) << name;
    EXPECT_EQ(file->find(name)->dtype, tensor::DType::kF32);
    EXPECT_EQ((*written)[id], file->read(name).value());
    for (size_t i = 0; i < exact[id].data.size(); ++i) {
      EXPECT_EQ((*written)[id].data[i], static_cast<double>(static_cast<float>(exact[id].data[i])));
    }
  }
  EXPECT_FALSE(write_initial_weights(workload, 3, {}, folder / "w.safetensors/below"));
}

class PredictionGateTest : public GateTest {
 protected:
  void SetUp() override {
    GateJob job = gate_job(folder_.path(), {});
    job.training.scenario = ir::Scenario::kPredict;
    set_up(std::move(job));
  }

  // What a contender with these outputs in double and in single precision is told.
  Parity prove(const tensor::Tensor& output64, const tensor::Tensor& output32) {
    const auto write = [&](const char* name, const tensor::Tensor& output, tensor::DType dtype) {
      const tensor::NamedTensors named = {{"output", tensor::encode(output, dtype).value()}};
      ASSERT_TRUE(tensor::write_safetensors(folder_ / name, named));
    };
    write("parity.safetensors", output64, tensor::DType::kF64);
    write("parity32.safetensors", output32, tensor::DType::kF32);
    Proof proof(entry_);
    proof.float64(job_, reference_);
    proof.float32(job_, reference_);
    return proof.parity;
  }

  tensor::Tensor in_training_mode() const {
    return referee::evaluate(job_.workload, reference_.weights, reference_.batch, {.gradients = false})
        .value()
        .prediction;
  }
};

TEST_F(PredictionGateTest, OnlyThePredictionsAreCompared) {
  const Parity parity = prove(reference_.at.prediction, reference_.prediction32);
  ASSERT_FALSE(parity.failure) << parity.failure->reason;
  EXPECT_TRUE(parity.passed());
  EXPECT_THAT(groups(parity, true), ElementsAre("float64 prediction", "float32 prediction"));
  EXPECT_EQ(parity.first_step_cold_ns, 5);
  EXPECT_TRUE(parity.losses.empty());
}

TEST_F(PredictionGateTest, AModelInTrainingModeIsFoundAndExplained) {
  ASSERT_GT(tensor::relative_distance(in_training_mode(), reference_.at.prediction), 1e-3);
  const Parity parity = prove(in_training_mode(), reference_.prediction32);
  EXPECT_FALSE(parity.passed());
  EXPECT_EQ(parity.diverges_at, "prediction");
  EXPECT_THAT(parity.explanation, HasSubstr("training mode"));
}

// To 8 bits, as bfloat16 has them; the noise of float32 passes.
TEST_F(PredictionGateTest, SinglePrecisionMeansSinglePrecision) {
  tensor::Tensor rounded = reference_.prediction32;
  for (double& x : rounded.data) {
    int exponent = 0;
    x = std::ldexp(std::round(std::frexp(x, &exponent) * 256) / 256, exponent);
  }
  const Parity coarse = prove(reference_.at.prediction, rounded);
  EXPECT_THAT(groups(coarse, false), ElementsAre("float32 prediction"));
  tensor::Tensor noisy = reference_.prediction32;
  for (size_t i = 0; i < noisy.data.size(); ++i) noisy.data[i] *= 1 + (i % 2 == 0 ? 5e-6 : -5e-6);
  EXPECT_TRUE(prove(reference_.at.prediction, noisy).passed());
}

TEST_F(PredictionGateTest, OfSeveralOutputsEachIsCompared) {
  GateJob job = gate_job(folder_.path(), {});
  job.training.scenario = ir::Scenario::kPredict;
  const std::string last = job.workload.value_name(job.workload.prediction());
  auto both = passes::predicting(job.workload, {job.workload.nodes[0].output, last});
  ASSERT_TRUE(both) << both.error().text();
  job.workload = *both;
  set_up(std::move(job));
  EXPECT_TRUE(prove(reference_.at.prediction, reference_.prediction32).passed());
  tensor::Tensor one = reference_.prediction32;
  const int64_t rows = one.shape[0], width = one.shape[1];
  const auto types = ir::infer(job_.workload);
  const int64_t wide = (*types)[static_cast<size_t>(job_.workload.predictions()[1])].shape[1];
  double squares = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = width - wide; i < width; ++i) {
      double& x = one.data[static_cast<size_t>(row * width + i)];
      squares += x * x;
      x *= 1 + 6e-5;
    }
  }
  ASSERT_LT(std::sqrt(squares), 0.8 * tensor::norm(one)) << "as a share of both it is below the tolerance";
  EXPECT_THAT(groups(prove(reference_.at.prediction, one), false), ElementsAre("float32 prediction"));
}

// A gate in portions. Its contenders recite what the fixture has written, each from a folder of its own.
class PortionsTest : public GateTest {
 protected:
  void SetUp() override {
    GateTest::SetUp();
    ASSERT_TRUE(prove(perfect()).passed());
  }

  static Contender contender(const std::string& id, const std::string& framework = "",
                             const std::map<std::string, std::string>& settings = {}) {
    return {
        .id = id, .framework = framework, .environment = "none", .settings = settings, .script = id + ".py"};
  }

  // `refuses`: a contender that refuses to be built in float32.
  Plan plan_of(const std::string& run, const std::vector<Contender>& contenders,
               const std::string& refuses = "") {
    Plan plan{.recipe = {}, .directory = RunDirectory::create(folder_ / run).value()};
    plan.gate = job_;
    plan.manifest.contenders = contenders;
    plan.manifest.not_started.resize(contenders.size());
    for (const Contender& one : contenders) {
      const fs::path own = folder_ / run / "reciters" / one.id;
      for (const char* file : {"parity.safetensors", "parity32.safetensors", "state64.safetensors",
                               "state32.safetensors", "losses64.json", "losses32.json"}) {
        EXPECT_TRUE(make_folder(own));
        fs::copy(folder_ / file, own / file);
      }
      EXPECT_TRUE(write_file(own / "bakeoff_runner/__main__.py", kReciter));
      Lane lane{.entry = entry_};
      lane.entry.contender = one;
      lane.entry.script = plan.directory.scripts() / (one.id + ".py");
      EXPECT_TRUE(write_file(lane.entry.script, "# " + one.id));
      lane.entry.worker.runner = own;
      if (one.id == refuses) lane.entry.worker.options = {{"refuse", "float32"}};
      plan.lanes.push_back(std::move(lane));
    }
    EXPECT_TRUE(plan.directory.write(plan.manifest));
    return plan;
  }

  // The contenders whose processes were started, and how often where that is not once.
  static std::vector<std::string> started(const Plan& plan) {
    std::vector<std::string> ids;
    for (const Lane& lane : plan.lanes) {
      const auto count = read_file(lane.entry.worker.runner / "imported");
      if (count) ids.push_back(lane.entry.contender.id + (*count == "1" ? "" : " " + *count));
    }
    return ids;
  }

  static std::vector<std::string> ids_of(const std::vector<Parity>& parities) {
    std::vector<std::string> ids;
    for (const Parity& parity : parities) ids.push_back(parity.contender);
    return ids;
  }

  // By contender, without the time of day.
  static std::map<std::string, Parity> by_contender(const std::vector<Parity>& parities) {
    std::map<std::string, Parity> all;
    for (const Parity& parity : parities) {
      all[parity.contender] = parity;
      EXPECT_NE(std::exchange(all[parity.contender].proven, ""), "");
    }
    EXPECT_EQ(all.size(), parities.size());
    return all;
  }

  int referees_ = 0;
  const Watch watch_ = [this](const Happening& now) { referees_ += now.stage == "referee" ? 1 : 0; };
};

TEST_F(PortionsTest, TwoFindWhatOneDoesAndTheRefereeComputesOnce) {
  const std::vector<Contender> contenders = {contender("a"), contender("b"), contender("c"), contender("d")};
  Plan whole = plan_of("whole", contenders, "a");
  const auto all = gate_all(whole, {}, watch_);
  ASSERT_TRUE(all) << all.error().text();
  EXPECT_EQ(std::exchange(referees_, 0), 1);

  Plan plan = plan_of("portions", contenders, "a");
  auto gate = Gate::open(plan, {});
  ASSERT_TRUE(gate) << gate.error().text();
  ASSERT_TRUE(gate->prove(watch_, 2));
  EXPECT_THAT(started(plan), ElementsAre("a", "b", "c")) << "one of two failed, so a third was proven";
  EXPECT_THAT(ids_of(gate->parities()), ElementsAre("a", "b", "c"));
  EXPECT_EQ(plan.directory.read<Parity>().value(), gate->parities());
  EXPECT_EQ(plan.directory.manifest()->referee_losses, reference_.losses32);
  EXPECT_FALSE(gate->finished());
  EXPECT_TRUE(testing::workers_alive("reciter").empty());
  ASSERT_TRUE(gate->prove(watch_, 2));
  EXPECT_EQ(gate->parities().size(), 3u) << "two have passed already";

  fs::remove(job_.data);  // the referee needs no more
  ASSERT_TRUE(gate->prove(watch_));
  EXPECT_TRUE(gate->finished());
  EXPECT_EQ(referees_, 1);
  EXPECT_THAT(started(plan), ElementsAre("a", "b", "c", "d")) << "each once";
  EXPECT_EQ(by_contender(gate->parities()), by_contender(*all));
  EXPECT_EQ(plan.directory.read<Parity>().value(), gate->parities());
}

TEST_F(PortionsTest, AnInterruptionLosesNothingThatWasFound) {
  proc::install_interrupt_handlers();
  Plan plan = plan_of("run", {contender("a"), contender("b"), contender("c"), contender("d")});
  {
    auto gate = Gate::open(plan, {});
    ASSERT_TRUE(gate->prove(watch_, 2));
    ::raise(SIGINT);
    ASSERT_TRUE(gate->prove(watch_));
    EXPECT_THAT(ids_of(gate->parities()), ElementsAre("a", "b"));
    EXPECT_THAT(started(plan), ElementsAre("a", "b"));
    proc::clear_interrupt();
    const Watch interrupts = [&](const Happening& now) {
      if (now.detail == "d in float64") ::raise(SIGINT);
    };
    ASSERT_TRUE(gate->prove(interrupts));
    EXPECT_TRUE(proc::interrupted());
    EXPECT_FALSE(gate->finished());
    EXPECT_EQ(plan.directory.read<Parity>().value(), gate->parities());
  }
  proc::clear_interrupt();
  EXPECT_TRUE(testing::workers_alive("reciter").empty());
  auto gate = Gate::open(plan, plan.directory.read<Parity>().value());
  ASSERT_TRUE(gate->prove(watch_));
  EXPECT_THAT(ids_of(gate->parities()), UnorderedElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(plan.directory.read<Parity>().value(), gate->parities());
}

TEST_F(PortionsTest, WithoutTimeLeftNoProofBegins) {
  Plan plan = plan_of("run", {contender("a"), contender("b"), contender("c"), contender("d")});
  auto gate = Gate::open(plan, {});
  std::atomic<int> begun = 0;
  const Watch counts = [&](const Happening& now) { begun += now.detail.ends_with("in float64"); };
  ASSERT_TRUE(gate->prove(watch_, Gate::kAll, [] { return 0.0; }));
  EXPECT_EQ(referees_, 0) << "nor does the referee";
  ASSERT_TRUE(gate->prove(counts, Gate::kAll, [&] { return begun < 2 ? 1e3 : 0; }));
  EXPECT_LE(gate->parities().size(), 2u);
  EXPECT_LE(started(plan).size(), 2u);
  EXPECT_FALSE(gate->finished());
  EXPECT_EQ(plan.directory.read<Parity>().value(), gate->parities());
  for (const Parity& parity : gate->parities()) EXPECT_TRUE(parity.passed()) << "none is a failure by it";
  ASSERT_TRUE(gate->prove(watch_));
  EXPECT_THAT(ids_of(gate->parities()), UnorderedElementsAre("a", "b", "c", "d"));
}

TEST_F(PortionsTest, StoredProofsCount) {
  Plan earlier = plan_of("earlier", {contender("b"), contender("d")});
  ASSERT_TRUE(gate_all(earlier, {}, watch_, folder_ / "proofs"));
  referees_ = 0;

  Plan plan = plan_of("run", {contender("a"), contender("b"), contender("c"), contender("d")});
  auto gate = Gate::open(plan, {}, folder_ / "proofs");
  ASSERT_TRUE(gate) << gate.error().text();
  EXPECT_THAT(ids_of(gate->parities()), ElementsAre("b", "d"));
  EXPECT_TRUE(gate->parities()[0].reused);
  EXPECT_EQ(plan.directory.read<Parity>().value(), gate->parities());
  EXPECT_EQ(plan.manifest.referee_losses, reference_.losses32);
  ASSERT_TRUE(gate->prove(watch_, 2));
  EXPECT_EQ(referees_, 0);
  EXPECT_THAT(started(plan), IsEmpty());
  ASSERT_TRUE(gate->prove(watch_, 3));
  EXPECT_THAT(started(plan), ElementsAre("a"));
  EXPECT_EQ(referees_, 1);
}

TEST_F(PortionsTest, ShortProofsComeFirstAndCompilersLast) {
  Plan plan =
      plan_of("run", {contender("slow", "keras"), contender("compiled", "torch", {{"compile", "default"}}),
                      contender("jax", "jax"), contender("quick", "torch")});
  auto gate = Gate::open(plan, {});
  ASSERT_TRUE(gate->prove(watch_, 2));
  EXPECT_THAT(ids_of(gate->parities()), ElementsAre("jax", "quick"));
  ASSERT_TRUE(gate->prove(watch_, 3));
  EXPECT_THAT(ids_of(gate->parities()), ElementsAre("jax", "quick", "slow"));
  ASSERT_TRUE(gate->prove(watch_, 4));
  EXPECT_THAT(ids_of(gate->parities()), ElementsAre("jax", "quick", "slow", "compiled"));
  EXPECT_EQ(gate->parities()[3].first_step_cold_ns, 7) << "measured alone";
}

TEST_F(PortionsTest, EnoughIsCountedWithinAPrecision) {
  const std::map<std::string, std::string> half = {{"precision", "bfloat16"}};
  Plan plan =
      plan_of("run", {contender("a"), contender("b", "", half), contender("c"), contender("d", "", half)});
  auto gate = Gate::open(plan, {});
  ASSERT_TRUE(gate->prove(watch_, 2));
  EXPECT_THAT(ids_of(gate->parities()), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace bakeoff
