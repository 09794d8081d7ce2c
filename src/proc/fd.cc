#include "proc/fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace bakeoff::proc {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot make a pipe", errno);
  return Pipe{.read = UniqueFd(ends[0]), .write = UniqueFd(ends[1])};
}

Result<std::pair<UniqueFd, UniqueFd>> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_error("cannot make a socket pair", errno);
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

Result<UniqueFd> make_memory_file(const char* name, size_t size) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd) return system_error("cannot make a memory file", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return system_error("cannot size a memory file", errno);
  }
  return fd;
}

Status set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return system_error("cannot set a descriptor to non-blocking", errno);
  }
  return Done{};
}

Error system_error(std::string_view what, int code) {
  return Error{.message = fmt::format("{}: {}", what, std::strerror(code))};
}

}  // namespace bakeoff::proc
