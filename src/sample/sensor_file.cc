#include "sample/sensor_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace bakeoff::sample {
namespace {

constexpr int64_t kKept = 1'000'000'000;  // ns for which a file stays open

}  // namespace

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
