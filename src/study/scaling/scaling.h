#pragma once

// What several devices gain, and what the exchange among them costs. The race compares contenders that all have the
// whole machine, so there one device has every processor. Here one device has what each of several has, and four
// processes take turns in one heat, burst by burst:
//
//   one     one device, the recipe's batch
//   strong  all devices share that batch
//   weak    each device has that batch, so a step has as many times the rows
//   silent  as `strong`, without communication: gradients are not averaged, no statistic is shared
//
// Strong scaling asks how much sooner a step is over, weak scaling how many more rows a second there are. What `strong`
// takes beyond `silent` is the time of communication that no arithmetic hides. `silent` computes another training, so
// nothing but its duration is used.

#include "study/study.h"

namespace bakeoff {

// The variable that tells a worker to leave communication out; one that did says so in Trial::effective.
inline constexpr const char* kCommunication = "BAKEOFF_COMMUNICATION";
inline constexpr const char* kCommunicationOff = "off";

// Study::run, into scaling.jsonl.
Status measure_scaling(const Afterwards& race);

}  // namespace bakeoff
