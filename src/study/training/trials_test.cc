// What both kinds of trainings keep on disk.

#include <cmath>

#include "records/testing.h"
#include "study/training/fit_trial.h"
#include "study/training/target_trial.h"

namespace bakeoff {
namespace {

const HostRound kRound{7, {{"steal", 0.5}}, {{"others", "hidden"}}, "stolen", true, 3};
const Burst kBurst{200, 2, 8, 9, 2, 201, {{4, 0.25}}, {{"wall_s", 1}}, BatchWait{5, 6, 7, 8}, 2, 61, 71, 81};

TEST(TargetTrial, IsKept) {
  TargetTrial full{.contender = "torch",
                   .seed = 2,
                   .started = "now",
                   .failure = Failure{Stage::kRun, "exit code 1", "tail"},
                   .start_up_ns = 3,
                   .looks = {{10, 20, 0.5, 0.75}},
                   .reached = true,
                   .rounds = {kRound},
                   .effective = {{"threads", "2"}}};
  testing::expect_kept(full);
  full.looks[0].loss = NAN;
  EXPECT_GT(from_json<TargetTrial>(to_json(full), "here")->looks[0].loss, 1e300) << "JSON has no NaN";
}

TEST(FitTrial, IsKept) {
  FitTrial full{.contender = "torch",
                .seed = 2,
                .started = "now",
                .failure = Failure{Stage::kRun, "exit code 1", "tail"},
                .start_up_ns = 3,
                .stretches = {kBurst},
                .rounds = {kRound},
                .on_trained = TargetLook{10, 20, 0.5, 0.75},
                .on_held = TargetLook{10, 20, 0.6, 0.7},
                .watched = {TargetLook{10, 20, 0.6, 0.7}},
                .stopped = 1,
                .effective = {{"threads", "2"}}};
  testing::expect_kept(full);
  full.on_held = TargetLook{5, 50, NAN, 0.1};
  EXPECT_GT(from_json<FitTrial>(to_json(full), "here")->on_held->loss, 1e300) << "JSON has no NaN";
}

}  // namespace
}  // namespace bakeoff
