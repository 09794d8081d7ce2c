#include "proc/run.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/clock.h"
#include "proc/child_state.h"
#include "proc/interrupt.h"

namespace bakeoff::proc {
namespace {

constexpr int64_t kTimeoutGrace = 2 * kSecond;
constexpr int64_t kInterruptGrace = kSecond / 2;
constexpr size_t kMaxLine = size_t{64} << 10;

// Cuts output into lines and keeps its tail.
class Output {
 public:
  explicit Output(const CommandOptions& options) : options_(options) {}

  void add(std::string_view bytes) {
    tail_ += bytes;
    if (tail_.size() > 2 * options_.tail_bytes) tail_.erase(0, tail_.size() - options_.tail_bytes);
    if (!options_.on_line) return;
    for (char c : bytes) {
      if (c == '\n' || c == '\r') {
        // "\r\n" is one end of line.
        if (!(c == '\n' && last_ == '\r')) flush();
      } else {
        line_ += c;
        if (line_.size() >= kMaxLine) flush();
      }
      last_ = c;
    }
  }

  // The rest without a newline; then the tail.
  std::string finish() {
    if (options_.on_line && !line_.empty()) flush();
    if (tail_.size() > options_.tail_bytes) tail_.erase(0, tail_.size() - options_.tail_bytes);
    return valid_utf8(tail_);
  }

 private:
  void flush() {
    options_.on_line(valid_utf8(line_));
    line_.clear();
  }

  const CommandOptions& options_;
  std::string tail_;
  std::string line_;
  char last_ = '\0';
};

// Reads what is there. False at the end of the output.
bool pump(int fd, Output* output) {
  std::array<char, 65536> chunk;
  const ssize_t n = ::read(fd, chunk.data(), chunk.size());
  if (n > 0) output->add({chunk.data(), static_cast<size_t>(n)});
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

class Supervision {
 public:
  Supervision(const CommandOptions& options, Child child)
      : options_(options), child_(std::move(child)), output_(options) {
    result_.timeout_ns = options.timeout_ns;
    if (options.timeout_ns > 0) deadline_ns_ = monotonic_clock().now_ns() + options.timeout_ns;
  }

  Result<CommandResult> run() {
    bool open = true;
    for (;;) {
      // Asked once a turn: an exit that is told afterwards ends the wait.
      const bool exited = child_.exit().has_value();
      if (exited && !open) break;
      if (interrupted()) return give_up();
      end_if_late();
      wait(open, exited);
      if (open) open = pump(child_.output_fd(), &output_);
    }
    result_.exit = *child_.exit();
    result_.output_tail = output_.finish();
    return std::move(result_);
  }

 private:
  void wait(bool open, bool exited) {
    std::array<struct pollfd, 3> polled = {
        {{.fd = open ? child_.output_fd() : -1, .events = POLLIN, .revents = 0},
         {.fd = exited ? -1 : child_.exit_fd(), .events = POLLIN, .revents = 0},
         {.fd = interrupt_fd(), .events = POLLIN, .revents = 0}}};
    ::poll(polled.data(), polled.size(), poll_timeout_ms(deadline_ns_));
  }

  void end_if_late() {
    if (result_.timed_out || monotonic_clock().now_ns() < deadline_ns_) return;
    result_.timed_out = true;
    deadline_ns_ = INT64_MAX;
    child_.begin_kill(kTimeoutGrace);
  }

  Error give_up() {
    child_.kill(kInterruptGrace);
    return Error{.message = "interrupted while running '" + options_.child.argv[0] + "'"};
  }

  const CommandOptions& options_;
  Child child_;
  Output output_;
  CommandResult result_;
  int64_t deadline_ns_ = INT64_MAX;
};

}  // namespace

std::string CommandResult::text() const {
  return timed_out ? "timed out after " + duration_text(timeout_ns) : exit.text();
}

Result<CommandResult> run_command(const CommandOptions& options) {
  ChildOptions child = options.child;
  child.control = false;
  child.output_to_us = true;
  child.log_file.clear();
  TRY(Child started, Child::start(child));
  return Supervision(options, std::move(started)).run();
}

}  // namespace bakeoff::proc
