// Between fork and exec: everything the child sets up for itself.

#include <fcntl.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "proc/launch_order.h"

// In <linux/close_range.h>; the kernel has it since 5.11.
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

namespace bakeoff::proc {
namespace {

constexpr int kFirstFreeFd = 10;  // above every descriptor the child gets

[[noreturn]] void give_up(int error_fd, StartStep step) {
  const StartFailure failure{.step = step, .error = errno};
  [[maybe_unused]] const ssize_t n = ::write(error_fd, &failure, sizeof failure);
  ::_exit(127);
}

// Signal dispositions and mask as a fresh process expects them.
void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// A copy of `fd` at or above kFirstFreeFd, so that moving others cannot overwrite it.
int lift(int fd, int error_fd) {
  const int lifted = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd);
  if (lifted < 0) give_up(error_fd, StartStep::kFds);
  return lifted;
}

void place(int fd, int target, int error_fd) {
  if (::dup2(fd, target) < 0) give_up(error_fd, StartStep::kFds);
}

// 0 = /dev/null, 1 and 2 = output, 3 and 4 = control; everything else closes at exec. Returns the error
// descriptor's new number.
int arrange_fds(const LaunchFds& fds, int output_fd, int error_fd) {
  const int errors = lift(error_fd, error_fd);
  const int output = lift(output_fd, errors);
  const bool control = static_cast<bool>(fds.request);
  const int request = control ? lift(fds.request.get(), errors) : -1;
  const int answer = control ? lift(fds.answer.get(), errors) : -1;
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) give_up(errors, StartStep::kFds);
  place(lift(null, errors), 0, errors);
  place(output, 1, errors);
  place(output, 2, errors);
  if (control) {
    place(request, 3, errors);
    place(answer, 4, errors);
  }
  const unsigned first = control ? 5 : 3;
  if (::close_range(first, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    for (int fd = static_cast<int>(first); fd < 65536; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  return errors;
}

// 0: not limited.
void limit(decltype(RLIMIT_AS) resource, int64_t bytes, int error_fd) {
  if (bytes <= 0) return;
  const struct rlimit both = {.rlim_cur = static_cast<rlim_t>(bytes), .rlim_max = static_cast<rlim_t>(bytes)};
  if (::setrlimit(resource, &both) != 0) give_up(error_fd, StartStep::kLimit);
}

void apply_settings(const LaunchOrder& order, int error_fd) {
  if (!order.cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu : order.cpus) CPU_SET(static_cast<size_t>(cpu), &set);
    if (::sched_setaffinity(0, sizeof set, &set) != 0) give_up(error_fd, StartStep::kCpus);
  }
  if (order.nice != 0 && ::setpriority(PRIO_PROCESS, 0, order.nice) != 0) {
    give_up(error_fd, StartStep::kNice);
  }
  if (!order.randomise_addresses) {
    const int persona = ::personality(0xffffffff);
    if (persona < 0 || ::personality(static_cast<unsigned long>(persona) | ADDR_NO_RANDOMIZE) < 0) {
      give_up(error_fd, StartStep::kPersonality);
    }
  }
  if (!order.huge_pages && ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
    give_up(error_fd, StartStep::kHugePages);
  }
  limit(RLIMIT_AS, order.address_space_limit_bytes, error_fd);
  limit(RLIMIT_DATA, order.private_memory_limit_bytes, error_fd);
  if (!order.cwd.empty() && ::chdir(order.cwd.c_str()) != 0) give_up(error_fd, StartStep::kFolder);
}

// If memory runs out, the kernel should take the child rather than its supervisor.
void offer_to_oom_killer() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t n = ::write(fd, "500", 3);
  ::close(fd);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

}  // namespace

void exec_child(const LaunchOrder& order, const LaunchFds& fds, int output_fd, int error_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  offer_to_oom_killer();
  const int errors = arrange_fds(fds, output_fd, error_fd);
  apply_settings(order, errors);
  const std::vector<char*> argv = pointers(order.argv);
  const std::vector<char*> env = pointers(order.env);
  reset_signals();
  ::execve(order.program.c_str(), argv.data(), env.data());
  give_up(errors, StartStep::kExec);
}

}  // namespace bakeoff::proc
