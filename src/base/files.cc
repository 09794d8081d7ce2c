#include "base/files.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/home.h"

namespace bakeoff {
namespace {

Error system_error(std::string_view what, const fs::path& path, int code) {
  return Error{.message = std::string(what) + " '" + path.string() + "': " + std::strerror(code)};
}

// The same for a file or folder to be written, with what to do.
Error write_error(std::string_view what, const fs::path& path, int code) {
  Error error = system_error(what, path, code);
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  error.remedy = full ? "free some space, or name a folder on another disk"
                      : "name a folder that can be made and written to";
  return error;
}

Status write_all(int fd, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return write_error("cannot write", path, errno);
    text.remove_prefix(static_cast<size_t>(n));
  }
  return Done{};
}

// Writes and syncs; closes `fd` in every case.
Status write_and_close(int fd, std::string_view text, const fs::path& path) {
  Status status = write_all(fd, text, path);
  if (status && ::fsync(fd) != 0 && errno != EINVAL && errno != EROFS) {
    status = write_error("cannot flush", path, errno);
  }
  if (::close(fd) != 0 && status) status = write_error("cannot close", path, errno);
  return status;
}

}  // namespace

Result<int> open_regular(const fs::path& path) {
  // Without O_NONBLOCK to open a pipe is to wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return system_error("cannot open", path, errno);
  struct stat about = {};
  const int code = ::fstat(fd, &about) == 0 ? 0 : errno;
  if (code == 0 && S_ISREG(about.st_mode)) return fd;
  ::close(fd);
  if (code != 0) return system_error("cannot read", path, code);
  if (S_ISDIR(about.st_mode)) return system_error("cannot read", path, EISDIR);
  return Error{.message = "cannot read '" + path.string() + "': it is no regular file",
               .remedy = "write what the pipe or the device delivers to a file, and name that"};
}

Result<std::string> read_file(const fs::path& path) {
  TRY(const int fd, open_regular(path));
  // What it holds now: one that grows faster than it is read would have no end. The kernel's files say 0.
  struct stat about = {};
  const auto whole = ::fstat(fd, &about) == 0 ? static_cast<size_t>(about.st_size) : 0;
  std::string text;
  char chunk[1 << 16];
  while (whole == 0 || text.size() < whole) {
    const size_t most = whole == 0 ? sizeof chunk : std::min(sizeof chunk, whole - text.size());
    const ssize_t n = ::read(fd, chunk, most);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int code = errno;
      ::close(fd);
      return system_error("cannot read", path, code);
    }
    if (n == 0) break;
    text.append(chunk, static_cast<size_t>(n));
  }
  ::close(fd);
  return text;
}

Result<std::string> read_regular_file(const fs::path& path) {
  std::error_code ignored;
  const auto status = fs::symlink_status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return Error{.message = fs::is_symlink(status) ? "a link, not a file" : "not a regular file",
                 .where = path.string(),
                 .remedy = "replace it by the file itself"};
  }
  return read_file(path);
}

namespace {

std::optional<fs::path> find_home() {
  if (const char* home = std::getenv("BAKEOFF_HOME"); home && *home) return home;
  if (const char* data = std::getenv("XDG_DATA_HOME"); data && *data) return fs::path(data) / "bakeoff";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".local/share/bakeoff";
  return std::nullopt;
}

// The home, if `path` is the home or lies in it.
std::optional<fs::path> home_around(const fs::path& path) {
  const auto home = find_home();
  if (!home) return std::nullopt;
  const fs::path at = fs::absolute(path).lexically_normal();
  fs::path top = fs::absolute(*home).lexically_normal();
  if (!top.has_filename()) top = top.parent_path();  // "home/"
  if (std::mismatch(top.begin(), top.end(), at.begin(), at.end()).first != top.end()) return std::nullopt;
  return top;
}

}  // namespace

FileWriter::FileWriter(fs::path path, fs::path temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)) {}

FileWriter::~FileWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

std::string own_name() {
  uint64_t own = 0;
  if (::getrandom(&own, sizeof own, 0) != sizeof own) own = static_cast<uint64_t>(::getpid());
  return std::to_string(own);
}

Result<FileWriter> FileWriter::create(const fs::path& path) {
  if (path.has_parent_path()) CHECK_OK(make_folder(path.parent_path()));
  fs::path temporary = path;
  temporary += ".tmp" + own_name();
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                        home_around(path) ? 0600 : 0644);
  if (fd < 0) return write_error("cannot create", path, errno);
  return FileWriter(path, std::move(temporary), fd);
}

Status FileWriter::append(std::string_view text) { return write_all(fd_, text, path_); }

Status FileWriter::replace(size_t at, std::string_view text) {
  const ssize_t n = ::pwrite(fd_, text.data(), text.size(), static_cast<off_t>(at));
  if (n != static_cast<ssize_t>(text.size()))
    return write_error("cannot write", path_, n < 0 ? errno : ENOSPC);
  return Done{};
}

Status FileWriter::finish() {
  Status status = write_and_close(std::exchange(fd_, -1), {}, path_);
  if (status && ::rename(temporary_.c_str(), path_.c_str()) != 0)
    status = write_error("cannot replace", path_, errno);
  if (!status) ::unlink(temporary_.c_str());
  return status;
}

Status write_file(const fs::path& path, std::string_view text) {
  TRY(FileWriter file, FileWriter::create(path));
  CHECK_OK(file.append(text));
  return file.finish();
}

Status append_line(const fs::path& path, std::string_view line) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return write_error("cannot open", path, errno);
  return write_and_close(fd, std::string(line) + "\n", path);
}

Status make_folder(const fs::path& path) {
  std::error_code code;
  // The home holds people's data, and programs that are run. One that is there keeps its mode: it may be shared.
  if (const auto home = home_around(path); home && !fs::exists(*home, code)) {
    fs::create_directories(home->parent_path(), code);
    ::mkdir(home->c_str(), 0700);
  }
  fs::create_directories(path, code);
  if (code) return write_error("cannot create folder", path, code.value());
  if (!fs::is_directory(path, code)) return write_error("cannot create folder", path, ENOTDIR);
  return Done{};
}

namespace {

constexpr const char* kNoHome = "there is no folder for environments, data and proofs: HOME is not set";

}  // namespace

Status check_home() {
  if (find_home()) return Done{};
  return Error{.message = kNoHome, .remedy = "set BAKEOFF_HOME to a folder of your own, or HOME"};
}

fs::path bakeoff_home() {
  auto home = find_home();
  if (!home) throw std::runtime_error(kNoHome);
  return std::move(*home);
}

}  // namespace bakeoff
