#pragma once

// A new folder that vanishes, with everything in it, when this object does.

#include <filesystem>
#include <string>

#include "base/result.h"

namespace bakeoff {

class TemporaryFolder {
 public:
  // In the folder `parent`, which exists, with a name that begins with `prefix`.
  static Result<TemporaryFolder> in(const std::filesystem::path& parent, const std::string& prefix);
  // In the system's folder for temporary files.
  static Result<TemporaryFolder> make(const std::string& prefix);

  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace bakeoff
