#pragma once

// Work beside a race, in processes of its own, that ends with the object.

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace bakeoff::bench {

enum class Load {
  kNone,     // nothing is planted
  kLoop,     // one processor is kept busy
  kLoops,    // as many busy processes as there are processors
  kMemory,   // 64 MiB are written over and over
  kRegimes,  // busy and idle for seconds each, at random
  kShort,    // busy and idle for some 50 ms each, at random
  kMild,  // busy for some 15 ms and idle for some 285 ms, at random: a neighbour that takes 5% of a processor
  kQuota,  // our own cgroup gets half of a processor
};
std::string name(Load load);

class PlantedLoad {
 public:
  PlantedLoad(Load load, unsigned seed);
  ~PlantedLoad();
  PlantedLoad(const PlantedLoad&) = delete;
  PlantedLoad& operator=(const PlantedLoad&) = delete;
  // Why it could not be planted; empty: it is.
  const std::string& why_not() const { return why_not_; }

 private:
  void limit_ourselves();
  std::vector<pid_t> processes_;
  std::filesystem::path group_ = {};   // a cgroup of our own, with the quota
  std::filesystem::path before_ = {};  // the one that we came from
  std::string why_not_ = {};
};

}  // namespace bakeoff::bench
