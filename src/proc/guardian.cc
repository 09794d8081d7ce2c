// The guardian: one small process per child. It starts the child, drains its output, freezes, thaws and kills
// it with all its descendants (it is their subreaper, so none can escape), and reports how it ended. When its
// supervisor dies, however suddenly, the control socket closes and it kills everything below itself. What a
// killed child leaves in its folder for temporary files goes with the guardian, too.

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>

#include "base/clock.h"
#include "base/temporary_folder.h"
#include "proc/exit.h"
#include "proc/launch_order.h"
#include "proc/log.h"
#include "proc/oom_kills.h"
#include "proc/process_tree.h"

namespace bakeoff::proc {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kBuryPatience = 10'000 * kMillisecond;  // for processes stuck in the kernel
constexpr int64_t kStopPatience = 1'000 * kMillisecond;
constexpr int64_t kKernelPatience = 20 * kMillisecond;
constexpr int64_t kLeftoverPatience = 100 * kMillisecond;  // helper processes that end with their parent
constexpr int kMemoryPollMs = 20;

class Guardian {
 public:
  Guardian(LaunchOrder order, LaunchFds fds)
      : order_(std::move(order)),
        fds_(std::move(fds)),
        drain_(fds_.tail.get(), fds_.log_file.get(), order_.log_file_cap) {}

  void run() {
    oom_kills_before_ = oom_kills();
    if (order_.own_temporary_folder) make_temporary_folder();
    if (!start()) return;
    while (!reaped_) serve_once();
    finish();
  }

 private:
  // Below the one that the child would have; where none can be made, the child keeps that one.
  void make_temporary_folder() {
    const std::string variable = "TMPDIR=";
    const auto given = std::find_if(order_.env.begin(), order_.env.end(),
                                    [&](const std::string& entry) { return entry.starts_with(variable); });
    const std::string parent = given == order_.env.end() ? "/tmp" : given->substr(variable.size());
    // A short name: sockets lie in it, whose paths have 107 characters at most.
    auto made = TemporaryFolder::in(parent, "bkt-");
    if (!made) return;
    temporary_folder_.emplace(std::move(*made));
    if (given != order_.env.end()) order_.env.erase(given);
    order_.env.push_back(variable + temporary_folder_->path().string());
  }

  // Forks and execs; reports the outcome. False if there is no child.
  bool start() {
    Report report{.kind = ReportKind::kNotStarted};
    Result<Pipe> errors = make_pipe();
    Result<Pipe> log = make_pipe();
    if (!errors || !log) {
      report.error = errno;
      return send(report), false;
    }
    const int output = order_.has_output ? fds_.output.get() : log->write.get();
    child_ = ::fork();
    if (child_ == 0) exec_child(order_, fds_, output, errors->write.get());
    if (child_ < 0) {
      report.error = errno;
      return send(report), false;
    }
    ::setpgid(child_, child_);
    for (UniqueFd* fd : {&errors->write, &log->write, &fds_.output, &fds_.request, &fds_.answer}) fd->reset();
    StartFailure failure;
    if (::read(errors->read.get(), &failure, sizeof failure) == sizeof failure) {
      ::waitpid(child_, nullptr, 0);
      report.step = failure.step;
      report.error = failure.error;
      return send(report), false;
    }
    pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
    if (!order_.has_output) log_ = std::move(log->read);
    if (log_) (void)set_nonblocking(log_.get());
    return send({.kind = ReportKind::kStarted, .pid = child_}), true;
  }

  void serve_once() {
    std::array<struct pollfd, 3> polled = {{{.fd = fds_.control.get(), .events = POLLIN, .revents = 0},
                                            {.fd = pidfd_.get(), .events = POLLIN, .revents = 0},
                                            {.fd = log_.get(), .events = POLLIN, .revents = 0}}};
    ::poll(polled.data(), polled.size(), timeout_ms());
    if (polled[2].revents != 0) drain();
    if (polled[0].revents != 0) serve_command();
    if (polled[1].revents != 0 || !pidfd_) reap();
    if (!reaped_ && kill_at_ns_ && monotonic_clock().now_ns() >= *kill_at_ns_) bury();
    if (!reaped_ && order_.memory_limit_bytes > 0) check_memory();
  }

  int timeout_ms() const {
    int64_t wait = -1;
    if (!pidfd_ || order_.memory_limit_bytes > 0) wait = kMemoryPollMs;
    if (kill_at_ns_) {
      const int64_t left =
          std::max<int64_t>(0, (*kill_at_ns_ - monotonic_clock().now_ns()) / kMillisecond + 1);
      wait = wait < 0 ? left : std::min(wait, left);
    }
    return static_cast<int>(std::min<int64_t>(wait, 60'000));
  }

  void serve_command() {
    Command command;
    const ssize_t n = ::recv(fds_.control.get(), &command, sizeof command, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n != sizeof command) {  // the supervisor is gone
      asked_ = true;
      bury();
      temporary_folder_.reset();
      ::_exit(0);
    }
    if (command.kind == CommandKind::kFreeze) freeze();
    if (command.kind == CommandKind::kThaw) thaw();
    if (command.kind == CommandKind::kKill) begin_kill(command.grace_ns);
  }

  // Returns when no code of the child's runs any more.
  void freeze() {
    signal_all(SIGSTOP);
    const int64_t begin = monotonic_clock().now_ns();
    while (monotonic_clock().now_ns() < begin + kStopPatience) {
      // waitid tells when all threads have stopped; the state letter only speaks of the first thread.
      siginfo_t info = {};
      const bool told = ::waitid(P_PID, static_cast<id_t>(child_), &info, WSTOPPED | WNOHANG) == 0;
      const char state = process_state(child_);
      if (!told || info.si_pid == child_ || state == 'Z') break;
      // Inside the kernel, for instance in vfork with the new process stopped: it stops before it returns.
      if (state == 'D' && monotonic_clock().now_ns() > begin + kKernelPatience) break;
      ::usleep(50);
    }
    send({.kind = ReportKind::kFrozen});
  }

  void thaw() {
    signal_all(SIGCONT);
    send({.kind = ReportKind::kThawed});
  }

  void begin_kill(int64_t grace_ns) {
    asked_ = true;
    if (grace_ns <= 0) return bury();
    signal_all(SIGTERM);
    signal_all(SIGCONT);
    kill_at_ns_ = std::min(kill_at_ns_.value_or(INT64_MAX), monotonic_clock().now_ns() + grace_ns);
  }

  // To the child's group and to its descendants outside it.
  void signal_all(int signal) {
    ::kill(-child_, signal);
    for (pid_t pid : descendants(::getpid())) {
      if (pid != child_ && ::getpgid(pid) != child_) ::kill(pid, signal);
    }
  }

  void check_memory() {
    int64_t used = 0;
    for (pid_t pid : descendants(::getpid())) used += resident_bytes(pid);
    if (used <= order_.memory_limit_bytes) return;
    over_limit_bytes_ = used;
    bury();
  }

  void drain() {
    std::array<char, 65536> chunk;
    const ssize_t n = ::read(log_.get(), chunk.data(), chunk.size());
    if (n > 0) return drain_.add({chunk.data(), static_cast<size_t>(n)});
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    log_.reset();
  }

  // Collects every child of ours that has ended; true if none is left.
  bool reap() {
    for (;;) {
      int status = 0;
      struct rusage usage = {};
      const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
      if (pid == child_) {
        reaped_ = true;
        status_ = status;
        usage_ = usage;
      }
      if (pid < 0 && errno != EINTR) return true;
      if (pid == 0) return false;
    }
  }

  // Kills everything below this process until nothing is left.
  void bury() {
    const int64_t patience = monotonic_clock().now_ns() + kBuryPatience;
    for (useconds_t pause = 100; monotonic_clock().now_ns() < patience;
         pause = std::min<useconds_t>(pause * 2, 5000)) {
      if (!reaped_) ::kill(-child_, SIGKILL);
      for (pid_t pid : descendants(::getpid())) ::kill(pid, SIGKILL);
      if (reap()) return;
      ::usleep(pause);
    }
    stuck_ = !reaped_;
    reaped_ = true;
  }

  // The child has ended: clears up what it left, and reports.
  void finish() {
    if (!asked_ && over_limit_bytes_ == 0) {
      const int64_t patience = monotonic_clock().now_ns() + kLeftoverPatience;
      while (!reap() && monotonic_clock().now_ns() < patience) ::usleep(2000);
      for (pid_t pid : descendants(::getpid())) leftovers_ += process_state(pid) != 'Z' ? 1 : 0;
    }
    bury();
    const int64_t total_limit = monotonic_clock().now_ns() + kMillisecond * 2000;
    while (log_ && monotonic_clock().now_ns() < total_limit) {
      struct pollfd polled = {.fd = log_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&polled, 1, 0) <= 0) break;
      drain();
    }
    drain_.finish();
    temporary_folder_.reset();
    send({.kind = ReportKind::kExited,
          .reaped = stuck_ ? 0 : 1,
          .status = status_,
          .asked = asked_ ? 1 : 0,
          .leftovers = leftovers_,
          .oom_kills = oom_kills() - oom_kills_before_,
          .over_limit_bytes = over_limit_bytes_,
          .usage = usage_});
  }

  void send(const Report& report) { ::send(fds_.control.get(), &report, sizeof report, MSG_NOSIGNAL); }

  LaunchOrder order_;
  LaunchFds fds_;
  LogDrain drain_;
  UniqueFd log_;
  UniqueFd pidfd_;
  std::optional<TemporaryFolder> temporary_folder_;
  pid_t child_ = -1;
  std::optional<int64_t> kill_at_ns_;
  bool asked_ = false;
  bool reaped_ = false;
  bool stuck_ = false;
  int status_ = 0;
  struct rusage usage_ = {};
  int leftovers_ = 0;
  int64_t oom_kills_before_ = 0;
  int64_t over_limit_bytes_ = 0;
};

}  // namespace

void run_guardian(LaunchOrder order, LaunchFds fds) {
  ::setsid();  // a Ctrl-C at the terminal is the supervisor's business
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_NAME, "bakeoff-guard");
  ::signal(SIGCHLD, SIG_DFL);  // the launcher ignores it, which would make wait4 fail
  Guardian(std::move(order), std::move(fds)).run();
  ::_exit(0);
}

}  // namespace bakeoff::proc
