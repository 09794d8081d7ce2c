#include "evidence/invariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "evidence/machine_use.h"
#include "ir/cost.h"
#include "tensor/rng.h"
#include "zoo/zoo.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Positive numbers over many orders of magnitude.
class Numbers {
 public:
  double any() { return std::pow(10, 16 * rng_.uniform() - 6); }
  double share(double low, double high) { return low + (high - low) * rng_.uniform(); }

 private:
  tensor::Rng rng_{42};
};

constexpr int kTimes = 300;

TEST(Invariants, TrueNumbersPassAndLiesDoNotAtAnyScale) {
  Numbers n;
  for (int i = 0; i < kTimes; ++i) {
    const double a = n.any(), s = n.any();
    EXPECT_FALSE(check_rate(a / s, s, a));
    EXPECT_TRUE(check_rate(2 * a / s, s, a)) << "twice the rate";
    EXPECT_TRUE(check_rate(a / s, s, 2 * a)) << "half the work";
    EXPECT_FALSE(check_flops(a * s * n.share(0, 1), s, a));
    EXPECT_TRUE(check_flops(a * s * n.share(1.06, 50), s, a));
    EXPECT_FALSE(check_cpu(4 * s * n.share(0, 1), 4, s, 0));
    EXPECT_TRUE(check_cpu(4 * s * n.share(1.06, 9), 4, s, 0));
    EXPECT_FALSE(check_energy(a * s * n.share(0.81, 1.19), a, s));
    EXPECT_TRUE(check_energy(a * s * n.share(1.21, 9), a, s));
    EXPECT_TRUE(check_energy(a * s * n.share(0, 0.79), a, s));
    EXPECT_FALSE(check_first_step(s * n.share(0.5, 99), s));
    EXPECT_TRUE(check_first_step(s * n.share(0, 0.49), s));
    EXPECT_FALSE(check_littles_law(a * s * n.share(0.96, 1.04), a, s));
    EXPECT_TRUE(check_littles_law(a * s * n.share(1.06, 9), a, s));
    EXPECT_FALSE(check_scaling(a, 8 * a * n.share(0, 1), 8));
    EXPECT_TRUE(check_scaling(a, 8 * a * n.share(1.06, 2), 8));
    EXPECT_FALSE(check_within(s * n.share(0, 1), s));
    EXPECT_TRUE(check_within(s * 1.06 + 0.002, s));
    EXPECT_FALSE(check_loss(7, a, a * n.share(0.9995, 1.0005), 1e-3));
    EXPECT_TRUE(check_loss(7, a + 1, (a + 1) * n.share(1.01, 9), 1e-3));
  }
}

TEST(Invariants, WhatIsNotFiniteBreaksEveryRule) {
  for (const double bad : {kNan, kInf}) {
    EXPECT_TRUE(check_rate(bad, 1, 1));
    EXPECT_TRUE(check_rate(1, bad, 1));
    EXPECT_TRUE(check_flops(bad, 1, 1));
    EXPECT_TRUE(check_bytes(bad, 1, std::vector<std::pair<double, double>>{{0, 1}}));
    EXPECT_TRUE(check_cpu(bad, 1, 1, 0));
    EXPECT_TRUE(check_energy(bad, 1, 1));
    EXPECT_TRUE(check_phases(std::vector{bad, 1.0}, 1));
    EXPECT_TRUE(check_within(bad, 1));
    EXPECT_TRUE(check_loss(1, bad, 1, 1e-3));
    EXPECT_TRUE(check_littles_law(bad, 1, 1));
    EXPECT_TRUE(check_scaling(1, bad, 8));
  }
  EXPECT_TRUE(check_first_step(kNan, 1));
  EXPECT_TRUE(check_first_step(1, kNan));
  EXPECT_TRUE(check_percentiles({{50, kNan}}));
  EXPECT_TRUE(check_flops(1, 0, 1)) << "no time has passed";
  EXPECT_TRUE(check_flops(1, -1, 1));
}

TEST(Invariants, StepsMayExceedWhatWasAskedByLessThanACall) {
  EXPECT_FALSE(check_steps(7, 7, 1));
  EXPECT_TRUE(check_steps(7, 8, 1));
  EXPECT_TRUE(check_steps(7, 6, 1));
  EXPECT_TRUE(check_steps(7, 14, 1));
  for (int64_t asked = 1; asked < 40; ++asked) {
    EXPECT_FALSE(check_steps(asked, (asked + 7) / 8 * 8, 8)) << asked;
    EXPECT_TRUE(check_steps(asked, asked + 8, 8)) << asked;
  }
}

TEST(Invariants, PhasesAddUp) {
  Numbers n;
  for (int i = 0; i < kTimes; ++i) {
    const std::vector<double> parts = {n.any(), n.any(), n.any()};
    const double whole = parts[0] + parts[1] + parts[2];
    EXPECT_FALSE(check_phases(parts, whole));
    EXPECT_TRUE(check_phases(parts, 1.1 * whole + 0.01));
    EXPECT_TRUE(check_phases(parts, 0.9 * whole - 0.01));
  }
  EXPECT_TRUE(check_phases(std::vector{-1.0, 2.0}, 1)) << "a negative phase";
}

Burst burst_of(int64_t claimed_ms, int64_t elapsed_ms, int64_t steps = 10) {
  return {.ns = claimed_ms * 1'000'000, .steps = steps, .elapsed_ns = elapsed_ms * 1'000'000};
}

TEST(CheckClocks, AWorkersRateTimesOurTimeIsItsSamples) {
  const auto check = [](const std::vector<Burst>& bursts, bool contended = false) {
    return check_clocks(bursts, 64, contended);
  };
  EXPECT_FALSE(check({burst_of(300, 301)})) << "the answer travels";
  EXPECT_FALSE(check({burst_of(300, 308)})) << "2.7%";
  EXPECT_FALSE(check({burst_of(10, 14)})) << "short bursts: 4 ms";
  const auto shorter = check({burst_of(285, 300), burst_of(280, 300)});
  ASSERT_TRUE(shorter) << "5% in the nearest one";
  EXPECT_EQ(shorter->text(), "samples/s x time = samples: 673.7 samples against 640 samples");
  EXPECT_FALSE(check({burst_of(285, 300)}, true)) << "beside others an answer may be held up";
  EXPECT_TRUE(check({burst_of(150, 300)}, true));
  EXPECT_FALSE(check({burst_of(200, 300), burst_of(299, 300)})) << "one answer was held up";
  EXPECT_TRUE(check({burst_of(300'000, 300), burst_of(300'000, 301)})) << "a thousand times what went by";
  EXPECT_FALSE(check({burst_of(300, 0)})) << "not recorded";
  EXPECT_FALSE(check({}));
}

TEST(CheckWaits, ForBatchesLieWithinTheirBurst) {
  Burst burst = burst_of(100, 100);
  EXPECT_FALSE(check_waits(burst)) << "cannot be told";
  burst.wait = BatchWait{.ns = 60'000'000, .batches = 9, .first_ns = 40'000'000, .firsts = 1};
  EXPECT_FALSE(check_waits(burst));
  burst.wait->first_ns = 60'000'000;
  EXPECT_THAT(check_waits(burst)->text(), HasSubstr("0.12 s against 0.1 s"));
  burst.wait = BatchWait{.ns = -60'000'000, .batches = 9, .first_ns = 40'000'000, .firsts = 1};
  EXPECT_TRUE(check_waits(burst));
}

TEST(Invariants, PercentilesAscend) {
  EXPECT_FALSE(check_percentiles({{50, 0.1}, {90, 0.1}, {99, 0.3}}));
  EXPECT_TRUE(check_percentiles({{50, 0.1}, {90, 0.3}, {99, 0.2}}));
  EXPECT_TRUE(check_percentiles({{50, -0.1}}));
  EXPECT_FALSE(check_percentiles({}));
}

// 1 MB a step in 1 us is 1000 GB/s: too much for the first level; in 10 us it is what the cache gives, but
// only if it fits there.
TEST(Invariants, BytesComeFromTheLevelThatHoldsThem) {
  const std::vector<std::pair<double, double>> levels = {{0, 200e9}, {512e3, 20e9}};
  EXPECT_TRUE(check_bytes(1e6, 1e-6, levels));
  EXPECT_FALSE(check_bytes(400e3, 10e-6, levels)) << "all of it in the cache";
  const auto beyond = check_bytes(1e6, 10e-6, levels);
  ASSERT_TRUE(beyond) << "488 kB from memory in 10 us";
  EXPECT_THAT(beyond->text(), HasSubstr("48.8e9 bytes/s against 20e9 bytes/s"));
  EXPECT_FALSE(check_bytes(1e6, 100e-6, levels));
}

TEST(Broken, NamesTheRuleAndBothNumbers) {
  EXPECT_EQ(check_flops(12.5e9, 0.02, 230e9)->text(),
            "FLOP/s <= measured peak: 625e9 FLOP/s against 230e9 FLOP/s");
}

Trial sound() {
  return {.contender = "a",
          .heat = 1,
          .first_step_ns = 20'000'000,
          .bursts = {{.ns = 40'000'000, .steps = 10, .asked = 10, .losses = {{1, 4.5}, {6, 1.5}}},
                     {.ns = 40'000'000, .steps = 10, .asked = 10}},
          .step_ns = {4'000'000, 4'000'000},
          .user_s = 0.05};
}

const TrialBounds kBounds{.cores = 2,
                          .flops_per_step = 1e9,
                          .bytes_per_step = 1e6,
                          .peak_flops = 500e9,
                          .levels = {{0, 50e9}},
                          .losses = {{1, 4.5}, {6, 1.5}}};

std::string rule(const Trial& trial) {
  const auto broken = check_trial(trial, kBounds);
  return broken.size() == 1 ? broken[0].rule : std::to_string(broken.size()) + " rules";
}

TEST(CheckTrial, ASoundOneBreaksNothing) {
  EXPECT_THAT(check_trial(sound(), kBounds), IsEmpty());
  EXPECT_THAT(check_trial(sound(), {}), IsEmpty()) << "nothing is known of the machine";
  Trial t = sound();
  t.user_s = 1000;
  t.failure = Failure{Stage::kRun, "exit code 1", ""};
  EXPECT_THAT(check_trial(t, kBounds), IsEmpty()) << "it has failed already";
}

TEST(CheckTrial, StepsAndLossesAreThoseOfTheWork) {
  Trial t = sound();
  t.bursts[1].steps = 20;
  EXPECT_EQ(rule(t), "steps answered = steps asked for");
  t.effective["steps_per_call"] = "16";
  EXPECT_THAT(check_trial(t, kBounds), IsEmpty()) << "less than a call more than asked for";
  t = sound();
  t.bursts[0].losses[6] = 1.6;
  EXPECT_THAT(rule(t), HasSubstr("equal losses for equal work, here 6 steps"));
}

TEST(CheckTrial, PhasesAddUpAndTheFirstStepIsTheLongest) {
  Trial t = sound();
  t.first_step_ns = 100'000;
  EXPECT_THAT(check_trial(t, kBounds), IsEmpty()) << "nothing is known of who else had the processors";
  for (Burst& b : t.bursts) b.used = {{"wall_s", 0.04}, {"wait_s", 0.001}};
  EXPECT_THAT(rule(t), HasSubstr("first step"));
  t.rounds = {{.seen = {{"others", 0.3}}}};
  EXPECT_THAT(check_trial(t, kBounds), IsEmpty()) << "others may have made the later ones longer";
  t.rounds.clear();
  t.bursts[1].used["wait_s"] = 0.02;
  EXPECT_THAT(check_trial(t, kBounds), IsEmpty()) << "its threads waited for a quarter of the time";
  t = sound();
  for (Burst& b : t.bursts) b.used = {{"wall_s", 0.04}, {"wait_s", 0.001}};
  t.alone = true;
  t.import_ns = 9'000'000'000;
  t.start_up_ns = 10'500'000'000;
  EXPECT_THAT(check_trial(t, kBounds), IsEmpty()) << "what lies between its stages";
  t.import_ns = 100'000'000;
  EXPECT_THAT(rule(t), HasSubstr("phases add up to the whole"));
  t.import_ns = 19'000'000'000;
  EXPECT_THAT(rule(t), HasSubstr("phases add up to the whole")) << "longer than went by";
  t.alone = false;
  EXPECT_THAT(check_trial(t, kBounds), IsEmpty()) << "it started beside another one";
  t = sound();
  t.build_ns = -1'000'000'000;
  EXPECT_THAT(rule(t), HasSubstr("phases add up")) << "a negative one, whoever had the processors";
}

TEST(CheckTrial, TimesAndUseAreWhatTheMachineCanGive) {
  Trial t = sound();
  for (Burst& b : t.bursts) b.elapsed_ns = 90'000'000;
  EXPECT_THAT(check_trial(t, kBounds), IsEmpty()) << "others may have held the answer up";
  for (Burst& b : t.bursts) b.used = {{"wall_s", 0.09}, {"wait_s", 0.001}};
  EXPECT_THAT(rule(t), HasSubstr("samples/s x time = samples")) << "40 ms are claimed, 90 went by";
  t.rounds = {HostRound{}, HostRound{}};
  EXPECT_THAT(check_trial(t, kBounds), IsEmpty()) << "what others did cannot be read here";
  t.rounds[1].seen["others"] = 0.5;
  EXPECT_THAT(check_trial(t, kBounds), IsEmpty()) << "others had half of the processors";
  t.rounds[1].seen["others"] = 0.01;
  EXPECT_THAT(rule(t), HasSubstr("samples/s x time = samples"))
      << "the first round is judged with the second";
  t.rounds.clear();
  t.void_bursts = std::exchange(t.bursts, {});
  EXPECT_THAT(rule(t), HasSubstr("samples/s x time = samples")) << "also where none of them counts";
  t = sound();
  t.step_ns = {90'000'000};
  EXPECT_THAT(rule(t), HasSubstr("within their bursts"));
  t = sound();
  t.user_s = 1000;
  EXPECT_THAT(rule(t), HasSubstr("CPU seconds"));
  t = sound();
  t.bursts[1].used = {{"wall_s", 0.05}, {"cpu_s", 0.1}};
  EXPECT_THAT(check_trial(t, kBounds), IsEmpty()) << "both processors";
  t.bursts[1].used["cpu_s"] = 0.2;
  EXPECT_THAT(rule(t), HasSubstr("CPU seconds"));
  t = sound();
  for (Burst& b : t.bursts) b.ns = 15'000'000;  // 1.5 ms a step: 667 GFLOP/s
  EXPECT_THAT(rule(t), HasSubstr("FLOP/s"));
}

TEST(CheckTrial, AGpuIsNotHeldAgainstTheProcessors) {
  TrialBounds bounds{
      .cores = 2, .flops_per_step = 1e9, .bytes_per_step = 1e6, .peak_flops = 1e9, .levels = {{0, 1e6}}};
  Trial t = sound();
  EXPECT_EQ(check_trial(t, bounds).size(), 2u) << "on the processors";
  t.effective["device"] = "cuda:0";
  t.memory["on_gpu"] = 1;
  EXPECT_THAT(check_trial(t, bounds), IsEmpty()) << "nothing is known of the GPU";
  bounds.gpu_peak_flops = 300e9;
  EXPECT_THAT(check_trial(t, bounds), IsEmpty()) << "250 GFLOP/s";
  bounds.gpu_peak_flops = 200e9;
  const auto broken = check_trial(t, bounds);
  ASSERT_EQ(broken.size(), 1u);
  EXPECT_EQ(broken[0].text(), "FLOP/s <= measured peak: 250e9 FLOP/s against 200e9 FLOP/s");
}

TEST(MarkBroken, SetsTheReasonOfThatTrialOnly) {
  Trial lie = sound();
  lie.heat = 2;
  lie.bursts[0].steps = 20;
  const auto marked = mark_broken({sound(), lie}, {{"a", {}}});
  EXPECT_FALSE(marked[0].invalid);
  ASSERT_TRUE(marked[1].invalid);
  EXPECT_THAT(*marked[1].invalid, HasSubstr("20 steps against 10 steps"));
  EXPECT_FALSE(mark_broken({lie}, {})[0].invalid) << "nothing is known of this contender";
}

roofline::Limits limits() {
  return {.cpus = 2,
          .peaks = {{.dtype = "f32", .isa = "avx2", .ops = {100e9, 190e9}}},
          .levels = {{.name = "L1", .capacity = 32 << 10, .caches = 2, .read = {100e9, 200e9}},
                     {.name = "DRAM", .read = {15e9, 20e9}}},
          .gemms = {{.library = "B", .dtype = "f32", .ops = {90e9, 170e9}}}};
}

TEST(RooflineOf, PutsTheWorkloadUnderTheRoofOfItsLevel) {
  const auto cnn = zoo::build("mnist_cnn").value();
  const ir::Training training{.optimizer = {}, .batch = 256};
  const auto r = roofline_of(limits(), cnn, training, 0);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->level, "DRAM") << "its activations do not fit in the caches";
  EXPECT_EQ(r->peak_flops, 190e9);
  EXPECT_EQ(r->gemm_of, "B");
  EXPECT_NEAR(r->flops / 1e9, 12.4, 0.1);
  EXPECT_EQ(r->attainable(1e6), 190e9);
  EXPECT_DOUBLE_EQ(r->attainable(1), 20e9);
  ASSERT_GE(r->kinds.size(), 3u);
  EXPECT_EQ(r->kinds[0].op, "conv2d");
  EXPECT_EQ(roofline_of(limits(), cnn, training, 1)->peak_flops, 100e9);
  EXPECT_FALSE(roofline_of({}, cnn, training, 0));
}

TEST(ThreadsOf, AreThoseThatTheProcessSaysAndMayUse) {
  EXPECT_EQ(threads_of({}, 8), 8) << "nothing is known but the machine";
  EXPECT_EQ(threads_of({{"threads", "4"}}, 8), 4);
  EXPECT_EQ(threads_of({{"threads", "0"}}, 8), 8) << "the framework's word for all";
  EXPECT_EQ(threads_of({{"threads", "many"}}, 8), 8);
  EXPECT_EQ(threads_of({{"threads", "64"}}, 8), 8);
  EXPECT_EQ(threads_of({{"threads", "4"}, {"cpus", "0,5"}}, 8), 2) << "four threads on two processors";
  EXPECT_EQ(threads_of({{"cpus", "2-4"}}, 8), 3);
  EXPECT_EQ(threads_of({{"cpus", "garbage"}}, 8), 8);
}

TEST(RooflineOf, HasTheCachesOfItsThreadsOnly) {
  const auto mlp = zoo::build("mlp_small").value();
  const ir::Training training{.optimizer = {}, .batch = 50};
  auto known = limits();
  const auto cost = ir::step_cost(mlp, training.optimizer, training.batch).value();
  // Two caches hold what a step touches, one does not.
  known.levels[0].capacity = (cost.bytes_forward + cost.bytes_optimizer) * 2 / 3;
  EXPECT_EQ(roofline_of(known, mlp, training, 2)->level, "L1");
  EXPECT_EQ(roofline_of(known, mlp, training, 1)->level, "DRAM");
  EXPECT_EQ(roofline_of(known, mlp, training, 1)->bytes_per_s, 15e9);
  EXPECT_EQ(roofline_of(known, mlp, training, 1)->threads, 1);
}

TEST(TrialBounds, KnowThePeakOfThePrecision) {
  const auto mlp = zoo::build("mlp_small").value();
  auto known = limits();
  known.peaks = {{.dtype = "f32", .ops = {.one = 10e9, .all = 20e9}},
                 {.dtype = "bf16", .ops = {.one = 40e9, .all = 80e9}}};
  const auto peak = [&](const Texts& settings) {
    return trial_bounds({.id = "a", .settings = settings}, nullptr, mlp, {}, 2, &known).peak_flops;
  };
  EXPECT_EQ(peak({}), 20e9);
  EXPECT_EQ(peak({{"precision", "float32"}, {"tf32", "false"}}), 20e9);
  EXPECT_EQ(peak({{"precision", "bfloat16"}}), 80e9);
  EXPECT_EQ(peak({{"precision", "float16"}}), 80e9);
  EXPECT_EQ(peak({{"tf32", "true"}}), 80e9);
  EXPECT_EQ(peak({{"cuda_allocator", "damp_high_mixed"}}), 20e9) << "a word in a value is no precision";
}

TEST(TrialBounds, FollowTheContender) {
  const auto mlp = zoo::build("mlp_small").value();
  const ir::Training training{.optimizer = {}, .batch = 50};
  const auto known = limits();
  const Parity proof{.contender = "a", .losses = {2.5, 2.25}};
  Contender c{.id = "a"};
  const auto bounds = trial_bounds(c, &proof, mlp, training, 2, &known);
  EXPECT_EQ(bounds.peak_flops, 190e9);
  EXPECT_EQ(bounds.losses, (std::map<int64_t, double>{{1, 2.5}, {2, 2.25}}));
  ASSERT_EQ(bounds.levels.size(), 2u);
  EXPECT_EQ(bounds.levels[1], (std::pair<double, double>{64 << 10, 20e9}));
  EXPECT_EQ(bounds.gpu_peak_flops, 0) << "no GPU was measured";
  auto with_gpus = known;
  with_gpus.gpus = {{.gemm = {{"f32", 50e12}, {"bf16", 700e12}}}, {.gemm = {{"f32", 60e12}}}};
  EXPECT_EQ(trial_bounds(c, &proof, mlp, training, 2, &with_gpus).gpu_peak_flops, 700e12);
  EXPECT_EQ(bounds.per_call, 1) << "its framework is not known here";
  const auto per_call = [&](const Contender& contender) {
    return trial_bounds(contender, &proof, mlp, training, 2, &known).per_call;
  };
  EXPECT_EQ(per_call({.id = "a", .framework = "keras", .settings = {{"steps_per_execution", "8"}}}), 8);
  EXPECT_EQ(per_call({.id = "a", .framework = "jax", .settings = {{"steps_per_call", "32"}}}), 32);
  EXPECT_EQ(per_call({.id = "a", .framework = "torch", .settings = {{"steps_per_call", "32"}}}), 1);
  EXPECT_EQ(trial_bounds(c, &proof, mlp, training, 2, nullptr).peak_flops, 0);
  c.own_script = "/mine.py";
  EXPECT_EQ(trial_bounds(c, nullptr, mlp, training, 2, &known).flops_per_step, 0) << "it may do other work";
  const Parity other{.contender = "a", .diverges_at = "loss"};
  EXPECT_EQ(trial_bounds(c, &other, mlp, training, 2, &known).flops_per_step, 0) << "it does other work";
  EXPECT_EQ(trial_bounds(c, &proof, mlp, training, 2, &known).flops_per_step, bounds.flops_per_step)
      << "proven to do the same";
  ir::Training as_is = training;
  as_is.track = ir::Track::kAsIs;
  EXPECT_THAT(trial_bounds(c, &proof, mlp, as_is, 2, &known).losses, IsEmpty());
}

}  // namespace
}  // namespace bakeoff
