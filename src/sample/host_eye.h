#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "sample/host_sampler.h"

namespace bakeoff::sample {

// Where snapshots come from: the machine, or a test's script.
using HostEye = std::function<HostSnapshot()>;
// This machine, over `cpus` (empty: all).
HostEye machine_eye(const std::vector<int>& cpus, const std::filesystem::path& root = "/");

}  // namespace bakeoff::sample
