#pragma once

// Exchanges requests and answers, one line each, with a child (its descriptors 3 and 4).
//
//   LineChannel channel(child);
//   Result<std::string> hello = channel.receive(deadline, "start");
//   Result<std::string> answer = channel.exchange(request, deadline, "build");
//   if (!answer) {                       // "timed out after 30 s in stage build"
//     const ExchangeFailure& failure = *channel.failure();
//     if (failure.kind == FailureKind::kDied) use(*failure.exit, failure.log_tail);
//   }
//
// It never blocks beyond the deadline, whatever the child does: it writes and reads at the same time, and
// the guardian drains the output (launcher.h). After a failure other than kInterrupted the channel cannot
// be used again: an answer may still arrive. Lines are bytes without newline; nothing is parsed here.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "proc/child.h"

namespace bakeoff::proc {

enum class FailureKind {
  kTimeout,      // no complete line in time; the child lives
  kDied,         // the child has ended
  kClosed,       // it closed its answer descriptor but lives
  kTooLong,      // a line exceeds the limit
  kInterrupted,  // SIGINT or SIGTERM came (interrupt.h)
  kSystem,       // a system call failed
};

struct ExchangeFailure {
  FailureKind kind = FailureKind::kSystem;
  std::string message;       // as in the Error
  std::optional<Exit> exit;  // kDied
  std::string log_tail;      // what the child last wrote to stdout and stderr; empty for kInterrupted
};

class LineChannel {
 public:
  static constexpr size_t kMaxLine = size_t{32} << 20;

  // `child` may move afterwards, but must outlive the channel.
  explicit LineChannel(const Child& child, size_t max_line = kMaxLine);

  // Sends `line` and a newline, and returns the next line the child writes. `deadline_ns` is a time of the
  // monotonic clock. `stage` is for messages.
  Result<std::string> exchange(std::string_view line, int64_t deadline_ns, std::string_view stage = {});

  // Returns the next line without sending anything.
  Result<std::string> receive(int64_t deadline_ns, std::string_view stage = {});

  // Why the last exchange() or receive() failed; nullopt if it did not.
  const std::optional<ExchangeFailure>& failure() const { return failure_; }

 private:
  struct Exchange;  // the state of one exchange
  Result<std::string> run(Exchange& exchange);
  bool find_line();
  std::string take_line();
  bool read_some();  // false: nothing to read now
  bool write_some(Exchange& exchange);
  Error fail(FailureKind kind, std::string message);
  Error fail_dead(const Exchange& exchange);
  std::optional<Error> wait_for_progress(const Exchange& exchange);

  ChildState* state_;
  size_t max_line_;
  std::string received_;
  size_t searched_ = 0;  // received_ has no newline before this
  bool end_of_file_ = false;
  std::optional<ExchangeFailure> failure_;
};

}  // namespace bakeoff::proc
