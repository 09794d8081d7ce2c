#pragma once

// The SHA-256 of a file (base/sha256.h).
//
//   TRY(auto sum, sha256_file("train.safetensors"));

#include <filesystem>
#include <string>

#include "base/result.h"

namespace bakeoff {

// Reads the file in pieces; the error names it.
Result<std::string> sha256_file(const std::filesystem::path& path);

}  // namespace bakeoff
