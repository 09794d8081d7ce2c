#include "sample/host_eye.h"

namespace bakeoff::sample {

HostEye machine_eye(const std::vector<int>& cpus, const std::filesystem::path& root) {
  return [sampler = HostSampler({.root = root, .cpus = cpus})] { return sampler.take(); };
}

}  // namespace bakeoff::sample
