#pragma once

// How a process ended and what it used, as values and in words.

#include <cstdint>
#include <string>
#include <string_view>

namespace bakeoff::proc {

// From wait4(2): the process itself and those of its children it waited for.
struct ResourceUsage {
  double user_s = 0;
  double system_s = 0;
  int64_t max_rss_bytes = 0;  // peak resident set; never below the launcher's own few MB
  int64_t minor_faults = 0;
  int64_t major_faults = 0;
  int64_t voluntary_switches = 0;
  int64_t involuntary_switches = 0;
};

struct Exit {
  enum class Kind {
    kCode,    // ended by itself with `code`
    kSignal,  // ended by `signal`
    kLost,    // its guardian vanished or could not kill it: its end is unknown
  };
  Kind kind = Kind::kLost;
  int code = 0;
  int signal = 0;
  bool asked = false;                      // we ended it (kill() or the destructor)
  bool out_of_memory = false;              // the kernel counted an OOM kill in this cgroup during its life
  int64_t over_limit_bytes = 0;            // > 0: we killed it at this resident size, above the limit
  int64_t memory_limit_bytes = 0;          // as in ChildOptions; 0 = none
  int64_t address_space_limit_bytes = 0;   // as in ChildOptions; 0 = none
  int64_t private_memory_limit_bytes = 0;  // the same
  int leftovers = 0;                       // descendants alive 100 ms after it ended by itself (all killed)
  ResourceUsage usage = {};

  bool ok() const { return kind == Kind::kCode && code == 0; }

  // "exit code 1", "killed by signal 9 (SIGKILL), likely out of memory", "ended by Bakeoff (SIGTERM)",
  // "exit code 0; left 2 processes behind (killed)". `stage` adds where it happened: "exit code 1 in stage
  // import", "killed by signal 9 (SIGKILL) in stage run, likely out of memory".
  std::string text(std::string_view stage = {}) const;
};

// "SIGKILL"; "signal 77" for one without a name.
std::string signal_name(int signal);

// "2.1 GiB", "512 MiB", "17 KiB".
std::string bytes_text(int64_t bytes);

// "30 s", "1.5 s", "20 ms": for messages about deadlines.
std::string duration_text(int64_t ns);

}  // namespace bakeoff::proc
