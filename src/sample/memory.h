#pragma once

// The memory of one process, in bytes, seen from outside.
//
// | number    | from                          | what                                                        |
// |-----------|-------------------------------|-------------------------------------------------------------|
// | rss       | status: VmRSS                 | pages in memory, those it shares with others in full        |
// | peak_rss  | status: VmHWM                 | the most that was ever, compilation included                |
// | pss       | smaps_rollup: Pss             | the same as rss, shared pages divided by those who share    |

#include <sys/types.h>

#include <filesystem>

#include "sample/reading.h"

namespace bakeoff::sample {

struct ProcessMemory {
  Reading rss_bytes, peak_rss_bytes;
  Reading pss_bytes;  // the kernel walks all pages for it: milliseconds a GB, during which the process waits
  bool operator==(const ProcessMemory&) const = default;
};

// From <root>/proc/<pid>/. with_pss: false leaves that out, "not asked for".
ProcessMemory sample_memory(pid_t pid, const std::filesystem::path& root = "/", bool with_pss = true);

}  // namespace bakeoff::sample
