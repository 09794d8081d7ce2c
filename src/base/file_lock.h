#pragma once

// An advisory lock on a file (flock), held by at most one process at a time and released by the kernel
// however its holder ends. flock(1) in a shell takes the same lock.
//
//   TRY(auto lock, FileLock::wait(home / "envs/.torch.lock"));
//   TRY(auto lock, FileLock::attempt(run / ".lock"));      // fails at once where another process holds it

#include <filesystem>
#include <utility>

#include "base/result.h"

namespace bakeoff {

class FileLock {
 public:
  // Both create the file, and missing parent folders. The file stays: removing it would let two holders in.
  static Result<FileLock> wait(const std::filesystem::path& path);
  // The error of a lock that is taken names the file and, where known, the process that holds it.
  static Result<FileLock> attempt(const std::filesystem::path& path);

  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace bakeoff
