#include "base/temporary_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace bakeoff {

Result<TemporaryFolder> TemporaryFolder::in(const fs::path& parent, const std::string& prefix) {
  std::string made = (parent / (prefix + "XXXXXX")).string();
  if (mkdtemp(made.data()) == nullptr) {
    return Error{.message =
                     fmt::format("cannot make a folder in '{}': {}", parent.string(), std::strerror(errno))};
  }
  return TemporaryFolder(made);
}

Result<TemporaryFolder> TemporaryFolder::make(const std::string& prefix) {
  std::error_code code;
  const fs::path parent = fs::temp_directory_path(code);
  if (code)
    return Error{.message = "there is no folder for temporary files: " + code.message(),
                 .remedy = "set TMPDIR to a folder"};
  return in(parent, prefix);
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) {
  other.path_.clear();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace bakeoff
