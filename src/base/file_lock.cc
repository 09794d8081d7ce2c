#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/files.h"

namespace bakeoff {
namespace {

Error lock_error(const char* what, const fs::path& path, int code) {
  return Error{.message = std::string(what) + " '" + path.string() + "': " + std::strerror(code)};
}

Result<int> open_lock(const fs::path& path) {
  if (path.has_parent_path()) CHECK_OK(make_folder(path.parent_path()));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return lock_error("cannot open lock", path, errno);
  return fd;
}

int lock(int fd, int operation) {
  int code = 0;
  do {
    code = ::flock(fd, operation) == 0 ? 0 : errno;
  } while (code == EINTR);
  return code;
}

// Who holds the lock is written into the file, for the message only.
void sign(int fd) {
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) == 0 && ::pwrite(fd, pid.data(), pid.size(), 0) < 0) return;
}

std::string holder(int fd) {
  char text[24] = {};
  const ssize_t n = ::pread(fd, text, sizeof text - 1, 0);
  const int pid = n > 0 ? std::atoi(text) : 0;
  return pid > 0 ? "process " + std::to_string(pid) : "another process";
}

}  // namespace

Result<FileLock> FileLock::wait(const fs::path& path) {
  TRY(const int fd, open_lock(path));
  FileLock held(fd);
  if (const int code = lock(fd, LOCK_EX); code != 0) return lock_error("cannot lock", path, code);
  sign(fd);
  return held;
}

Result<FileLock> FileLock::attempt(const fs::path& path) {
  TRY(const int fd, open_lock(path));
  FileLock held(fd);
  const int code = lock(fd, LOCK_EX | LOCK_NB);
  if (code == EWOULDBLOCK) {
    return Error{.message = holder(fd) + " holds '" + path.string() + "'"};
  }
  if (code != 0) return lock_error("cannot lock", path, code);
  sign(fd);
  return held;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace bakeoff
