#pragma once

// The inside of Child, which LineChannel refers to while a Child moves. Internal to this room.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "base/result.h"
#include "proc/exit.h"
#include "proc/fd.h"
#include "proc/launch_order.h"
#include "proc/log.h"

namespace bakeoff::proc {

struct ChildState {
  explicit ChildState(LogTail log_tail) : tail(std::move(log_tail)) {}

  UniqueFd control;  // our end: commands out, reports in
  UniqueFd request;
  UniqueFd answer;
  UniqueFd output;
  LogTail tail;
  pid_t pid = -1;
  bool stopped = false;
  bool told_to_end = false;
  std::optional<Exit> exit;
  int64_t memory_limit_bytes = 0;
  int64_t address_space_limit_bytes = 0;
  int64_t private_memory_limit_bytes = 0;

  // Waits until `deadline_ns` for the guardian's next report; nullopt at the deadline. If the guardian
  // vanished, the report says that the child is lost.
  std::optional<Report> next_report(int64_t deadline_ns);

  // Records the end of the child if it has been reported; does not wait.
  void look();

  // Waits for the end until `deadline_ns`.
  void await_end(int64_t deadline_ns);

  // Freezes (true) or thaws (false) all processes of the child, and waits until that is done.
  Status freeze(bool frozen);

  void send(const Command& command) const;

 private:
  void note(const Report& report);
};

// Waits until `fd` is readable; false at the deadline.
bool wait_readable(int fd, int64_t deadline_ns);

// For poll(2): milliseconds until `deadline_ns`, rounded up, at most a minute.
int poll_timeout_ms(int64_t deadline_ns);

}  // namespace bakeoff::proc
