#pragma once

// An advisory lock on a file (flock), held by at most one process at a time. The kernel releases it however
// its holder ends. flock(1) in a shell takes the same lock.
//
//   TRY(auto lock, FileLock::wait(home / "envs/.torch.lock"));
//   TRY(auto lock, FileLock::attempt(run / ".lock"));      // fails at once if another process holds it

#include <filesystem>
#include <utility>

#include "base/result.h"

namespace bakeoff {

class FileLock {
 public:
  // Both create the file and missing parent folders. The file stays: removing it would allow two holders.
  static Result<FileLock> wait(const std::filesystem::path& path);
  // Error: the lock is taken. It names the file and, if known, the process that holds it.
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
