#pragma once

// Detects a worker that answers before its work is done. A framework that dispatches asynchronously (JAX
// does so on a CPU too) and is not waited for would be timed for dispatching work, not for doing it. Two
// signs are checked after every burst:
//
// 1. The answer is late. The worker reports that its n steps took t, but more time elapsed from request to
//    answer: after it had read its clock it still waited for work.
// 2. The answer is not late, but the worker keeps a processor busy, or waits for one that others use.
//
// late_ns is their sum; the second counts CPU time, which other processes cannot inflate. On a busy machine
// answers are late without any such fault, so the limit is higher there, by all the time that the worker's
// threads waited for a processor unless other processes are known to have used none: with a load of 29 on two
// processors honest answers came 290 ms late. A thread pool that spins for a while after its work shows sign 2
// too. Outstanding work shrinks with the number of steps and spinning
// does not, so a burst of one step distinguishes them (is_outstanding_work).
//
// Work that is left on another device and whose result is never read cannot be detected here.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/trial.h"

namespace bakeoff {

// Whether a burst is late enough to change a result: by more than 10% of the burst and more than 20 ms;
// more than 100 ms if others may have used the processors (`contended`). `waited_ns`: how much later it may be,
// as its threads waited for a processor that others had.
bool is_late(const Burst& burst, bool contended, int64_t waited_ns = 0);

// The rule: more than half of a trial's bursts, and two at least, are late. In words for the table, or
// nothing.
std::optional<std::string> answers_early(const Trial& trial);

// Whether a single step that is `one_ns` late, compared with whole bursts, shows outstanding work. Otherwise
// threads spin for a fixed time, which no thread pool does for a second.
bool is_outstanding_work(const std::vector<Burst>& bursts, int64_t one_ns);

}  // namespace bakeoff
