#pragma once

// How long a contender's training loop waited for its batches, separately from what it computed.

#include <cstdint>
#include <optional>
#include <vector>

#include "records/trial.h"

namespace bakeoff {

// Over all bursts of some trials. It is host time: the device may have been busy meanwhile if it runs at
// the same time as the loop. Empty if the framework takes batches inside its step, where the wait cannot be
// seen. busy meanwhile. Empty where the loop takes its batches inside the step, which shows none of it.
struct InputWait {
  std::optional<double> share = {};     // share of the bursts' time
  std::optional<double> batch_ms = {};  // wait for a batch that is not the first of its epoch
  std::optional<double> first_ms = {};  // wait for the first batch of an epoch; empty: none began in a burst
  // Wait for all batches of an epoch. If first_ms is empty, its first batch is counted like the others.
  std::optional<double> epoch_ms = {};
  bool operator==(const InputWait&) const = default;
};

// batches: number of batches of an epoch; 0: unknown.
InputWait input_wait_of(const std::vector<const Trial*>& trials, int64_t batches);

}  // namespace bakeoff
