#include "sample/host_probe.h"

namespace bakeoff::sample {

HostProbe host_probe(const std::vector<int>& cpus, const std::filesystem::path& root) {
  return [sampler = HostSampler({.root = root, .cpus = cpus})] { return sampler.take(); };
}

}  // namespace bakeoff::sample
