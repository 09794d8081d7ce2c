#pragma once

// File descriptors with an owner. Every descriptor made here is close-on-exec.

#include <string_view>
#include <utility>

#include "base/result.h"

namespace bakeoff::proc {

// Owns one descriptor and closes it.
class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_;
};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
Result<Pipe> make_pipe();

// A connected pair that keeps message boundaries (SOCK_SEQPACKET).
Result<std::pair<UniqueFd, UniqueFd>> make_socket_pair();

// An anonymous file in memory of `size` zero bytes.
Result<UniqueFd> make_memory_file(const char* name, size_t size);

Status set_nonblocking(int fd);

// "what: No such file or directory", from `code` (an errno).
Error system_error(std::string_view what, int code);

}  // namespace bakeoff::proc
