#include "roofline/isolated.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace bakeoff::roofline {
namespace {

constexpr size_t kMost = 1 << 20;  // bytes of an answer

[[noreturn]] void be_the_child(const std::function<std::string()>& work, int answer) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC); null >= 0) {
    for (const int fd : {0, 1, 2}) ::dup2(null, fd);
  }
  const std::string text = work();
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(answer, text.data() + done, text.size() - done);
    if (wrote <= 0 && errno != EINTR) ::_exit(1);
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
  ::_exit(0);
}

// Reads until the child closes its end. Why it gave up, or empty.
std::string drain(int fd, double deadline, const Stop& stop, std::string& text) {
  char buffer[4096];
  while (text.size() < kMost) {
    if (stop && stop()) return "stopped";
    if (now_s() > deadline) return "it did not end in time";
    pollfd ready{fd, POLLIN, 0};
    if (::poll(&ready, 1, 50) <= 0) continue;
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got == 0) return "";
    if (got < 0 && errno != EINTR) return std::strerror(errno);
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  return "it answered too much";
}

}  // namespace

Result<std::string> in_child(const std::function<std::string()>& work, double seconds, const Stop& stop) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{fmt::format("no pipe: {}", std::strerror(errno))};
  const pid_t child = ::fork();
  if (child == 0) be_the_child(work, ends[1]);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return Error{fmt::format("cannot fork: {}", std::strerror(errno))};
  }
  std::string text;
  const std::string why = drain(ends[0], now_s() + seconds, stop, text);
  ::close(ends[0]);
  if (!why.empty()) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!why.empty()) return Error{why};
  if (WIFSIGNALED(status)) return Error{fmt::format("it was killed by signal {}", WTERMSIG(status))};
  if (WEXITSTATUS(status) != 0) return Error{fmt::format("it ended with exit code {}", WEXITSTATUS(status))};
  return text;
}

}  // namespace bakeoff::roofline
