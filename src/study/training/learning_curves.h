#pragma once

// Learning curves of recorded trainings, as pictures of a section: loss and accuracy over steps and over seconds.
// Pure functions of the records.

#include <vector>

#include "study/training/fit_trial.h"
#include "table/section.h"

namespace bakeoff {

// Of held-out rows, at every look: medians over the seeds, ranges from least to greatest. The referee's curve is
// over steps alone, as its seconds mean nothing.
std::vector<table::Picture> target_curves(const std::vector<TargetTrial>& trials);

// Of the batches that were trained on, as each contender reports them: means of kCurvePoints stretches of equal length,
// of the first seed. Seconds are of training, the first step included. With fit.patience also those of the rows held
// out, after each epoch.
inline constexpr int kCurvePoints = 120;
std::vector<table::Picture> fit_curves(const std::vector<FitTrial>& trials);

}  // namespace bakeoff
