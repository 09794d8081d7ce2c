#pragma once

// One class owns one child process.
//
//   TRY(Child child, Child::start({.argv = {"python3", "-m", "bakeoff_runner", "--framework", "torch"},
//                                  .env = {{"OMP_NUM_THREADS", "2"}}, .cpus = {0, 1}, .log_file = "w.log"}));
//   LineChannel channel(child);
//   auto answer = channel.exchange(R"({"id":1,"op":"memory"})", now + seconds(5), "memory");
//   child.stop();                       // frozen: uses no processor time
//   child.resume();
//   Exit end = child.kill(seconds(1));  // SIGTERM, one second, SIGKILL; everything below it too
//
// The child runs in a process group of its own, below a guardian process (launcher.h) that drains its stdout
// and stderr, reaps it and kills whatever it leaves behind, also processes that called setsid. It gets
// descriptors 0 (/dev/null), 1 and 2 (the log), 3 (requests) and 4 (answers), and no other. It is offered to
// the kernel's OOM killer before this program is. If this program dies, by whatever means, so does the child
// with all its descendants. A child that ends by itself takes its descendants with it as well: 100 ms later
// what is left is killed and counted in Exit::leftovers.
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
  std::map<std::string, std::string> env = {};  // set on top of our environment
  std::vector<std::string> env_remove = {};     // taken out of it
  bool env_clear = false;                       // start from an empty environment instead of ours
  std::filesystem::path cwd = {};               // empty: ours
  std::vector<int> cpus = {};                   // affinity; empty: the launcher's

  bool control = true;                        // give it fds 3 and 4 (see LineChannel)
  std::filesystem::path log_file = {};        // stdout and stderr, overwritten; empty: only the tail is kept
  int64_t log_file_bytes = int64_t{4} << 20;  // at most; what is cut is the middle
  size_t log_tail_bytes = size_t{64} << 10;   // kept in memory
  bool output_to_us = false;                  // no log: read stdout and stderr from output_fd() (see run.h)

  int nice = 0;
  bool randomise_addresses = true;        // false: no ASLR (personality); an error where that is forbidden
  bool huge_pages = true;                 // false: no transparent huge pages for it (PR_SET_THP_DISABLE)
  int64_t address_space_limit_bytes = 0;  // RLIMIT_AS; 0 = none. XLA reserves far more than it uses.
  // RLIMIT_DATA, private memory that can be written: its allocator fails beyond; 0 = none. Of each of its
  // processes.
  int64_t private_memory_limit_bytes = 0;
  int64_t memory_limit_bytes = 0;  // resident memory of it and its descendants, checked every 20 ms; 0 = none
};

struct ChildState;  // proc/child_state.h

class Child {
 public:
  // Returns once the program runs (exec succeeded). Errors name the program and what failed.
  static Result<Child> start(const ChildOptions& options);

  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;  // kills the child it held
  ~Child();                            // SIGKILL to everything, and waits for that

  pid_t pid() const;

  // Freezes and thaws all its processes; returns when no thread runs. Of no effect if it is so already.
  Status stop();
  Status resume();
  bool stopped() const;

  // Its end, if it has ended (and been reaped, with everything it left).
  std::optional<Exit> exit() const;

  // Waits until it has ended or the monotonic clock shows `deadline_ns`; nullopt then. Not interrupted by
  // Ctrl-C: it is what follows one.
  std::optional<Exit> wait(int64_t deadline_ns) const;

  // Tells it to end: SIGTERM, and SIGKILL to everything after `grace_ns` (0 = at once). Returns immediately,
  // so that several can be told before any is waited for.
  void begin_kill(int64_t grace_ns = 0);

  // begin_kill() and wait. Takes `grace_ns` and some milliseconds at most.
  Exit kill(int64_t grace_ns = 0);

  std::string log_tail() const;  // valid UTF-8; with a log file, the rest is there
  int64_t log_bytes() const;     // written by it so far

  // For those who poll: requests go into the first, answers come from the second, the third becomes readable
  // when the child has ended, the fourth is its output (output_to_us). -1 where there is none. All
  // non-blocking.
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
