#pragma once

// The memory of processes in bytes, read from outside.
//
// | number    | from                          | what                                                        |
// |-----------|-------------------------------|-------------------------------------------------------------|
// | rss       | status: VmRSS                 | pages in memory; shared pages count in full                 |
// | peak_rss  | status: VmHWM                 | highest rss since the process began, compilation included   |
// | pss       | smaps_rollup: Pss             | like rss, but shared pages divided by the number of sharers |

#include <sys/types.h>

#include <filesystem>
#include <vector>

#include "sample/reading.h"

namespace bakeoff::sample {

struct ProcessMemory {
  Reading rss_bytes, peak_rss_bytes;
  Reading pss_bytes;  // the kernel walks all pages: milliseconds per GB, during which the process waits
  bool operator==(const ProcessMemory&) const = default;
};

// Reads `root`/proc/<pid>/. with_pss: false leaves pss_bytes out, with the reason "not asked for".
ProcessMemory sample_memory(pid_t pid, const std::filesystem::path& root = "/", bool with_pss = true);
// The sums over several processes, which may have had their highest rss at different times. A number that one of them
// lacks is absent.
ProcessMemory sample_memory(const std::vector<pid_t>& pids, const std::filesystem::path& root = "/",
                            bool with_pss = true);

}  // namespace bakeoff::sample
