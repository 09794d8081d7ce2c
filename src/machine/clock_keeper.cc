#include "machine/clock_keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/texts.h"
#include "sample/nvml.h"

namespace bakeoff {
namespace {

constexpr int kPatienceMs = 10'000;

// Locks every GPU that can be locked; `locked` lists those to release.
std::string lock_all(const sample::Nvml& nvml, unsigned mhz, std::vector<unsigned>& locked) {
  std::vector<std::string> refused;
  std::string reason;
  const unsigned count = nvml.count();
  for (unsigned index = 0; index < count; ++index) {
    if (const Status status = nvml.lock_clock(index, mhz); status) {
      locked.push_back(index);
    } else {
      reason = status.error().message;
      refused.push_back(fmt::format("GPU {}: {}", index, reason));
    }
  }
  if (count == 0) return "not locked: the driver knows no GPU";
  if (locked.empty()) return "not locked: " + reason;
  const std::string words = fmt::format("{} MHz", mhz);
  return refused.empty() ? words : fmt::format("{}, but not {}", words, join(refused, "; "));
}

// The process that keeps the clocks locked. It ignores Ctrl-C: its owner handles that and closes the pipe.
[[noreturn]] void keep(unsigned mhz, const std::filesystem::path& library, int answer, int pipe) {
  ::setsid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  if (const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC); null >= 0) {
    for (const int fd : {0, 1, 2}) ::dup2(null, fd);
  }
  std::vector<unsigned> locked;
  {
    const auto nvml = sample::Nvml::load(library);
    const std::string words = nvml ? lock_all(*nvml, mhz, locked) : "not locked: " + nvml.error().message;
    (void)!::write(answer, words.data(), words.size());
    ::close(answer);
    char byte = 0;
    while (!locked.empty() && ::read(pipe, &byte, 1) < 0 && errno == EINTR) {
    }
    for (const unsigned index : locked) (void)nvml->reset_clock(index).has_value();
  }
  ::_exit(0);
}

// Reads until the other end closes.
std::string read_all(int fd) {
  std::string text;
  const int64_t deadline = monotonic_clock().now_ns() + int64_t{kPatienceMs} * 1'000'000;
  for (char buffer[512]; monotonic_clock().now_ns() < deadline;) {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 100) <= 0) continue;
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got == 0) return text;
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  return "not locked: the driver does not answer";
}

}  // namespace

ClockKeeper::ClockKeeper(int64_t mhz, const std::filesystem::path& library) {
  Result<proc::Pipe> answer = proc::make_pipe();
  Result<proc::Pipe> pipe = proc::make_pipe();
  process_ = answer && pipe ? ::fork() : -1;
  if (process_ == 0) {
    pipe->write.reset();
    answer->read.reset();
    keep(static_cast<unsigned>(mhz), library, answer->write.get(), pipe->read.get());
  }
  if (process_ < 0) {
    status_ = "not locked: " + proc::system_error("no process for it", errno).message;
    return;
  }
  answer->write.reset();
  pipe_ = std::move(pipe->write);
  status_ = read_all(answer->read.get());
}

ClockKeeper::~ClockKeeper() {
  pipe_.reset();
  for (int waited = 0; process_ > 0 && waited < kPatienceMs; waited += 5) {
    const pid_t ended = ::waitpid(process_, nullptr, WNOHANG);
    if (ended == process_ || (ended < 0 && errno != EINTR)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace bakeoff
