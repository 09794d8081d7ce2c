#include "proc/interrupt.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace bakeoff::proc {
namespace {

// Wrappers such as make or timeout may deliver one Ctrl-C twice.
constexpr int64_t kSameKeyNs = 300'000'000;

std::atomic<int> first_signal{0};
std::atomic<int64_t> first_ns{0};
std::atomic<int> event_fd{-1};

// Only calls that are safe in a signal handler.
void on_signal(int signal) {
  const int saved_errno = errno;
  struct timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t now = int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  int expected = 0;
  if (first_signal.compare_exchange_strong(expected, signal)) {
    first_ns = now;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(event_fd.load(), &one, sizeof one);
  } else if (now - first_ns.load() >= kSameKeyNs) {
    ::_exit(128 + signal);
  }
  errno = saved_errno;
}

}  // namespace

void install_interrupt_handlers() {
  if (event_fd.load() < 0) event_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    // A program started in the background or by nohup is meant not to notice.
    if (before.sa_handler == SIG_IGN && signal != SIGTERM) continue;
    ::sigaction(signal, &action, nullptr);
  }
}

bool interrupted() { return first_signal.load() != 0; }

int interrupt_signal() { return first_signal.load(); }

int interrupt_fd() { return event_fd.load(); }

void clear_interrupt() {
  uint64_t count = 0;
  if (event_fd.load() >= 0) {
    [[maybe_unused]] const ssize_t n = ::read(event_fd.load(), &count, sizeof count);
  }
  first_signal = 0;
}

}  // namespace bakeoff::proc
