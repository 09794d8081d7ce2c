#pragma once

// Runs a command to its end, for installers and short tools.
//
//   TRY(CommandResult pip, run_command({.child = {.argv = {python, "-m", "pip", "install", "-r", file}},
//                                       .timeout_ns = 600 * kSecond,
//                                       .on_line = [&](std::string_view line) { progress.show(line); }}));
//   if (!pip.ok()) return Error{.message = pip.text() + "\n" + pip.output_tail};

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "proc/child.h"

namespace bakeoff::proc {

struct CommandOptions {
  ChildOptions child = {};  // run_command sets control and output_to_us; log_file is not written
  int64_t timeout_ns = 0;   // 0 = none. At the timeout: SIGTERM, and SIGKILL 2 s later.
  // Called for every line of stdout and stderr when it arrives, without its end (\n, or \r: progress bars
  // rewrite their line). Valid UTF-8. Lines longer than 64 KiB arrive in pieces. May be empty.
  std::function<void(std::string_view)> on_line = {};
  size_t tail_bytes = size_t{64} << 10;  // of the output kept in output_tail
};

struct CommandResult {
  Exit exit = {};
  bool timed_out = false;
  int64_t timeout_ns = 0;
  std::string output_tail = {};  // stdout and stderr in order, valid UTF-8

  bool ok() const { return exit.ok() && !timed_out; }
  std::string text() const;  // "exit code 1", "timed out after 30 s"
};

// Errors: the program cannot be started; interrupted (interrupt.h; the command is ended first, within 1 s).
Result<CommandResult> run_command(const CommandOptions& options);

}  // namespace bakeoff::proc
