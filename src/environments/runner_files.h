#pragma once

// The Python packages bakeoff_runner and bakeoff_import, embedded in this program.

#include <filesystem>

#include "base/result.h"

namespace bakeoff {

// Unpacks them into `home`/runner/<hash> unless they are there already. Returns that folder, which belongs into
// PYTHONPATH.
Result<std::filesystem::path> unpack_runner(const std::filesystem::path& home);

}  // namespace bakeoff
