#pragma once

// The value of one contender in one heat: the estimator on which every verdict rests. Races
// (evidence/heats.h) and the proof by simulation (prove/) call this same function.

#include <optional>
#include <span>

namespace bakeoff::stats {

// log of the top-trimmed mean (stats/trimmed.h) of the ms per step of a process's bursts, one value for
// each burst. Only bursts after warm-up are passed, without steps that do not count. With fewer than 10
// bursts none is trimmed. Nothing if there is no burst, or a time is not a positive finite number.
std::optional<double> heat_value(std::span<const double> burst_ms);

}  // namespace bakeoff::stats
