#pragma once

// The messages between supervisor, launcher and guardians. Internal to this room.
//
//   supervisor --LaunchOrder--> launcher --fork--> guardian --fork, exec--> child
//              <---------------- Report ----------'
//              ----------------- Command -------->'

#include <sys/resource.h>

#include <cstdint>
#include <string>
#include <vector>

#include "proc/fd.h"

namespace bakeoff::proc {

struct LaunchOrder {
  std::string program = {};  // absolute path
  std::vector<std::string> argv = {};
  std::vector<std::string> env = {};  // "NAME=value": the whole environment
  std::string cwd = {};
  std::vector<int> cpus = {};
  int nice = 0;
  bool randomise_addresses = true;
  bool huge_pages = true;
  int64_t address_space_limit_bytes = 0;
  int64_t private_memory_limit_bytes = 0;
  int64_t memory_limit_bytes = 0;
  int64_t log_file_cap = 0;
  bool has_control = false;   // descriptors kRequest and kAnswer exist
  bool has_log_file = false;  // descriptor kLogFile exists
  bool has_output = false;    // descriptor kOutput exists: stdout and stderr go to it instead of the log
  bool own_temporary_folder = false;
};

// The descriptors that are sent with an order, in this order; absent ones are left out.
struct LaunchFds {
  UniqueFd order;    // memory file with the packed order
  UniqueFd control;  // guardian's end: commands in, reports out
  UniqueFd tail;     // LogTail::fd()
  UniqueFd request;  // becomes the child's fd 3
  UniqueFd answer;   // becomes the child's fd 4
  UniqueFd log_file;
  UniqueFd output;
};

std::string pack(const LaunchOrder& order);
LaunchOrder unpack(const std::string& bytes);  // trusts its input: both ends are this program

enum class CommandKind : int32_t { kKill, kFreeze, kThaw };
struct Command {
  CommandKind kind = CommandKind::kKill;
  int32_t padding = 0;
  int64_t grace_ns = 0;  // kKill: time between SIGTERM and SIGKILL; 0 = SIGKILL at once
};

enum class ReportKind : int32_t { kStarted, kNotStarted, kFrozen, kThawed, kExited };
// The step at which starting failed.
enum class StartStep : int32_t {
  kFork,
  kFds,
  kCpus,
  kNice,
  kPersonality,
  kHugePages,
  kLimit,
  kFolder,
  kExec
};
struct Report {
  ReportKind kind = ReportKind::kStarted;
  StartStep step = StartStep::kFork;  // kNotStarted
  int32_t error = 0;                  // kNotStarted: errno
  int32_t pid = 0;                    // kStarted
  int32_t reaped = 0;                 // kExited: 0 = it could not be killed
  int32_t status = 0;                 // kExited: as from wait4
  int32_t asked = 0;                  // kExited: we sent the signals
  int32_t leftovers = 0;
  int64_t oom_kills = 0;
  int64_t over_limit_bytes = 0;
  struct rusage usage = {};
};

// The body of a guardian process: starts the child, executes commands, reports the end. Never returns.
[[noreturn]] void run_guardian(LaunchOrder order, LaunchFds fds);

// The body of the child between fork and exec. Never returns; writes {StartStep, errno} to `error_fd`.
struct StartFailure {
  StartStep step = StartStep::kFork;
  int32_t error = 0;
};
[[noreturn]] void exec_child(const LaunchOrder& order, const LaunchFds& fds, int output_fd, int error_fd);

}  // namespace bakeoff::proc
