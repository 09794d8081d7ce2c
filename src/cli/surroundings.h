#pragma once

// What commands that race find where they start.

#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/console.h"
#include "run/session.h"

namespace bakeoff::cli {

// Interpreters by the configuration file, proofs of earlier runs, this machine's sensors, and the terminal. For tests
// BAKEOFF_SENSORS names another folder than / for sensors' files, and BAKEOFF_NVML another library than NVIDIA's.
Result<run::Surroundings> surroundings(const std::filesystem::path& config, ConsoleProgress& progress);

// What the proof of a contender takes beside another one's, on a quiet machine with two processors.
inline constexpr double kProofSeconds = 6;

// "runs/NAME-20261124-101500".
std::filesystem::path dated_folder(const std::string& name);

}  // namespace bakeoff::cli
