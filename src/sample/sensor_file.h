#pragma once

// A small file of the kernel that is read again and again through one descriptor.

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace bakeoff::sample {

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
