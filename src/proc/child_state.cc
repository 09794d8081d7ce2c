#include "proc/child_state.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"

namespace bakeoff::proc {
namespace {

constexpr int64_t kFreezePatience = 5'000'000'000;

ResourceUsage usage_of(const struct rusage& usage) {
  const auto seconds = [](const struct timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {.user_s = seconds(usage.ru_utime),
          .system_s = seconds(usage.ru_stime),
          .max_rss_bytes = usage.ru_maxrss * 1024,
          .minor_faults = usage.ru_minflt,
          .major_faults = usage.ru_majflt,
          .voluntary_switches = usage.ru_nvcsw,
          .involuntary_switches = usage.ru_nivcsw};
}

}  // namespace

std::optional<Report> ChildState::next_report(int64_t deadline_ns) {
  for (;;) {
    if (!wait_readable(control.get(), deadline_ns)) return std::nullopt;
    Report report;
    const ssize_t n = ::recv(control.get(), &report, sizeof report, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n != sizeof report) report = {.kind = ReportKind::kExited};  // reaped = 0: lost
    if (report.kind == ReportKind::kExited) note(report);
    return report;
  }
}

void ChildState::look() { await_end(0); }

void ChildState::await_end(int64_t deadline_ns) {
  while (!exit && next_report(deadline_ns)) continue;
}

Status ChildState::freeze(bool frozen) {
  look();
  if (!exit && stopped == frozen) return Done{};
  if (!exit) {
    send({.kind = frozen ? CommandKind::kFreeze : CommandKind::kThaw});
    const std::optional<Report> report = next_report(monotonic_clock().now_ns() + kFreezePatience);
    if (report && report->kind == (frozen ? ReportKind::kFrozen : ReportKind::kThawed)) {
      stopped = frozen;
      return Done{};
    }
  }
  const std::string what = frozen ? "cannot freeze the process: " : "cannot thaw the process: ";
  return Error{.message = what + (exit ? exit->text() : "its guardian does not answer")};
}

void ChildState::note(const Report& report) {
  Exit end{.asked = report.asked != 0,
           .out_of_memory = report.oom_kills > 0,
           .over_limit_bytes = report.over_limit_bytes,
           .memory_limit_bytes = memory_limit_bytes,
           .address_space_limit_bytes = address_space_limit_bytes,
           .private_memory_limit_bytes = private_memory_limit_bytes,
           .leftovers = report.leftovers,
           .usage = usage_of(report.usage)};
  if (report.reaped != 0 && WIFSIGNALED(report.status)) {
    end.kind = Exit::Kind::kSignal;
    end.signal = WTERMSIG(report.status);
  } else if (report.reaped != 0) {
    end.kind = Exit::Kind::kCode;
    end.code = WEXITSTATUS(report.status);
  }
  exit = end;
  stopped = false;
}

void ChildState::send(const Command& command) const {
  ::send(control.get(), &command, sizeof command, MSG_NOSIGNAL);
}

bool wait_readable(int fd, int64_t deadline_ns) {
  for (;;) {
    struct pollfd polled = {.fd = fd, .events = POLLIN, .revents = 0};
    const int n = ::poll(&polled, 1, poll_timeout_ms(deadline_ns));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
    if (monotonic_clock().now_ns() >= deadline_ns) return false;
  }
}

int poll_timeout_ms(int64_t deadline_ns) {
  const int64_t left_ns = deadline_ns - monotonic_clock().now_ns();
  if (left_ns <= 0) return 0;
  return static_cast<int>(std::min<int64_t>((left_ns + 999'999) / 1'000'000, 60'000));
}

}  // namespace bakeoff::proc
