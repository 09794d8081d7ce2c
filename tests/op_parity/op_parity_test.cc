// Every op of the table through every framework: random shapes and attributes, prediction, loss, every
// gradient, running statistics and the optimizer's update in float64 against the referee. The cases are
// generated from the op table, so no op can be forgotten. And the same for predictions: every op once, in
// inference mode, in double and in single precision.
//
// BAKEOFF_OP_CASES=n tries n random workloads an op (default 1), BAKEOFF_OP_SEED another seed,
// BAKEOFF_OPS="exp,conv2d" these ops alone, BAKEOFF_OP_DEVICES=2 splits every batch over two devices where the
// framework can. The ops of one element at a time (ir/elementwise.h) share a workload. An environment that is not
// there skips its frameworks, or fails them where BAKEOFF_REQUIRE_ENVS=1. Every day an op is tried in PyTorch, in
// JAX or TensorFlow, on one backend of Keras, a quarter each in Keras 2 and in LibTorch, half natively, and everywhere
// in random networks; with BAKEOFF_FULL_TESTS=1 each tries all ops, and XLA has its default generator of code.
//
// One test a framework, and one worker: importing takes as long as many cases.
//
// Where every program has to be compiled, the worker has few programs: all cases in one workload (merged.h),
// losses and networks beside it; every day one case an op, one network and one workload of several losses, and
// predictions of the ops alone. BAKEOFF_OP_APART=1 compiles a program for every case, in about five minutes.
// Frameworks that take turns have one workload of all ops but losses, too, every day: XLA and Keras take longer for
// fifty small programs than for a large one.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/testing.h"
#include "emit/all/frameworks.h"
#include "environments/environments.h"
#include "environments/runner_files.h"
#include "ir/elementwise.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "merged.h"
#include "parity/proof.h"
#include "passes/predicting.h"
#include "plan/lane.h"
#include "reference/reference.h"
#include "tensor/safetensors.h"
#include "worker/compiled_contender.h"
#include "zoo/op_cases.h"

namespace bakeoff {
namespace {

constexpr int64_t kBatch = 4;
constexpr size_t kCompactNetworks = 2;

int64_t number_from(const char* variable, int64_t fallback) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoll(text) : fallback;
}

// What random cases meet too rarely.
std::vector<std::pair<std::string, ir::Workload>> corners() {
  const std::pair<const char*, const char*> texts[] = {
      // All targets are the one class, and that is ignored: a mean of 0 and a sum of 0.
      {"no_target_counts",
       "workload nothing_counts(x: f32[N,3], y: i32[N]) {\n"
       "  z = linear(x; weight=a.weight[1,3], bias=a.bias[1])\n"
       "  mean = softmax_cross_entropy(z, y) ignore_index=0\n"
       "  sum = softmax_cross_entropy(z, y) ignore_index=0 label_smoothing=0.2 reduction=sum\n"
       "  smoothed = softmax_cross_entropy(z, y) ignore_index=0 label_smoothing=0.2\n"
       "  two = add(mean, sum)\n  loss = add(two, smoothed)\n}"},
      // Frames that are channels of a picture, elsewhere its places; one row of labels for both.
      {"ctc_of_channels",
       "workload channels(x: f32[N,3,6], y: i32[N,2]) {\n"
       "  z = conv1d(x; weight=a.weight[5,3,3]) pad=1,1\n  t = transpose(z) perm=0,2,1\n"
       "  channels = ctc(z, y)\n  places = ctc(t, y) reduction=sum\n  loss = add(channels, places)\n}"},
      {"group_norm_of_a_bias_alone",
       "workload bias_alone(x: f32[N,4,3], y: f32[N,4,3]) {\n"
       "  z = linear(x; weight=a.weight[3,3])\n"
       "  g = group_norm(z; bias=g.bias[4]) groups=2\n"
       "  loss = mse(g, y)\n}"},
  };
  std::vector<std::pair<std::string, ir::Workload>> all;
  for (const auto& [name, text] : texts) all.emplace_back(name, ir::parse(text).value());
  return all;
}

// A framework at its defaults, once for each value of the settings that are always named.
struct Target {
  const emit::Framework* framework = nullptr;
  emit::Settings settings = {};
  std::string label = {};  // "keras_jax"
  // Of those that divide the ops among themselves: which one this is, and how many there are.
  size_t share = 0, shares = 1;
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.label; }

std::string label(const ::testing::TestParamInfo<Target>& info) { return info.param.label; }

// Those that divide the ops among themselves; an empty name's are tried in `make full` alone. JAX and TensorFlow both
// take minutes to compile all; what Keras 2 and LibTorch call is tried in TensorFlow and PyTorch.
const std::vector<std::vector<std::string_view>>& turns() {
  static const std::vector<std::vector<std::string_view>> all = {
      {"jax", "tensorflow"}, {"keras2", "libtorch", "", ""}, {"native", ""}};
  return all;
}

std::vector<Target> targets(bool (*wanted)(const emit::Framework&)) {
  std::vector<Target> all;
  for (const emit::Framework* framework : emit::frameworks()) {
    if (!wanted(*framework)) continue;
    const std::vector<emit::Settings> variants = emit::named_variants(*framework);
    for (size_t share = 0; share < variants.size(); ++share) {
      emit::Settings settings = variants[share];
      std::string name = framework->name;
      for (const auto& [setting, value] : settings) name += "_" + value;
      settings.merge(emit::defaults_of(*framework));
      all.push_back({framework, settings, name, share, variants.size()});
    }
    for (const auto& turn : turns()) {
      const auto at = std::ranges::find(turn, framework->name);
      if (at == turn.end()) continue;
      all.back().share = static_cast<size_t>(at - turn.begin());
      all.back().shares = turn.size();
    }
  }
  return all;
}

bool trains(const emit::Framework& framework) { return emit::can(framework, ir::Scenario::kTrain); }
bool predicts(const emit::Framework& framework) { return emit::can(framework, ir::Scenario::kPredict); }

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

// The forms that programs spell out themselves, and one that they do not, for the few programs of a worker.
const std::vector<ir::Optimizer>& optimizers_in_turn() {
  using K = ir::OptimizerKind;
  using E = ir::EpsForm;
  static const std::vector<ir::Optimizer> all = {
      {.kind = K::kAdam, .lr = 1e-2, .eps = 1e-3, .eps_form = E::kInside, .weight_decay = 0.05},
      {.kind = K::kRmsprop, .lr = 1e-2, .momentum = 0.5, .eps = 1e-3, .eps_form = E::kInside},
      {.kind = K::kAdamW, .lr = 1e-2, .eps = 1e-3, .eps_form = E::kHat, .weight_decay = 0.05},
      {.kind = K::kSgd,
       .lr = 1e-2,
       .momentum = 0.9,
       .weight_decay = 0.05,
       .decay_form = ir::DecayForm::kDecoupled},
      {.kind = K::kRmsprop, .lr = 1e-2, .eps = 1e-3, .eps_form = E::kOutside, .weight_decay = 0.05},
      {.kind = K::kAdamW, .lr = 1e-2, .eps = 1e-3, .eps_form = E::kInside, .weight_decay = 0.05},
      {.kind = K::kSgd, .lr = 1e-2, .momentum = 0.9, .nesterov = true},
  };
  return all;
}

// A workload on its way through the gate.
struct Case {
  std::string name = {};
  ir::Workload workload = {};
  bool train = false;  // its training steps are proven, too
  ir::Scenario scenario = ir::Scenario::kTrain;
  std::optional<ir::Optimizer> optimizer = {};  // else a random one
  int64_t batch = kBatch;
  GateJob job = {};
  ContenderStart entry = {};
};

class OpParity : public ::testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    framework_ = GetParam().framework;
    settings_ = GetParam().settings;
    if (settings_.contains("devices"))
      settings_["devices"] = std::to_string(number_from("BAKEOFF_OP_DEVICES", 1));
    const std::string wanted = framework_->environment(settings_);
    for (const Environment& e : list_environments({.home = bakeoff_home()})) {
      if (e.name == wanted) python_ = e.ok() ? e.python : fs::path(), why_not_ = e.why_not();
    }
    if (python_.empty() && !wanted.empty()) {  // compiled programs may need none
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
  Worker& worker(const ContenderStart& entry) {
    if (!worker_ || !worker_->ok()) {
      worker_ = Worker::start(entry.worker);
      worker_->import();
    }
    return *worker_;
  }

  // Writes data and script of one workload; gives what went wrong, "" if nothing.
  std::string prepare(Case& one, tensor::Rng& rng) {
    const ir::Workload& workload = one.workload;
    const std::string& name = one.name;
    GateJob& job = one.job = {.workload = workload, .rows = 2 * one.batch, .steps = 1, .folder = folder_};
    job.training.scenario = one.scenario;
    job.training.optimizer = one.optimizer ? *one.optimizer : random_optimizer(rng);
    job.training.batch = one.batch;
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
    ContenderStart& entry = one.entry;
    entry.contender = {
        .id = name, .framework = framework_->name, .environment = "", .settings = settings_, .script = ""};
    entry.script = folder_ / (name + framework_->extension);
    entry.unbiased_running_var = framework_->unbiased_running_var(settings_);
    entry.worker = {.python = python_,
                    .runner = runner_,
                    .framework = framework_->name,
                    .options = settings_,
                    .environment = {{"OMP_NUM_THREADS", "1"}},
                    .log_file = folder_ / "worker.log",
                    .stage_seconds = 120};
    // XLA compiles thousands of operations that run once or twice each. Without the generator of fused
    // loops that it has by default, as every day, that takes half the time.
    entry.worker.environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1";
    if (!testing::full_tier()) entry.worker.environment["XLA_FLAGS"] = "--xla_cpu_use_fusion_emitters=false";
    for (const auto& [variable, value] : framework_->worker_variables)
      entry.worker.environment[variable] = value;
    const auto emitted =
        framework_->emit({workload, job.training, settings_, entry.script.filename().string()});
    if (!emitted) return emitted.error().text();
    if (!write_file(entry.script, emitted->source)) return "cannot write the script";
    if (!emitted->layout_json.empty()) {
      entry.layout = folder_ / (name + ".layout.json");
      if (!write_file(entry.layout, emitted->layout_json)) return "cannot write the layout";
    }
    return "";
  }

  bool compiled() const { return framework_->extension == ".cc"; }
  bool compact() const { return compiled() && std::getenv("BAKEOFF_OP_APART") == nullptr; }

  static int64_t seed() { return number_from("BAKEOFF_OP_SEED", 1); }
  static int64_t count() { return number_from("BAKEOFF_OP_CASES", 1); }

  // Whether this run tries an op. Every day each op of Keras is tried on one of its backends, in turn.
  static bool wanted(const ir::OpInfo& row) {
    if (const char* const list = std::getenv("BAKEOFF_OPS"))
      return ("," + std::string(list) + ",").find("," + row.name + ",") != std::string::npos;
    return in_turn(static_cast<size_t>(row.op));
  }

  // Whether the case of this number is one of this framework's every day.
  static bool in_turn(size_t number) {
    return testing::full_tier() || number % GetParam().shares == GetParam().share;
  }

  // Whether an op shares a workload with others; each row of a loss has its own.
  static bool joins(const ir::OpInfo& row) {
    const bool in_turns = !testing::full_tier() && GetParam().shares > 1;
    return ir::find_elementwise(row.op) != nullptr || (in_turns && !ir::is_loss(row.op));
  }

  // The ops that share workloads and that the framework has, in as few workloads as hold them.
  std::vector<NamedWorkload> joined_cases(tensor::Rng& rng) {
    constexpr size_t kMost = 60;  // parts that one workload can join
    std::vector<NamedWorkload> parts, all;
    const auto merge = [&] {
      if (parts.size() == 1) all.push_back(parts[0]);
      const std::string name = "joined_" + std::to_string(all.size());
      if (parts.size() > 1) all.emplace_back(name, merged(name, parts).value());
      parts.clear();
    };
    for (const ir::OpInfo& row : ir::op_table()) {
      for (int64_t n = 0; joins(row) && wanted(row) && n < count(); ++n) {
        ir::Workload one = zoo::random_case(row.op, rng);
        if (!emit::check_supported(*framework_, one)) continue;
        parts.emplace_back(row.name + "_" + std::to_string(n), std::move(one));
        if (parts.size() == kMost) merge();
      }
    }
    if (!parts.empty()) merge();
    return all;
  }

  std::vector<Case> op_cases() {
    std::vector<Case> cases;
    tensor::Rng shared(static_cast<uint64_t>(seed()) * 1000 + 999);
    for (auto& [name, workload] : joined_cases(shared)) {
      Case one{.name = name, .workload = std::move(workload), .train = true};
      EXPECT_EQ(prepare(one, shared), "") << ir::dump(one.workload);
      cases.push_back(std::move(one));
    }
    for (const ir::OpInfo& row : ir::op_table()) {
      if (!wanted(row) || joins(row)) continue;
      tensor::Rng rng(static_cast<uint64_t>(seed()) * 1000 + static_cast<uint64_t>(row.op));
      for (int64_t n = 0; n < count(); ++n) {
        Case one{.name = row.name + "_" + std::to_string(n),
                 .workload = zoo::random_case(row.op, rng),
                 .train = n == 0};
        if (!emit::check_supported(*framework_, one.workload))
          continue;  // refused by name: emitters' own tests
        EXPECT_EQ(prepare(one, rng), "") << ir::dump(one.workload);
        cases.push_back(std::move(one));
      }
    }
    return cases;
  }

  std::vector<Case> networks(int64_t number) {
    std::vector<Case> cases;
    tensor::Rng rng(static_cast<uint64_t>(seed()) + 77);
    for (int64_t n = 0; n < number; ++n) {
      Case one{.name = "network_" + std::to_string(n), .workload = zoo::random_network(rng), .train = true};
      EXPECT_EQ(prepare(one, rng), "") << ir::dump(one.workload);
      cases.push_back(std::move(one));
    }
    return cases;
  }

  // Workloads of several losses, unrolled loops, and corners.
  std::vector<Case> losses(int64_t number) {
    std::vector<Case> cases;
    tensor::Rng rng(static_cast<uint64_t>(seed()) + 55);
    int64_t scans = 0;
    for (int64_t n = 0; n < number; ++n) {
      Case one{.name = "losses_" + std::to_string(n), .workload = zoo::random_losses(rng), .train = true};
      EXPECT_EQ(prepare(one, rng), "") << ir::dump(one.workload);
      cases.push_back(std::move(one));
      Case loop{.name = "loop_" + std::to_string(n), .workload = zoo::random_loop(rng), .train = true};
      EXPECT_EQ(prepare(loop, rng), "") << ir::dump(loop.workload);
      cases.push_back(std::move(loop));
      if (!settings_.contains("loops")) continue;
      settings_["loops"] = "scan";
      Case scan{.name = "scan_" + std::to_string(n), .workload = cases.back().workload, .train = true};
      const std::string why = prepare(scan, rng);
      scans += why.empty() ? 1 : 0;
      if (why.empty())
        cases.push_back(std::move(scan));
      else
        EXPECT_NE(why.find("has no loop of equal rounds"), std::string::npos)
            << why << ir::dump(scan.workload);
      settings_["loops"] = "unrolled";
    }
    EXPECT_GE(2 * scans, settings_.contains("loops") ? number : 0)
        << "few random loops are carried out by the framework";
    size_t corner = 0;
    for (auto& [name, workload] : corners()) {
      if (!in_turn(corner++)) continue;
      Case one{.name = name, .workload = std::move(workload), .train = true};
      EXPECT_EQ(prepare(one, rng), "");
      cases.push_back(std::move(one));
    }
    return cases;
  }

  // The next random workload that the framework has all ops of.
  ir::Workload supported(ir::Workload (*draw)(tensor::Rng&), tensor::Rng& rng) const {
    ir::Workload drawn = draw(rng);
    for (int tries = 0; tries < 50 && !emit::check_supported(*framework_, drawn); ++tries) drawn = draw(rng);
    return drawn;
  }

  // Everything in few programs: those of the ops and, last, two networks.
  std::vector<Case> compact_cases() {
    constexpr size_t kMost = 60;  // parts that one workload can join
    std::vector<Case> cases;
    std::vector<NamedWorkload> parts;
    const auto merge = [&] {
      const std::string name = "ops_" + std::to_string(cases.size());
      auto whole = merged(name, parts);
      ASSERT_TRUE(whole.has_value()) << whole.error().text();
      cases.push_back({.name = name, .workload = std::move(*whole), .train = true});
      parts.clear();
    };
    tensor::Rng rng(static_cast<uint64_t>(seed()) * 1000);
    const bool all = testing::full_tier();
    for (const ir::OpInfo& row : ir::op_table()) {
      if (ir::is_loss(row.op) && !all) continue;
      const bool once = !all || ir::find_elementwise(row.op) != nullptr;
      for (int64_t n = 0; wanted(row) && n < std::max<int64_t>(count(), once ? 1 : 2); ++n) {
        const std::string name = row.name + "_" + std::to_string(n);
        ir::Workload workload = zoo::random_case(row.op, rng);
        if (!emit::check_supported(*framework_, workload)) continue;
        if (ir::is_loss(row.op))
          cases.push_back({.name = name, .workload = std::move(workload), .train = n == 0});
        else
          parts.emplace_back(name, std::move(workload));
        if (parts.size() == kMost) merge();
      }
    }
    if (!parts.empty()) merge();
    for (size_t n = 0; n < (all ? kCompactNetworks : 1); ++n) {
      cases.push_back({.name = "network_" + std::to_string(n),
                       .workload = supported(zoo::random_network, rng),
                       .train = true});
    }
    if (all) {
      for (auto& [name, workload] : corners()) {
        if (emit::check_supported(*framework_, workload))
          cases.push_back({.name = name, .workload = std::move(workload), .train = true});
      }
    }
    for (int n = 0; n < (all ? 2 : 1); ++n)
      cases.push_back({.name = fmt::format("losses_{}", n),
                       .workload = supported(zoo::random_losses, rng),
                       .train = true});
    cases.push_back({.name = "loop", .workload = supported(zoo::random_loop, rng), .train = true});
    for (size_t i = 0; i < cases.size(); ++i) {
      cases[i].optimizer = optimizers_in_turn()[i % optimizers_in_turn().size()];
      EXPECT_EQ(prepare(cases[i], rng), "") << ir::dump(cases[i].workload);
    }
    return cases;
  }

  // The same cases as predictions, for the same worker; every day the ops alone.
  void add_predictions(std::vector<Case>& cases) {
    tensor::Rng rng(static_cast<uint64_t>(seed()) + 4711);
    for (size_t i = 0, trained = cases.size(); i < trained; ++i) {
      if (!testing::full_tier() && !cases[i].name.starts_with("ops_")) continue;
      Case one{.name = "predict_" + cases[i].name,
               .workload = passes::predicting(cases[i].workload),
               .scenario = ir::Scenario::kPredict,
               .batch = cases[i].batch};
      EXPECT_EQ(prepare(one, rng), "") << ir::dump(one.workload);
      cases.push_back(std::move(one));
    }
  }

  // One worker of all cases where they have to be compiled.
  void compile(std::vector<Case>& cases, const std::vector<std::string>& flags = {"-O0"}) {
    if (!compiled()) return;
    CompileJob job{.python = python_, .home = bakeoff_home(), .flags = flags};
    for (const Case& one : cases) job.sources.push_back(one.entry.script);
    const Compiled compiled = compile_contender(job, [](const std::string&) {});
    ASSERT_FALSE(compiled.failure) << compiled.failure->reason << "\n" << compiled.failure->log_tail;
    for (Case& one : cases) one.entry.worker.command = {compiled.program.string()};
  }

  void prove(std::span<Case> cases) {
    for (Case& one : cases) {
      const auto reference = make_reference(one.job);  // writes the weights that the worker reads
      ASSERT_TRUE(reference.has_value()) << reference.error().text();
      Parity parity;
      Tolerances tolerances;
      if (dtype_ == "float32") tolerances.output64 = tolerances.output32;
      prove_in(worker(one.entry), one.job, *reference, one.entry, one.train, parity, tolerances, dtype_);
      EXPECT_EQ(complaint(parity), "") << ir::dump(one.workload) << "files: " << folder_;
    }
  }

  static tensor::DType stored(const tensor::Tensor&) { return tensor::DType::kF32; }
  static tensor::DType stored(const tensor::IntTensor&) { return tensor::DType::kI32; }

  static std::string complaint(const Parity& parity) {
    if (parity.failure) return parity.failure->text() + "\n" + parity.failure->log_tail;
    if (parity.passed()) return "";
    return "diverges at " + parity.diverges_at + " by " + std::to_string(parity.divergence) + "; " +
           parity.explanation;
  }

  // Predictions of every op of the table once, and of random networks.
  void predict() {
    tensor::Rng rng(static_cast<uint64_t>(seed()) + 4711);
    std::vector<Case> cases;
    const auto add = [&](const std::string& name, const ir::Workload& workload) {
      Case one{.name = name, .workload = passes::predicting(workload), .scenario = ir::Scenario::kPredict};
      EXPECT_EQ(prepare(one, rng), "") << ir::dump(one.workload);
      cases.push_back(std::move(one));
    };
    for (auto& [name, workload] : joined_cases(rng)) add("predict_" + name, workload);
    for (const ir::OpInfo& row : ir::op_table()) {
      if (wanted(row) && !joins(row)) add("predict_" + row.name, zoo::random_case(row.op, rng));
    }
    for (int64_t n = 0; n < count(); ++n)
      add("predict_network_" + std::to_string(n), zoo::random_network(rng));
    add("predict_loop", zoo::random_loop(rng));
    for (int64_t n = 0; n < count(); ++n) add("predict_losses_" + std::to_string(n), zoo::random_losses(rng));
    prove(cases);
  }

  std::string dtype_ = "float64";
  const emit::Framework* framework_ = nullptr;
  emit::Settings settings_;
  fs::path python_, folder_, runner_;
  std::string why_not_ = "no such environment";
  std::unique_ptr<Worker> worker_;
};

// Every op, then random networks, in training; both in inference mode, where the framework has one here.
TEST_P(OpParity, OpsAndRandomNetworksAreThoseOfTheReferee) {
  std::vector<Case> cases = compact() ? compact_cases() : op_cases();
  if (!compact()) {
    const bool all = testing::full_tier() || GetParam().shares == 1;
    for (Case& network : networks((all ? 2 : 1) * count())) cases.push_back(std::move(network));
    for (Case& one : losses((all ? 3 : 1) * count())) cases.push_back(std::move(one));
  }
  if (compact() && predicts(*framework_)) add_predictions(cases);
  compile(cases);
  if (HasFatalFailure()) return;
  prove(cases);
  const bool on_one = emit::setting_or(settings_, "devices", "1") == "1";
  if (predicts(*framework_) && on_one && !compact()) predict();
}

class SanitizedParity : public OpParity {};

// Sizes that divide by nothing, strides that leave places out, groups of one channel, one class: what reads beside an
// array first.
constexpr const char* kOdd =
    "workload odd(x: f32[N,7,13,7], y: i32[N], t: f32[N,5]) {\n"
    "  a = conv2d(x; weight=a.weight[14,1,3,3], bias=a.bias[14]) stride=3,2 pad=1,0,2,1 groups=7\n"
    "  r = relu(a)\n"
    "  p = max_pool2d(r) kernel=2,2 stride=1,1\n"
    "  u = conv_transpose2d(p; weight=u.weight[14,5,3,2]) stride=3,1 pad=1,0,0,0\n"
    "  g = global_avg_pool2d(u)\n"
    "  z = linear(g; weight=z.weight[1,5], bias=z.bias[1])\n"
    "  one = softmax_cross_entropy(z, y)\n  far = mse(g, t)\n  loss = add(one, far)\n}";

TEST_P(SanitizedParity, OddShapesAndRandomNetworksTouchNothingButTheirOwnMemory) {
  if (!testing::full_tier()) GTEST_SKIP() << "compiling takes a minute";
  std::vector<Case> cases = networks(1);
  tensor::Rng rng(static_cast<uint64_t>(seed()));
  for (const int64_t batch : {1, 3}) {
    Case one{.name = fmt::format("odd_{}", batch), .workload = ir::parse(kOdd).value(), .train = true};
    one.batch = batch;
    EXPECT_EQ(prepare(one, rng), "");
    cases.push_back(std::move(one));
  }
  add_predictions(cases);
  compile(cases, {"-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"});
  if (HasFatalFailure()) return;
  for (Case& one : cases) one.entry.worker.environment["ASAN_OPTIONS"] = "detect_leaks=0";
  prove(cases);
}

class PredictionParity : public OpParity {};

TEST_P(PredictionParity, EveryOpPredictsWhatTheRefereePredicts) {
  predict();
  worker_->close();
  worker_.reset();
  // Something else may stand in for it in double precision (onnxruntime_adapter.py): here every kernel is its own.
  dtype_ = "float32";
  predict();
}

class DevicesParity : public OpParity {};

// Random networks, until as many are proven as are asked for: some are refused, with what it is about devices.
TEST_P(DevicesParity, RandomNetworksOverTwoDevicesAreThoseOfTheReferee) {
  settings_["devices"] = "2";
  tensor::Rng rng(static_cast<uint64_t>(seed()) + 99);
  int64_t refused = 0;
  for (std::vector<Case> cases; std::ssize(cases) < count();) {
    Case one{.name = fmt::format("network_{}", refused + std::ssize(cases)),
             .workload = zoo::random_network(rng),
             .train = true};
    const std::string why = prepare(one, rng);
    if (why.empty()) {
      cases.push_back(std::move(one));
      prove({&cases.back(), 1});
      continue;
    }
    EXPECT_NE(why.find("devices"), std::string::npos) << why;
    ASSERT_LT(++refused, 20) << why;
  }
}

std::vector<Target> on_devices() {
  std::vector<Target> all = targets(
      [](const emit::Framework& framework) { return emit::defaults_of(framework).contains("devices"); });
  std::erase_if(all, [](const Target& target) {  // the backends of Keras that split no batch
    return emit::setting_or(target.settings, "backend", "jax") != "jax";
  });
  return all;
}

// Programs that need no library: all that they read and write is their own.
constexpr auto is_native = [](const emit::Framework& framework) { return framework.name == "native"; };

constexpr auto only_predicts = [](const emit::Framework& framework) { return !trains(framework); };

INSTANTIATE_TEST_SUITE_P(Frameworks, PredictionParity, ::testing::ValuesIn(targets(only_predicts)), label);
INSTANTIATE_TEST_SUITE_P(Frameworks, SanitizedParity, ::testing::ValuesIn(targets(is_native)), label);
INSTANTIATE_TEST_SUITE_P(Frameworks, DevicesParity, ::testing::ValuesIn(on_devices()), label);
INSTANTIATE_TEST_SUITE_P(Frameworks, OpParity, ::testing::ValuesIn(targets(trains)), label);

}  // namespace
}  // namespace bakeoff
