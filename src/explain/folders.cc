#include "explain/folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/temporary_folder.h"

namespace bakeoff::explain {
namespace {

namespace fs = std::filesystem;

// Copies are left out, too: the folder may be the one for temporary files.
bool left_out(const fs::directory_entry& entry) {
  constexpr std::array<std::string_view, 6> kNames = {".git",        "__pycache__", "node_modules",
                                                      ".mypy_cache", ".hg",         ".tox"};
  std::error_code ignored;
  if (!entry.is_directory(ignored) || entry.is_symlink(ignored)) return false;
  const std::string name = entry.path().filename().string();
  if (name.starts_with(TemporaryFolder::kPrefix)) return true;
  return std::ranges::find(kNames, name) != kNames.end() || fs::exists(entry.path() / "pyvenv.cfg", ignored);
}

}  // namespace

std::string too_large(const fs::path& folder) {
  std::error_code failed;
  int64_t bytes = 0, files = 0;
  for (fs::recursive_directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    if (left_out(*it)) {
      it.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    if (it->is_regular_file(ignored) && !it->is_symlink(ignored))
      bytes += static_cast<int64_t>(it->file_size(ignored));
    if (++files > kMostFiles) return fmt::format("it holds more than {} files", kMostFiles);
    if (bytes > kMostCopied) return fmt::format("it holds more than {} MiB", kMostCopied >> 20);
  }
  return failed ? failed.message() : "";
}

Status copy_folder(const fs::path& folder, const fs::path& into) {
  std::error_code failed;
  fs::create_directories(into, failed);
  for (fs::recursive_directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    if (left_out(*it)) {
      it.disable_recursion_pending();
      continue;
    }
    const fs::path to = into / it->path().lexically_relative(folder);
    std::error_code ignored;
    if (it->is_symlink(ignored)) {
      // Within the folder it leads to the copy, else to the original.
      const fs::path target = fs::read_symlink(it->path(), ignored);
      const fs::path whole =
          fs::weakly_canonical(it->path(), ignored).lexically_relative(fs::weakly_canonical(folder));
      const bool within = target.is_relative() && !whole.empty() && *whole.begin() != "..";
      fs::create_symlink(within || target.is_absolute() ? target : it->path().parent_path() / target, to,
                         ignored);
    } else if (it->is_directory(ignored)) {
      fs::create_directories(to, failed);
    } else if (it->is_regular_file(ignored)) {  // no sockets and pipes
      fs::copy_file(it->path(), to, failed);
    }
  }
  if (failed)
    return Error{.message = fmt::format("'{}' cannot be copied: {}", folder.string(), failed.message())};
  return Done{};
}

}  // namespace bakeoff::explain
