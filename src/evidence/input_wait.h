#pragma once

// How long a contender's training loop waited for its batches, apart from what it computed with them.

#include <cstdint>
#include <optional>
#include <vector>

#include "records/trial.h"

namespace bakeoff {

// Over all bursts of some trials. Host time: where loop and device run side by side, the device may have been
// busy meanwhile. Empty where the loop takes its batches inside the step, which shows none of it.
struct InputWait {
  std::optional<double> share = {};     // of the bursts' time
  std::optional<double> batch_ms = {};  // for a batch that is not the first of its epoch
  std::optional<double> first_ms = {};  // for the first of an epoch; empty: no epoch began in a burst
  std::optional<double> epoch_ms =
      {};  // for all batches of an epoch; without first_ms that counts as another
  bool operator==(const InputWait&) const = default;
};

// batches: of an epoch; 0: not known.
InputWait input_wait_of(const std::vector<const Trial*>& trials, int64_t batches);

}  // namespace bakeoff
