#include "sample/sensor_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace bakeoff::sample {
namespace {

constexpr int64_t kKept = 1'000'000'000;  // ns for which a file stays open

}  // namespace

Result<std::string> read_sensor(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  int code = fd < 0 ? errno : 0;
  struct stat about = {};
  if (fd >= 0 && ::fstat(fd, &about) != 0) code = errno;
  const bool regular = S_ISREG(about.st_mode);
  std::string text;
  char chunk[1 << 12];
  while (code == 0 && regular) {
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n == 0) break;
    if (n > 0)
      text.append(chunk, static_cast<size_t>(n));
    else if (errno != EINTR)
      code = errno;
  }
  if (fd >= 0) ::close(fd);
  const std::string name = path.filename().string();
  if (code != 0) return Error{.message = fmt::format("{}: {}", name, std::strerror(code))};
  if (!regular) return Error{.message = name + ": it is no regular file"};
  return text;
}

SensorFile::~SensorFile() { close(); }

void SensorFile::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<std::string_view> SensorFile::read() {
  const auto failed = [&](int code) {
    close();
    return Error{.message =
                     fmt::format("{} cannot be read: {}", path_.filename().string(), std::strerror(code))};
  };
  const int64_t ns = clock_->now_ns();
  if (fd_ >= 0 && ns - opened_ns_ >= kKept) close();
  if (fd_ < 0) {
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) return failed(errno);
    opened_ns_ = ns;
  }
  const ssize_t n = ::pread(fd_, text_.data(), text_.size() - 1, 0);
  if (n < 0) return failed(errno);
  const std::string_view text(text_.data(), static_cast<size_t>(n));
  return text.substr(0, text.find('\n'));
}

}  // namespace bakeoff::sample
