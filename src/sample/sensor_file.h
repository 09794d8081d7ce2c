#pragma once

// Files of the kernel's: a small one that is read again and again through one descriptor, and others whole.

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace bakeoff::sample {

// The whole of a regular file. Neither opening nor reading waits for a writer: a pipe or a device in a
// sensor's place is refused. "energy_uj: Permission denied" otherwise: the file's name with the system's
// reason.
Result<std::string> read_sensor(const std::filesystem::path& path);

class SensorFile {
 public:
  // Opened at the first read(). Nothing is said about it until then.
  explicit SensorFile(std::filesystem::path path) : path_(std::move(path)) {}
  ~SensorFile();
  SensorFile(const SensorFile&) = delete;
  SensorFile& operator=(const SensorFile&) = delete;

  // Its first line, at most 255 bytes, valid until the next call. Error with the system's reason; the file is
  // opened anew then. A file that is no file of numbers but a pipe is not waited for when it is opened.
  Result<std::string_view> read();

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  std::array<char, 256> text_ = {};
};

}  // namespace bakeoff::sample
