#pragma once

// One class owns one child process.
//
//   TRY(Child child, Child::start({.argv = {"python3", "-m", "bakeoff_runner", "--framework", "torch"},
//                                  .env = {{"OMP_NUM_THREADS", "2"}}, .cpus = {0, 1}, .log_file = "w.log"}));
//   LineChannel channel(child);
//   auto answer = channel.exchange(R"({"id":1,"op":"memory"})", now + seconds(5), "memory");
//   child.stop();                       // freezes it: it uses no processor time
//   child.resume();
//   Exit end = child.kill(seconds(1));  // SIGTERM, one second, SIGKILL; also to all its descendants
//
// The child runs in its own process group, below a guardian process (launcher.h). The guardian drains its
// stdout and stderr, reaps it, and kills everything that it leaves behind, even processes that called
// setsid. The child gets descriptors 0 (/dev/null), 1 and 2 (the log), 3 (requests) and 4 (answers), and no
// other. The kernel's OOM killer prefers it to this program. If this program dies in any way, the child and
// all its descendants die too. If a child ends by itself, its descendants are killed 100 ms later and
// counted in Exit::leftovers.
//
// Not thread-safe; different children may be used from different threads.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "proc/exit.h"

namespace bakeoff::proc {

struct ChildOptions {
  // argv[0] is looked up in the child's PATH unless it has a slash (then it is relative to *our* folder).
  std::vector<std::string> argv = {};
  std::map<std::string, std::string> env = {};  // variables added to our environment
  std::vector<std::string> env_remove = {};     // variables removed from it
  bool env_clear = false;                       // start from an empty environment instead of ours
  std::filesystem::path cwd = {};               // working directory; empty: ours
  std::vector<int> cpus = {};                   // affinity; empty: the launcher's

  bool control = true;                        // give it fds 3 and 4 (see LineChannel)
  std::filesystem::path log_file = {};        // stdout and stderr, overwritten; empty: only the tail is kept
  int64_t log_file_bytes = int64_t{4} << 20;  // maximum; the middle is cut
  size_t log_tail_bytes = size_t{64} << 10;   // kept in memory
  bool output_to_us = false;                  // no log: read stdout and stderr from output_fd() (see run.h)
  // TMPDIR is a new folder in ours, removed when the child has ended: a killed one removes nothing itself. So is
  // what it keeps there for the next process on purpose, unless that lies elsewhere (emit::CompilerCache).
  bool own_temporary_folder = false;

  int nice = 0;
  bool randomise_addresses = true;        // false: no ASLR (personality); an error if that is forbidden
  bool huge_pages = true;                 // false: no transparent huge pages for it (PR_SET_THP_DISABLE)
  int64_t address_space_limit_bytes = 0;  // RLIMIT_AS; 0 = no limit. XLA reserves far more than it uses.
  // RLIMIT_DATA, private writable memory of each of its processes; beyond it allocation fails. 0 = no limit.
  int64_t private_memory_limit_bytes = 0;
  // Resident memory of it and its descendants, checked every 20 ms; beyond it they are killed. 0 = no limit.
  int64_t memory_limit_bytes = 0;
};

struct ChildState;  // proc/child_state.h

class Child {
 public:
  // Returns when the program runs (exec succeeded). Errors name the program and what failed.
  static Result<Child> start(const ChildOptions& options);

  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;  // kills the child that it held
  ~Child();                            // sends SIGKILL to everything, and waits for the end

  pid_t pid() const;

  // Freezes or thaws all its processes; returns when that is done. No effect if it is done already.
  Status stop();
  Status resume();
  bool stopped() const;

  // How it ended, once it has ended and has been reaped with everything that it left.
  std::optional<Exit> exit() const;

  // Waits until it has ended, or until the monotonic clock shows `deadline_ns`: then nullopt. Ctrl-C does not
  // interrupt this, as it is called after Ctrl-C.
  std::optional<Exit> wait(int64_t deadline_ns) const;
  // Begins to end it: SIGTERM, and SIGKILL to everything after `grace_ns` (0 = at once). Returns
  // immediately, so that several children can be ended at the same time.
  void begin_kill(int64_t grace_ns = 0);
  // begin_kill() and wait. Takes `grace_ns` plus some milliseconds at most.
  Exit kill(int64_t grace_ns = 0);

  std::string log_tail() const;  // valid UTF-8; the log file, if any, has the rest
  int64_t log_bytes() const;     // bytes written by it so far
  // Descriptors for poll(2): requests go into the first, answers come from the second, the third becomes
  // readable when the child has ended, the fourth is its output (output_to_us). -1 if there is none. All
  // are non-blocking.
  int request_fd() const;
  int answer_fd() const;
  int exit_fd() const;
  int output_fd() const;

 private:
  friend class LineChannel;
  explicit Child(std::unique_ptr<ChildState> state);
  std::unique_ptr<ChildState> state_;  // stays where it is when the Child moves
};

// The absolute path of `program` as execvp would find it with this PATH.
Result<std::filesystem::path> find_program(const std::string& program, const std::string& path);

}  // namespace bakeoff::proc
