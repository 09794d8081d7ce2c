#pragma once

// A new folder that vanishes, with everything in it, when this object does.
//
// A killed process cannot remove its folders. Therefore each folder is locked (flock) as long as its process
// lives. A process that makes one first removes the folders beside it whose names begin alike and that are not
// locked. A lock ends with the process that holds it; process numbers mean nothing in another container.

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace bakeoff {

class TemporaryFolder {
 public:
  // How the name of a folder that make() makes begins.
  static constexpr std::string_view kPrefix = "bakeoff_tmp_";

  // In the folder `parent`, which exists, with a name that begins with `prefix`.
  static Result<TemporaryFolder> in(const std::filesystem::path& parent, const std::string& prefix);
  // In the system's folder for temporary files; its name tells `kind`, of letters alone.
  static Result<TemporaryFolder> make(const std::string& kind);

  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)), owner_(other.owner_) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryFolder(std::filesystem::path path, int lock);
  std::filesystem::path path_;
  int lock_;     // -1: the file system has no locks
  pid_t owner_;  // a forked process has a copy of this object, and removes nothing
};

}  // namespace bakeoff
