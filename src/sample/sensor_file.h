#pragma once

// A small file of the kernel that is read again and again through one descriptor.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace bakeoff::sample {

// The file stays open for one second, so a read costs one system call. If the file was replaced (a sensor
// that was plugged in again, a group that was created again), the new one is read a second later.
class SensorFile {
 public:
  // The first read() opens the file and reports errors. `clock` must outlive this object.
  explicit SensorFile(std::filesystem::path path, const Clock& clock = monotonic_clock())
      : path_(std::move(path)), clock_(&clock) {}
  ~SensorFile();
  SensorFile(const SensorFile&) = delete;
  SensorFile& operator=(const SensorFile&) = delete;

  // The file's first line, at most 255 bytes, valid until the next call. Errors quote the system; the next
  // call then opens the file again. Opening does not wait, even if the file is a pipe.
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
