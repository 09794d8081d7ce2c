#include "report/sample_summary_testing.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "study/batches/batch_section.h"
#include "study/training/fit_section.h"
#include "study/training/learning_curves.h"

namespace bakeoff::report {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Uniform in (0, 1): the same on every machine.
class Noise {
 public:
  explicit Noise(uint64_t seed) : state_(seed * 2654435761U + 12345) {}
  double uniform() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (static_cast<double>(state_ >> 40) + 0.5) / static_cast<double>(1 << 24);
  }
  double bell() { return uniform() + uniform() + uniform() + uniform() - 2; }  // sd 0.58

 private:
  uint64_t state_;
};

struct Spec {
  const char* framework;
  const char* settings;  // "compile=none,channels_last=true"
  int best, worst;
  const char* ties;
  RowVerdict verdict;
  double ms, ratio, low, high;
  double start, import, build, first_step, cold;  // ms; cold = 0: there is no such step
  double break_even;                              // 0: none
  double gib;
};

std::map<std::string, std::string> settings_of(const Spec& spec) {
  std::map<std::string, std::string> settings;
  std::istringstream text(spec.settings);
  for (std::string one; std::getline(text, one, ',');) {
    const size_t equals = one.find('=');
    settings[one.substr(0, equals)] = one.substr(equals + 1);
  }
  return settings;
}

constexpr Spec kSpecs[] = {
    {"tensorflow", "mode=function", 1, 2, "a", RowVerdict::kLeader, 75.6, 1, 1, 1, 210, 1610, 190, 352, 0, 0,
     0.92},
    {"keras", "backend=tensorflow,steps_per_execution=1", 1, 2, "a", RowVerdict::kSame, 76.5, 1.012, 0.994,
     1.027, 215, 1720, 260, 711, 0, 0, 0.98},
    {"torch", "channels_last=true", 3, 3, "b", RowVerdict::kMateriallySlower, 86.8, 1.148, 1.121, 1.176, 180,
     905, 120, 326, 0, 74, 0.61},
    {"torch", "compile=none", 4, 5, "c", RowVerdict::kMateriallySlower, 93.0, 1.230, 1.199, 1.262, 180, 902,
     118, 393, 0, 44, 0.63},
    {"keras", "backend=torch,jit_compile=false", 4, 7, "cd", RowVerdict::kUndecided, 96.4, 1.275, 0, kInf,
     190, 2010, 210, 189, 0, 0, 0.83},
    {"torch", "channels_last=true,compile=reduce-overhead,matmul_precision=highest", 5, 7, "d",
     RowVerdict::kMateriallySlower, 107.3, 1.419, 1.22, kInf, 182, 911, 130, 1754, 20654, 0, 0.97},
    {"tensorflow", "jit_compile=true,mode=function", 6, 7, "d", RowVerdict::kMateriallySlower, 128.5, 1.700,
     1.655, 1.745, 208, 1690, 195, 1262, 1305, 0, 1.02},
    {"jax", "donate=true,jit=true", 8, 8, "e", RowVerdict::kMateriallySlower, 417.4, 5.521, 5.38, 5.67, 160,
     705, 140, 1435, 1490, 0.61, 0.71},
};

std::string id_of(const Spec& spec) { return fmt::format("{}[{}]", spec.framework, spec.settings); }

const std::vector<double>& referee_losses() {
  static const std::vector<double> losses = {2.3667858123, 2.0434655871, 1.8607975514, 1.7002217310,
                                             1.5514100921, 1.4120037712, 1.3307711820, 1.2201833310,
                                             1.1300229914, 1.0518820192};
  return losses;
}

Parity proof(const std::string& id, Noise& noise) {
  Parity p{.contender = id};
  p.checks = {{"float64 loss", "loss", 2e-16 * (1 + noise.uniform()), 1e-10, true},
              {"float64 gradients", "grad/conv1.weight", 3e-15 * (1 + noise.uniform()), 1e-8, true},
              {"optimizer update", "update/fc1.weight", 4e-13 * (1 + noise.uniform()), 1e-8, true},
              {"float32 losses", "step 9", 3e-7 * (1 + noise.uniform()), 1e-4, true}};
  for (size_t i = 0; i < referee_losses().size(); ++i) {
    const double off = i == 3 ? 0 : 1e-7 * noise.bell() * static_cast<double>(i + 1);
    p.losses.push_back(referee_losses()[i] * (1 + off));
    p.loss_limits.push_back(1e-5 + 2e-5 * static_cast<double>(i));
  }
  return p;
}

Row ranked_row(const Spec& spec, int steps, uint64_t seed) {
  Noise noise(seed);
  Row row;
  row.contender = {.id = id_of(spec), .framework = spec.framework, .environment = spec.framework};
  row.contender.settings = settings_of(spec);
  row.contender.script = fmt::format("train_{}_{}.py", spec.framework, seed);
  row.rank_best = spec.best;
  row.rank_worst = spec.worst;
  row.ties = spec.ties;
  row.verdict = spec.verdict;
  row.ms_per_step = {spec.ms, spec.ms * 0.987, spec.ms * 1.014};
  row.ratio = {spec.ratio, spec.low, spec.high};
  row.samples_per_second = 256 / spec.ms * 1e3;
  row.gflops = 12.5 / spec.ms * 1e3;
  row.threads = 2;
  row.flop_use = row.gflops / 230;
  row.byte_use = 4.1 / spec.ms * 1e3 / 31.5;
  row.usage = {
      .cores = 1.94, .waiting = 0.012, .faults = 4000 / spec.ms, .major_faults = 0, .switches = 31.5};
  if (spec.framework != std::string("keras"))
    row.wait = {.share = 0.21 / spec.ms, .batch_ms = 0.2, .first_ms = 3, .epoch_ms = 49.6};
  row.memory = {.in_bursts = spec.gib * 1.0e9, .pss = spec.gib * 0.98e9, .per_sample = spec.gib * 1.1e6};
  row.epoch = {.seconds = 60000 / row.samples_per_second,
               .price = 60000 / row.samples_per_second / 3600 * 1.2,
               .samples_per_unit = row.samples_per_second * 3600 / 1.2};
  row.start_up = {spec.start, spec.import, spec.build, spec.first_step};
  if (spec.cold > 0) row.start_up.first_step_cold = spec.cold;
  if (spec.break_even > 0) row.break_even_step = spec.break_even;
  row.peak_rss_bytes = static_cast<int64_t>(spec.gib * 1073741824);
  row.heats = 9;
  row.parity = ParityState::kPassed;
  row.proof = proof(row.contender.id, noise);
  for (int i = 0; i < steps; ++i) {
    const bool spike = noise.uniform() > 0.985;
    const bool second_mode = spec.ms == 93.0 && noise.uniform() > 0.7;
    row.step_ms.push_back(
        spec.ms * (1 + 0.02 * noise.bell() + (spike ? 0.6 * noise.uniform() : 0) + (second_mode ? 0.09 : 0)));
  }
  for (int i = 0; i < row.heats; ++i) row.heat_ms.push_back(spec.ms * (1 + 0.012 * noise.bell()));
  row.effective = {{"threads", "2"},
                   {"onednn", "true"},
                   {"xla", row.contender.settings.contains("jit_compile") ? "true" : "false"}};
  row.versions = {{"python", "3.11.2"},
                  {spec.framework, spec.framework == std::string("torch") ? "2.13.0+cpu" : "2.21.0"}};
  return row;
}

Row unranked_row(const std::string& id, const std::string& framework, Failure failure) {
  Row row;
  row.contender = {.id = id, .framework = framework, .environment = framework};
  row.failure = std::move(failure);
  return row;
}

std::vector<Row> unranked_rows() {
  Row wrong = unranked_row(
      "keras[script=mine \"<script>alert(1)</script>\" & 'Grüße' 模型.py]", "keras",
      {Stage::kParity, "update of conv1.weight differs from the referee by 1.3e-02 (allowed 1e-08)"});
  Noise noise(77);
  wrong.parity = ParityState::kFailed;
  wrong.proof = proof(wrong.contender.id, noise);
  wrong.proof->checks[2] = {"optimizer update", "update/conv1.weight", 1.3e-2, 1e-8, false};
  wrong.proof->checks[3] = {"float32 losses", "step 2", 6.4e-3, 1e-4, false};
  wrong.proof->diverges_at = "update/conv1.weight";
  wrong.proof->divergence = 1.3e-2;
  wrong.proof->explanation = "matches epsilon inside the root (Keras' own RMSprop)";
  wrong.proof->losses[1] = 2.0566275;
  wrong.proof->losses[2] = 1.8784297;
  return {
      wrong,
      unranked_row(
          "keras[backend=jax]", "keras",
          {Stage::kEnvironment, "keras is not installed in environment 'jax': bakeoff env create jax"}),
      unranked_row(
          "torch[compile=max-autotune,channels_last=true,a_setting_with_a_very_long_name="
          "and_an_even_longer_value_that_no_table_has_room_for]",
          "torch",
          {Stage::kWarmUp, "killed by SIGSEGV at step 3 of the warm-up",
           "Traceback (most recent call last):\n  File \"train_torch.py\", line 88, in <module>\n\x1b[31m"
           "    main()\x1b[0m\n 10%|#   |\r 90%|### |\r100%|####| done\nRuntimeError: </pre><script>alert(2)"
           "</script> \xff\xfe broken bytes, and a line that goes on and on and on and on and on and on and "
           "on "
           "and on\nSegmentation fault\n"}),
      unranked_row("jax[jit=false]", "jax",
                   {Stage::kRun, "timed out: no answer to \"run 20\" within 60 s", ""})};
}

// Whole trainings of four contenders: one over three seeds, one without waits, one far from its group, one that
// ended early.
table::Section trainings() {
  const SeedRange loss{0.0121, 0.0123, 0.0127}, held{0.03, 0.0311, 0.032}, accuracy{0.9901, 0.9908, 0.9911};
  FitRow first{.contender = id_of(kSpecs[0]), .group = "float32", .seeds = 3};
  first.seconds = {1141.2, 1148.6, 1163.9};
  first.epoch_s = 27.9, first.start_up_s = 6.41, first.wait_s = 1.18, first.over_steps = 1.083;
  first.loss = loss, first.held_loss = held, first.accuracy = accuracy;
  FitRow second = first;
  second.contender = id_of(kSpecs[2]);
  second.seconds = {1302.4, 1310.9, 1333.1};
  second.epoch_s = 31.8, second.start_up_s = 2.5, second.wait_s.reset();
  FitRow third{.contender = id_of(kSpecs[4]), .group = "float32", .seeds = 1};
  third.seconds = {1990, 1990, 1990};
  third.epoch_s = 48.2, third.start_up_s = 3.1, third.over_steps = 1.31;
  third.loss = third.held_loss = SeedRange{0.5, 0.5, 0.5}, third.accuracy = SeedRange{0.85, 0.85, 0.85};
  third.outlier = true;
  third.note = "its loss of 0.5 is 0.49 away from its group's";
  const FitRow dead{.contender = id_of(kSpecs[6]), .note = "run: exit code 1 | \"<b>\" in stage run"};
  table::Section section = fit_section({first, second, third, dead}, {.text = "41 epochs of 60,000 rows",
                                                                      .epochs = 41,
                                                                      .seeds = 3,
                                                                      .held = 10'000,
                                                                      .trained = 10'000,
                                                                      .tolerance = kLossTolerance});
  std::vector<FitTrial> trials;
  for (const FitRow* row : {&first, &second, &third}) {
    Noise noise(static_cast<uint64_t>(trials.size()) + 5);
    Burst burst{.ns = static_cast<int64_t>(row->seconds.median * 1e9), .steps = 9594};
    for (int step = 1; step <= 9594; step += 41)
      burst.losses[step] = 0.01 + 2.3 * std::exp(-step / 900.0) * (1 + 0.1 * noise.bell());
    trials.push_back({.contender = row->contender, .seed = 1, .stretches = {burst}});
  }
  section.pictures = fit_curves(trials);
  return section;
}

// Throughputs at several batches, with a picture: two contenders that were timed, one that never was.
table::Section batches() {
  const int64_t memory = int64_t{1} << 30;
  SearchRow first{.contender = id_of(kSpecs[0]), .best = 256, .enough = 128};
  first.points = {{16, 2, 1200, 1180, 1220, memory},
                  {128, 2, 3320, 3300, 3340, memory},
                  {256, 2, 3400, 3350, 3410, memory}};
  SearchRow second{.contender = id_of(kSpecs[2]), .best = 128, .enough = 128};
  second.points = {{16, 1, 900, 900, 900, memory},
                   {128, 2, 2950, 2920, 2980, memory},
                   {256, 0, 0, 0, 0, 0, "run: killed, out of memory"}};
  second.note = "batch 256: run: killed, out of memory";
  SearchRow third{.contender = id_of(kSpecs[7])};
  third.points = {{16, 0, 0, 0, 0, 0, "emit: the batch of a script of your own is its own"}};
  third.note = third.points[0].failure;
  return batch_section({first, second, third}, 0.03, 256);
}

Manifest manifest(const Summary& s) {
  Manifest m;
  m.bakeoff_version = "0.1.0";
  m.started = "2026-11-21T08:00:00Z";
  m.recipe_name = s.title;
  m.recipe_file = "recipes/mnist_cnn.toml";
  m.recipe_text =
      "[recipe]\nname = \"mnist_cnn\"\ntrack = \"equalised\"  # <b>not bold</b>\nworkload = \"mnist_cnn\"\n"
      "batch = 256\nprecision = \"float32\"\n\n[optimizer]\nkind = \"rmsprop\"\nlr = 1e-4\neps_form = "
      "\"outside\"\n";
  m.workload_text =
      "workload mnist_cnn(x: f32[N,1,28,28], y: i32[N]) {\n  h1 = conv2d(x; weight=conv1.weight[32,1,3,3])\n"
      "  loss = softmax_cross_entropy(h1, y) reduction=mean\n}\n";
  m.weights_sha256 = "5f2d0c8a5f0e6c1b9f1a1d1f4f7f2f0b8a0c6e9a3b1d2c4e5f60718293a4b5c6";
  m.data_description = "MNIST, 60,000 training images in file order";
  m.host = {"bench-1", "6.1.0-18-amd64", "AMD EPYC 9B14 (Zen 4)", "Debian GNU/Linux 12", 2, 25769803776, {}};
  m.host.more = {
      {"cgroup quota", "none"}, {"transparent huge pages", "madvise"}, {"governor", "not exposed"}};
  m.referee_losses = referee_losses();
  m.fairness.frameworks = {"torch", "keras", "tensorflow", "jax"};
  m.fairness.lines = {
      {"RMSprop epsilon",
       {"outside the root, 1e-8", "inside the root, 1e-7", "outside the root, 1e-7", "inside the root, 1e-8"},
       true},
      {"Conv2d initialiser",
       {"uniform, Kaiming a=√5", "Glorot uniform", "Glorot uniform", "LeCun normal"},
       true},
      {"loss",
       {"mean over the batch", "mean over the batch", "mean over the batch", "mean over the batch"},
       false}};
  m.controls = {{"allocator", "tuned"}, {"threads", "2"}, {"pin", "auto"}};
  m.calibration = {{"measured", "2026-11-21T08:00:00Z"}, {"with", "torch, mnist_cnn"}};
  m.worker_environment = {{"MALLOC_MMAP_THRESHOLD_", "1073741824"},
                          {"MALLOC_TRIM_THRESHOLD_", "4294967296"},
                          {"OMP_NUM_THREADS", "2"}};
  for (const Row& row : s.ranked) m.contenders.push_back(row.contender);
  for (const Row& row : s.unranked) m.contenders.push_back(row.contender);
  m.not_started.resize(m.contenders.size());
  return m;
}

}  // namespace

void keep_page(const std::string& name, const std::string& html) {
  if (const char* folder = std::getenv("BAKEOFF_KEEP_PAGES"); folder)
    std::ofstream(fmt::format("{}/{}.html", folder, name)) << html;
}

Summary sample_summary(int steps) {
  Summary s = empty_summary();
  s.sentence =
      "TensorFlow and Keras on TensorFlow share the lead, within 3% of each other; PyTorch (channels_last) follows at "
      "1.15 times their step time (1.12 to 1.18).";
  s.decided = false;
  s.run = "runs/mnist_cnn-20261121-080000";
  s.outlooks = {
      {.leader = id_of(kSpecs[0]),
       .rivals = {{.contender = id_of(kSpecs[4]),
                   .heats = 9,
                   .ratio = {1.012, 0.974, 1.061},
                   .slower = 0.934,
                   .slower_than_previous = 0.934,
                   .deciding = 0.018,
                   .as_same = true},
                  {.contender = id_of(kSpecs[5]), .heats = 1, .ratio = {1.419, 0, kInf}, .deciding = 0.419}},
       .rest = stats::Rest{.heats = 5, .seconds = 371, .low_s = 184, .high_s = 912}}};
  s.heats = 9;
  s.elapsed_s = 252.4;
  uint64_t seed = 1;
  for (const Spec& spec : kSpecs) s.ranked.push_back(ranked_row(spec, steps, seed++));
  s.unranked = unranked_rows();
  s.variance = Variance{.heats = 0.021,
                        .processes = 0.031,
                        .bursts = 0.006,
                        .steps = 0.004,
                        .cheapest_bursts = 2,
                        .sentence =
                            "Restarting the process changes the result by 3.1%, repeating a step by "
                            "0.40%: 9 more processes of each contender decide a gap of 3%; 10,000 more "
                            "steps do not."};
  s.notes = {
      "PyTorch (compile = none): its steps fall into two modes 9% apart; heat means are what the verdict rests "
      "on.",
      "Peak memory is the worker's resident set, the framework's own code included."};
  s.studies = {trainings(), batches()};
  s.currency = "USD";
  s.not_sampled = {"energy: there is no /sys/class/powercap"};
  s.roofline = Roofline{.threads = 2,
                        .fewest_threads = 2,
                        .peak_flops = 230e9,
                        .peak_of = "f32, avx512",
                        .gemm_flops = 204e9,
                        .gemm_of = "OpenBLAS of <numpy>",
                        .roofs = {{"L1", 900e9}, {"L2", 420e9}, {"L3", 170e9}, {"DRAM", 31.5e9}},
                        .level = "DRAM",
                        .bytes_per_s = 31.5e9,
                        .flops = 12.5e9,
                        .bytes = 4.1e9,
                        .kinds = {{"conv2d", 12.1e9, 2.2e9}, {"linear", 0.4e9, 0.1e9}, {"relu", 0, 1.2e9}},
                        .measured = "2026-11-21T07:50:00Z"};
  s.manifest = manifest(s);
  s.sources = {{"train_torch.py",
                "import torch\n\n\nclass MnistCnn(torch.nn.Module):\n    \"\"\"A <b>CNN</b> & more.\"\"\"\n"},
               {"train_<evil>.py", "print('</script><script>alert(3)</script>')\n"}};
  return s;
}

Summary empty_summary() {
  Summary s;
  s.title = "mnist_cnn";
  s.margin = 0.03;
  s.alpha = 0.01;
  s.batch = 256;
  s.gflop_per_step = 12.5;
  s.parameters = 563018;
  s.model = {.weights = 563018 * 4.0, .gradients = 563018 * 4.0, .optimizer = 563018 * 4.0};
  return s;
}

Summary single_summary() {
  Summary s = empty_summary();
  s.track = ir::Track::kAsIs;
  s.heats = 1;
  s.interrupted = true;
  s.ranked.push_back(ranked_row(kSpecs[2], 1, 5));
  Row& row = s.ranked.front();
  row.rank_best = row.rank_worst = 1;
  row.ms_per_step = {86.8, -kInf, kInf};
  row.ratio = {1, 0, kInf};
  row.heat_ms = {86.8};
  row.heats = 1;
  row.verdict = RowVerdict::kNone;
  row.parity = ParityState::kReported;
  row.proof->losses[4] = std::nan("");
  s.manifest = manifest(s);
  return s;
}

}  // namespace bakeoff::report
