#include "base/temporary_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace bakeoff {
namespace {

constexpr size_t kRandom = 6;  // characters that mkdtemp chooses

int open_folder(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool lock(int folder) { return ::flock(folder, LOCK_EX | LOCK_NB) == 0; }

// Whether in() has given the name, with this beginning; with any kind where make() has.
bool named(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  if (prefix == TemporaryFolder::kPrefix) name.remove_prefix(name.rfind('_') + 1);
  return name.size() == kRandom;
}

// Removes folders whose process has ended, of this user.
void remove_those_left(const fs::path& parent, std::string_view prefix) {
  std::error_code code;
  for (fs::directory_iterator it(parent, code), end; !code && it != end; it.increment(code)) {
    if (!named(it->path().filename().string(), prefix)) continue;
    const int folder = open_folder(it->path());
    if (folder < 0) continue;
    struct stat info = {};
    std::error_code ignored;
    if (::fstat(folder, &info) == 0 && info.st_uid == ::geteuid() && lock(folder))
      fs::remove_all(it->path(), ignored);
    ::close(folder);
  }
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::in(const fs::path& parent, const std::string& prefix) {
  remove_those_left(parent, prefix.starts_with(kPrefix) ? kPrefix : prefix);
  for (;;) {
    std::string made = (parent / (prefix + std::string(kRandom, 'X'))).string();
    if (mkdtemp(made.data()) == nullptr) {
      return Error{
          .message = fmt::format("cannot make a folder in '{}': {}", parent.string(), std::strerror(errno))};
    }
    // Before the lock is held another process may take it for one that was left.
    const int folder = open_folder(made);
    const bool taken = folder >= 0 && !lock(folder) && errno == EWOULDBLOCK;
    if (!taken && fs::exists(made)) return TemporaryFolder(made, folder);
    if (folder >= 0) ::close(folder);
  }
}

Result<TemporaryFolder> TemporaryFolder::make(const std::string& kind) {
  std::error_code code;
  const fs::path parent = fs::temp_directory_path(code);
  if (code)
    return Error{.message = "there is no folder for temporary files: " + code.message(),
                 .remedy = "set TMPDIR to a folder"};
  return in(parent, fmt::format("{}{}_", kPrefix, kind));
}

TemporaryFolder::TemporaryFolder(fs::path path, int lock)
    : path_(std::move(path)), lock_(lock), owner_(::getpid()) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty() && owner_ == ::getpid()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace bakeoff
