#pragma once

// Whether a worker answers only after its work is done. A framework that dispatches asynchronously (JAX does
// so on a CPU too) and is not waited for would be timed for handing out work, not for doing it. Two things
// give it away, and both are looked at for every burst:
//
// 1. The answer comes late. The worker says that its n steps took t; from the request to the answer more time
//    went by. What it claims to have finished it had to wait for after its clock had been read.
// 2. The answer comes at once, but the worker goes on using a processor, or waiting for one that others have.
//
// late_ns is what both come to; of the second its processor time, which others on the machine do not make
// longer. Beside them answers come late by themselves, so more of it is asked for there; bursts of the
// default length that a worker did not wait for are later still. A worker whose thread pool spins for a while
// after its work looks like the second; outstanding work shrinks with the number of steps, spinning does not:
// a burst of a single step tells them apart (is_outstanding_work).
//
// Not seen from here: work left on another device whose result nobody reads.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/trial.h"

namespace bakeoff {

// Late enough to shift a result: more than a tenth of the burst and than 20 ms; than 100 ms where others may
// have had the processors.
bool is_late(const Burst& burst, bool contended);

// The rule: more than half of a trial's bursts (two at least) are late. In words for the table, else nothing.
std::optional<std::string> answers_early(const Trial& trial);

// Whether lateness `one_ns` of a single step beside that of whole bursts speaks of outstanding work rather
// than of threads that spin for a fixed time, which no pool does for a second.
bool is_outstanding_work(const std::vector<Burst>& bursts, int64_t one_ns);

}  // namespace bakeoff
