#include "proc/line_channel.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "proc/child_state.h"
#include "proc/interrupt.h"

namespace bakeoff::proc {
namespace {

// Between the end of its answers and the news of its death: the guardian waits 100 ms for helper processes.
constexpr int64_t kDeathPatience = 2'000'000'000;

// Writing into the pipe of a dead child raises SIGPIPE, which would end this program: there is no flag for
// pipes as MSG_NOSIGNAL is for sockets, so the signal is held back in this thread, and taken if it came.
class NoSigpipe {
 public:
  NoSigpipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const struct timespec at_once = {};
    while (::sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) continue;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

}  // namespace

struct LineChannel::Exchange {
  std::string to_send;
  size_t sent = 0;
  int64_t begin_ns = 0;
  int64_t deadline_ns = 0;
  std::string stage;

  bool sending() const { return sent < to_send.size(); }
  std::string in_stage() const { return stage.empty() ? std::string() : " in stage " + stage; }
};

LineChannel::LineChannel(const Child& child, size_t max_line)
    : state_(child.state_.get()), max_line_(max_line) {}

Result<std::string> LineChannel::exchange(std::string_view line, int64_t deadline_ns,
                                          std::string_view stage) {
  Exchange exchange{.to_send = std::string(line) + "\n",
                    .begin_ns = monotonic_clock().now_ns(),
                    .deadline_ns = deadline_ns,
                    .stage = std::string(stage)};
  return run(exchange);
}

Result<std::string> LineChannel::receive(int64_t deadline_ns, std::string_view stage) {
  Exchange exchange{.to_send = {},
                    .begin_ns = monotonic_clock().now_ns(),
                    .deadline_ns = deadline_ns,
                    .stage = std::string(stage)};
  return run(exchange);
}

Result<std::string> LineChannel::run(Exchange& exchange) {
  failure_.reset();
  if (!state_->request) return fail(FailureKind::kSystem, "the child has no control descriptors");
  const NoSigpipe no_sigpipe;
  for (;;) {
    const bool wrote = write_some(exchange);
    const bool has_line = find_line();
    if (searched_ > max_line_) {
      return fail(FailureKind::kTooLong,
                  fmt::format("answered a line of more than {} bytes{}", max_line_, exchange.in_stage()));
    }
    if (has_line && !exchange.sending()) return take_line();
    if (read_some() || wrote) continue;
    if (end_of_file_) return fail_dead(exchange);
    if (std::optional<Error> error = wait_for_progress(exchange)) return *std::move(error);
  }
}

bool LineChannel::find_line() {
  const size_t newline = received_.find('\n', searched_);
  searched_ = std::min(newline, received_.size());
  return newline != std::string::npos;
}

std::string LineChannel::take_line() {
  std::string line = received_.substr(0, searched_);
  received_.erase(0, searched_ + 1);
  searched_ = 0;
  return line;
}

bool LineChannel::read_some() {
  if (end_of_file_ || received_.size() > max_line_) return false;
  std::array<char, 65536> chunk;
  const ssize_t n = ::read(state_->answer.get(), chunk.data(), chunk.size());
  if (n > 0) {
    received_.append(chunk.data(), static_cast<size_t>(n));
    return true;
  }
  if (n < 0 && errno == EINTR) return true;
  end_of_file_ = n == 0 || errno != EAGAIN;
  return false;
}

bool LineChannel::write_some(Exchange& exchange) {
  if (!exchange.sending()) return false;
  const std::string_view rest = std::string_view(exchange.to_send).substr(exchange.sent);
  const ssize_t n = ::write(state_->request.get(), rest.data(), rest.size());
  if (n > 0) exchange.sent += static_cast<size_t>(n);
  if (n < 0 && errno == EPIPE)
    exchange.sent = exchange.to_send.size();  // its last words may be there to read
  return n > 0 || (n < 0 && errno == EINTR);
}

std::optional<Error> LineChannel::wait_for_progress(const Exchange& exchange) {
  const int64_t now = monotonic_clock().now_ns();
  if (now >= exchange.deadline_ns) {
    return fail(FailureKind::kTimeout,
                fmt::format("timed out after {}{}",
                            duration_text(std::max<int64_t>(0, exchange.deadline_ns - exchange.begin_ns)),
                            exchange.in_stage()));
  }
  if (interrupted()) return fail(FailureKind::kInterrupted, "interrupted" + exchange.in_stage());
  const int request = exchange.sending() ? state_->request.get() : -1;
  const int control = state_->exit ? -1 : state_->control.get();
  std::array<struct pollfd, 4> polled = {{{.fd = state_->answer.get(), .events = POLLIN, .revents = 0},
                                          {.fd = request, .events = POLLOUT, .revents = 0},
                                          {.fd = control, .events = POLLIN, .revents = 0},
                                          {.fd = interrupt_fd(), .events = POLLIN, .revents = 0}}};
  ::poll(polled.data(), polled.size(), poll_timeout_ms(exchange.deadline_ns));
  if (polled[2].revents != 0 && (polled[0].revents & POLLIN) == 0) {
    state_->look();
    if (state_->exit) end_of_file_ = !read_some();  // the last words, then the end
  }
  return std::nullopt;
}

Error LineChannel::fail_dead(const Exchange& exchange) {
  const int64_t now = monotonic_clock().now_ns();
  state_->await_end(std::min(now + kDeathPatience, std::max(now, exchange.deadline_ns)));
  if (!state_->exit) {
    return fail(FailureKind::kClosed, "closed its answer channel but lives on" + exchange.in_stage());
  }
  return fail(FailureKind::kDied, state_->exit->text(exchange.stage));
}

Error LineChannel::fail(FailureKind kind, std::string message) {
  failure_ = ExchangeFailure{.kind = kind, .message = message, .exit = std::nullopt, .log_tail = {}};
  if (kind == FailureKind::kDied) failure_->exit = state_->exit;
  if (kind != FailureKind::kInterrupted) failure_->log_tail = state_->tail.text();
  return Error{.message = std::move(message)};
}

}  // namespace bakeoff::proc
