#pragma once

// A small file of the kernel's that is read again and again through one descriptor.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace bakeoff::sample {

// Kept open from one read() to the next, a second long: one system call a look, and a file that was put in
// another one's place (a sensor that was plugged in again, a group that was made anew) is seen a second
// later.
class SensorFile {
 public:
  // Opened at the first read(). Nothing is said about it until then. `clock` must outlive it.
  explicit SensorFile(std::filesystem::path path, const Clock& clock = monotonic_clock())
      : path_(std::move(path)), clock_(&clock) {}
  ~SensorFile();
  SensorFile(const SensorFile&) = delete;
  SensorFile& operator=(const SensorFile&) = delete;

  // Its first line, at most 255 bytes, valid until the next call. Error with the system's reason; the file is
  // opened anew at the next call then. A file that is no file of numbers but a pipe is not waited for when it
  // is opened.
  Result<std::string_view> read();

 private:
  void close();

  std::filesystem::path path_;
  const Clock* clock_;
  int fd_ = -1;
  int64_t opened_ns_ = 0;
  std::array<char, 256> text_ = {};
};

}  // namespace bakeoff::sample
