#include "proc/launcher.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>

#include "base/clock.h"
#include "proc/process_tree.h"

namespace bakeoff::proc {
namespace {

constexpr size_t kMaxFds = 7;

struct Launcher {
  ~Launcher() { stop(); }
  void stop();

  std::mutex mutex;
  UniqueFd socket;
  pid_t pid = -1;
  pid_t owner = -1;  // a forked copy of this program must not use its parent's launcher
};

void Launcher::stop() {
  socket.reset();
  if (pid > 0 && owner == ::getpid()) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  pid = -1;
}

Launcher& launcher() {
  static Launcher instance;
  return instance;
}

// The header of the message that carries an order: which of the optional descriptors follow.
struct Envelope {
  bool has_control = false;
  bool has_log_file = false;
  bool has_output = false;
};

using FdBuffer = std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)>;

Status send_message(int socket, Envelope envelope, const std::vector<int>& fds) {
  alignas(cmsghdr) FdBuffer buffer = {};
  struct iovec data = {.iov_base = &envelope, .iov_len = sizeof envelope};
  struct msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = buffer.data();
  message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
  ssize_t n = 0;
  do {
    n = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return system_error("cannot reach the launcher process", errno);
  return Done{};
}

// The next order's descriptors; false when the program is gone.
bool receive_message(int socket, LaunchFds* fds) {
  Envelope envelope;
  alignas(cmsghdr) FdBuffer buffer = {};
  struct iovec data = {.iov_base = &envelope, .iov_len = sizeof envelope};
  struct msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = buffer.data();
  message.msg_controllen = buffer.size();
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n != sizeof envelope) return false;
  std::vector<UniqueFd> received;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      received.emplace_back(fd);
    }
  }
  std::vector<UniqueFd*> wanted = {&fds->order, &fds->control, &fds->tail};
  if (envelope.has_control) wanted.insert(wanted.end(), {&fds->request, &fds->answer});
  if (envelope.has_log_file) wanted.push_back(&fds->log_file);
  if (envelope.has_output) wanted.push_back(&fds->output);
  for (size_t i = 0; i < wanted.size() && i < received.size(); ++i) *wanted[i] = std::move(received[i]);
  return true;
}

std::string read_order(int fd) {
  std::string bytes(static_cast<size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  [[maybe_unused]] const ssize_t n = ::pread(fd, bytes.data(), bytes.size(), 0);
  return bytes;
}

constexpr int64_t kGuardiansPatience = 10 * kSecond;  // in which they clear up: processes, then files
constexpr int64_t kEndPatience = kGuardiansPatience + 2 * kSecond;

// Processes that are left below this one end with the program. Guardians end by themselves, having cleared up;
// the others had guardians that were killed.
void bury_all(const std::vector<pid_t>& guardians) {
  const int64_t begin = monotonic_clock().now_ns();
  for (int64_t past = 0; past < kEndPatience; past = monotonic_clock().now_ns() - begin) {
    const std::vector<pid_t> below = descendants(::getpid());
    if (below.empty()) return;
    for (pid_t pid : below) {
      const bool guards = std::find(guardians.begin(), guardians.end(), pid) != guardians.end();
      if (!guards || past > kGuardiansPatience) ::kill(pid, SIGKILL);
    }
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
    ::usleep(1000);
  }
}

// Returns when the program is gone, with the guardians that were started.
std::vector<pid_t> serve(int socket) {
  std::vector<pid_t> guardians;
  for (;;) {
    LaunchFds fds;
    if (!receive_message(socket, &fds)) return guardians;
    LaunchOrder order = unpack(read_order(fds.order.get()));
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(socket);
      run_guardian(std::move(order), std::move(fds));
    }
    guardians.push_back(pid);
    if (pid < 0) {
      const Report report{.kind = ReportKind::kNotStarted, .error = errno};
      ::send(fds.control.get(), &report, sizeof report, MSG_NOSIGNAL);
    }
  }
}

// Keeps nothing of the program but the socket: no descriptors, no signals, no terminal.
[[noreturn]] void run_launcher(UniqueFd socket) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setsid();
  ::prctl(PR_SET_NAME, "bakeoff-launch");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGCHLD, SIG_IGN);  // guardians need no burial
  const int null = ::open("/dev/null", O_RDWR);
  const int kept = ::fcntl(socket.get(), F_DUPFD_CLOEXEC, 10);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
  ::close_range(3, static_cast<unsigned>(kept) - 1, 0);
  ::close_range(static_cast<unsigned>(kept) + 1, ~0U, 0);
  bury_all(serve(kept));
  ::_exit(0);
}

Status start_locked(Launcher& self) {
  if (self.socket && self.owner == ::getpid()) return Done{};
  TRY(auto ends, make_socket_pair());
  const pid_t pid = ::fork();
  if (pid == 0) run_launcher(std::move(ends.second));
  if (pid < 0) return system_error("cannot fork the launcher process", errno);
  self.socket = std::move(ends.first);
  self.pid = pid;
  self.owner = ::getpid();
  return Done{};
}

}  // namespace

Status start_launcher() {
  Launcher& self = launcher();
  const std::lock_guard lock(self.mutex);
  return start_locked(self);
}

void stop_launcher() {
  Launcher& self = launcher();
  const std::lock_guard lock(self.mutex);
  self.stop();
}

Status launch(const LaunchOrder& order, LaunchFds fds) {
  const std::string bytes = pack(order);
  TRY(fds.order, make_memory_file("bakeoff-order", 0));
  if (::write(fds.order.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return system_error("cannot write an order to the launcher", errno);
  }
  const Envelope envelope{.has_control = static_cast<bool>(fds.request),
                          .has_log_file = static_cast<bool>(fds.log_file),
                          .has_output = static_cast<bool>(fds.output)};
  std::vector<int> numbers;
  for (const UniqueFd* fd :
       {&fds.order, &fds.control, &fds.tail, &fds.request, &fds.answer, &fds.log_file, &fds.output}) {
    if (*fd) numbers.push_back(fd->get());
  }
  Launcher& self = launcher();
  const std::lock_guard lock(self.mutex);
  CHECK_OK(start_locked(self));
  if (send_message(self.socket.get(), envelope, numbers)) return Done{};
  self.stop();  // it was killed: start another
  CHECK_OK(start_locked(self));
  return send_message(self.socket.get(), envelope, numbers);
}

}  // namespace bakeoff::proc
