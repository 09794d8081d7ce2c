#pragma once

// The descendants of a process, read from /proc.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bakeoff::proc {

// All living and zombie descendants of `root`, nearest first, without `root`. It is a snapshot: processes
// may start and end meanwhile. It finds descendants that left their group or session, as long as the
// ancestors in between are alive or an ancestor is a subreaper (PR_SET_CHILD_SUBREAPER).
std::vector<pid_t> descendants(pid_t root);

// The same by reading every /proc/<pid>/stat, for kernels without CONFIG_PROC_CHILDREN. Slower: it takes
// milliseconds.
std::vector<pid_t> descendants_by_scan(pid_t root);

// State letter of /proc/<pid>/stat ('R', 'S', 'D', 'T', 'Z', ...); 0 if there is no such process.
char process_state(pid_t pid);

// Resident set of `pid` now, in bytes; 0 if there is no such process.
int64_t resident_bytes(pid_t pid);

}  // namespace bakeoff::proc
