#pragma once

// Work of a process that goes on after its answer.

#include <sys/types.h>

#include <cstdint>

namespace bakeoff {

// Nanoseconds of a processor that process `pid` uses from now on without a pause, however many threads do:
// until it neither uses a quarter of 4 ms nor has a thread that would if a processor were free. Looks for
// 4 ms where it is idle, until `limit_ns` are used, and for no longer than five times as long.
int64_t busy_after(pid_t pid, int64_t limit_ns);

}  // namespace bakeoff
