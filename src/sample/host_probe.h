#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "sample/host_sampler.h"

namespace bakeoff::sample {

// Takes a snapshot of the host: of the machine, or from a test's script.
using HostProbe = std::function<HostSnapshot()>;
// Reads this machine, over `cpus` (empty: all).
HostProbe host_probe(const std::vector<int>& cpus, const std::filesystem::path& root = "/");

}  // namespace bakeoff::sample
