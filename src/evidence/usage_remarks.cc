#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/texts.h"
#include "evidence/invariants.h"
#include "evidence/usage.h"

namespace bakeoff {
namespace {

constexpr double kNoteworthy = 0.01;  // share of the samples
constexpr double kNearLimit = 0.98;   // of a cgroup's memory
constexpr const char* kThrottled = "gpu_throttled";

// The mean over all bursts that have the number, by name.
std::map<std::string, double> means(const std::vector<const Trial*>& trials) {
  std::map<std::string, std::pair<double, double>> sums;
  for (const Trial* trial : trials) {
    for (const Burst& burst : trial->bursts) {
      for (const auto& [name, value] : burst.used) {
        sums[name].first += value;
        sums[name].second += 1;
      }
    }
  }
  std::map<std::string, double> all;
  for (const auto& [name, sum] : sums) all[name] = sum.first / sum.second;
  return all;
}

void add_throttling(const std::map<std::string, double>& seen, std::vector<std::string>& remarks) {
  const auto share = seen.find(kThrottled);
  if (share == seen.end() || share->second <= kNoteworthy) return;
  std::vector<std::string> reasons;
  const std::string prefix = std::string(kThrottled) + ": ";
  for (const auto& [name, value] : seen) {
    if (name.starts_with(prefix) && value > 0)
      reasons.push_back(fmt::format("{} {:.0f}%", name.substr(prefix.size()), 100 * value));
  }
  remarks.push_back(fmt::format("its GPU's clocks were reduced for {:.0f}% of the time ({})",
                                100 * share->second, join(reasons, ", ")));
}

// Every sensor that was lost during the run; sensors with the same reason together.
void add_lost(const std::vector<const Trial*>& trials, std::vector<std::string>& remarks) {
  std::map<std::string, std::set<std::string>> by_reason;
  for (const Trial* trial : trials) {
    for (const auto& [name, why] : trial->sensors_lost)
      by_reason[why].insert(name.starts_with("gpu_") ? "GPU" : name);
  }
  for (const auto& [why, names] : by_reason)
    remarks.push_back(fmt::format("lost during the run: {} ({})", join(names, ", "), why));
}

void add_memory_limit(const std::vector<const Trial*>& trials, std::vector<std::string>& remarks) {
  for (const Trial* trial : trials) {
    for (const HostRound& round : trial->rounds) {
      const auto peak = round.seen.find("cgroup memory peak"), limit = round.seen.find("cgroup memory limit");
      if (peak == round.seen.end() || limit == round.seen.end() || peak->second < kNearLimit * limit->second)
        continue;
      remarks.push_back(
          fmt::format("the memory of our cgroup reached its limit of {:.2f} GiB: pages were taken "
                      "back",
                      limit->second / (1 << 30)));
      return;
    }
  }
}

}  // namespace

std::vector<std::string> remarks_on(const std::vector<const Trial*>& trials) {
  std::vector<std::string> remarks;
  const auto seen = means(trials);
  add_throttling(seen, remarks);
  add_lost(trials, remarks);
  if (const auto others = seen.find("gpu_processes"); others != seen.end() && others->second > 1.5)
    remarks.push_back(fmt::format("{:.0f} processes computed on its GPU", others->second));
  if (const auto broken = gpu_energy_against_power(trials))
    remarks.push_back("its GPU's energy is left out: " + broken->text());
  add_memory_limit(trials, remarks);
  return remarks;
}

}  // namespace bakeoff
