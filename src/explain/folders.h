#pragma once

// A folder of its own for each run of a script, so that files which the script writes, replaces or removes in
// its working directory are copies.

#include <filesystem>
#include <string>

#include "base/result.h"

namespace bakeoff::explain {

inline constexpr int64_t kMostCopied = int64_t{256} << 20;  // bytes of one copy
inline constexpr int64_t kMostFiles = 5000;

// Why `folder` is not copied, "it holds more than 256 MiB"; empty: it can be. Version control, caches and
// virtual environments are left out (copied()).
std::string too_large(const std::filesystem::path& folder);

// Copies all of it to `into`, which does not exist yet.
Status copy_folder(const std::filesystem::path& folder, const std::filesystem::path& into);

}  // namespace bakeoff::explain
