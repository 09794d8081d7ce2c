#pragma once

// The Python package bakeoff_runner, embedded in this program.

#include <filesystem>

#include "base/result.h"

namespace bakeoff {

// Unpacks it into `home`/runner/<hash> unless it is there already. Returns that folder, which belongs into
// PYTHONPATH.
Result<std::filesystem::path> unpack_runner(const std::filesystem::path& home);

}  // namespace bakeoff
