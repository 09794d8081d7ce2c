#pragma once

// Held-out rows, on which no contender trains, and the one judge of what all frameworks have learnt: the
// referee, which predicts them in float64 and in inference mode.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"
#include "referee/evaluate.h"
#include "study/training/target_trial.h"

namespace bakeoff {

// Cut into batches.
struct HeldOut {
  ir::Workload workload = {};
  std::vector<referee::Inputs> batches = {};
  bool has_classes = false;  // accuracy means something: the loss is that of classes
};

// Rows [first, first + rows) of a data file; floats are divided by `divisor`.
Result<HeldOut> hold_out(const ir::Workload& workload, const std::filesystem::path& data, double divisor,
                         int64_t first, int64_t rows);

// Loss and accuracy of these rows. `weights` by ParamId. steps and ns are 0. Error after Ctrl-C.
Result<TargetLook> look_at(const HeldOut& held_out, const referee::Weights& weights);

// Parameters and buffers as a worker wrote them (operation `state` of the runner protocol). `averages`: in
// place of trained parameters the averages that the optimizer keeps of them (optimizer.ema).
Result<referee::Weights> read_state(const ir::Workload& workload, const std::filesystem::path& file,
                                    bool averages = false);

}  // namespace bakeoff
