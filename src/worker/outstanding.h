#pragma once

// Work of a process that continues after its answer.

#include <sys/types.h>

#include <cstdint>

namespace bakeoff {

// CPU time in ns that process `pid` uses from now on without a pause, counted as one processor even if
// several threads work. It ends when the process neither uses a quarter of a 4 ms window nor has a runnable
// thread that waits for a processor. It watches for 4 ms if the process is idle, until `limit_ns` of CPU
// time are used, and never longer than five times `limit_ns`.
int64_t busy_after(pid_t pid, int64_t limit_ns);

}  // namespace bakeoff
