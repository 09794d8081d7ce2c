#include "sample/cgroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "base/kernel_file.h"
#include "sample/counters.h"

namespace bakeoff::sample {
namespace {

constexpr double kNoLimit = 4e18;  // v1's "none" is the largest number of whole pages

// `group` and its ancestors below `top`, which is the last.
void add_chain(const fs::path& top, const std::string& group, std::vector<fs::path>& folders) {
  for (fs::path at = fs::path(group).relative_path(); !at.empty(); at = at.parent_path())
    folders.push_back(top / at);
  folders.push_back(top);
}

// Both spellings of a file; the first folder that has one of them answers.
struct Names {
  const char* v2;
  const char* v1;
};
constexpr Names kUsed{"memory.current", "memory.usage_in_bytes"};
constexpr Names kPeak{"memory.peak", "memory.max_usage_in_bytes"};
constexpr Names kLimit{"memory.max", "memory.limit_in_bytes"};

std::optional<std::string> line_in(const fs::path& file) {
  const auto text = read_kernel_file(file);
  if (!text) return std::nullopt;
  return first_line(*text);
}

Reading bytes_of(const std::string& line, const char* file) {
  double value = 0;
  const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (code != std::errc() || end != line.data() + line.size() || !(value >= 0))
    return Reading::absent(fmt::format("{} is not as expected: '{}'", file, line.substr(0, 40)));
  return value;
}

// The first of `folders` that has the file.
Reading nearest(const std::vector<fs::path>& folders, const Names& names) {
  for (const fs::path& folder : folders) {
    for (const char* name : {names.v2, names.v1}) {
      if (const auto line = line_in(folder / name)) return bytes_of(*line, name);
    }
  }
  return Reading::absent(fmt::format("no cgroup of ours has a readable {} or {}", names.v2, names.v1));
}

Reading least_limit(const std::vector<fs::path>& folders) {
  Reading least = Reading::absent("no cgroup of ours has a readable memory.max or memory.limit_in_bytes");
  for (const fs::path& folder : folders) {
    for (const char* name : {kLimit.v2, kLimit.v1}) {
      const auto line = line_in(folder / name);
      if (!line) continue;
      const Reading limit = *line == "max" ? Reading(kNoLimit) : bytes_of(*line, name);
      if (!limit) return limit;
      least = least ? Reading(std::min(*least, *limit)) : limit;
    }
  }
  return least && *least >= kNoLimit ? Reading::absent("no limit is set") : least;
}

// Of what a group counts, the files that it can give back.
double files_in_cache(const fs::path& folder) {
  const auto text = read_kernel_file(folder / "memory.stat");
  if (!text) return 0;
  const std::string prefix = text->find("total_inactive_file ") != std::string::npos ? "total_" : "";  // v1
  double bytes = 0;
  std::istringstream lines(*text);
  std::string name;
  for (double value = 0; lines >> name >> value;) {
    if (name == prefix + "inactive_file" || name == prefix + "active_file") bytes += std::max(0.0, value);
  }
  return bytes;
}

// A file's only number; nothing where it has another text, such as "max".
std::optional<double> number_in(const fs::path& file) {
  const auto line = line_in(file);
  const Reading value = line ? bytes_of(*line, "") : Reading();
  return value ? std::optional(*value) : std::nullopt;
}

// The quota of one group, in processors.
std::optional<double> quota_in(const fs::path& folder) {
  std::optional<double> quota = number_in(folder / "cpu.cfs_quota_us");  // -1: none
  std::optional<double> period = number_in(folder / "cpu.cfs_period_us");
  if (const auto line = line_in(folder / "cpu.max")) {  // "150000 100000", "max 100000"
    const size_t space = std::min(line->find(' '), line->size());
    const Reading first = bytes_of(line->substr(0, space), "");
    const Reading second = bytes_of(line->substr(std::min(space + 1, line->size())), "");
    quota = first ? std::optional(*first) : std::nullopt;
    period = second ? std::optional(*second) : std::nullopt;
  }
  return quota && period && *quota > 0 && *period > 0 ? std::optional(*quota / *period) : std::nullopt;
}

}  // namespace

std::vector<fs::path> cgroup_folders(const fs::path& root, const std::string& controller) {
  const auto text = read_kernel_file(root / "proc/self/cgroup");
  if (!text) return {};
  const auto groups = parse_cgroups(*text);
  std::vector<fs::path> folders;
  const fs::path mounts = root / "sys/fs/cgroup";
  if (const auto v1 = groups.find(controller); v1 != groups.end()) {
    add_chain(mounts / controller, v1->second, folders);
    if (controller == "cpu") {  // mounted together with another one, under either name
      add_chain(mounts / "cpu,cpuacct", v1->second, folders);
      add_chain(mounts / "cpuacct,cpu", v1->second, folders);
    }
  }
  if (const auto v2 = groups.find(""); v2 != groups.end()) {
    add_chain(mounts, v2->second, folders);
    add_chain(mounts / "unified", v2->second, folders);
  }
  return folders;
}

CgroupMemory sample_cgroup_memory(const fs::path& root) {
  const auto folders = cgroup_folders(root, "memory");
  if (folders.empty()) {
    const Reading none = Reading::absent("there is no readable /proc/self/cgroup");
    return {none, none, none};
  }
  return {nearest(folders, kUsed), nearest(folders, kPeak), least_limit(folders)};
}

Reading cgroup_memory_left(const fs::path& root) {
  Reading least = Reading::absent("no limit is set");
  for (const fs::path& folder : cgroup_folders(root, "memory")) {
    for (const auto& [used_file, limit_file] : {std::pair{kUsed.v2, kLimit.v2}, {kUsed.v1, kLimit.v1}}) {
      const auto used = number_in(folder / used_file), limit = number_in(folder / limit_file);
      if (!used || !limit || *limit >= kNoLimit) continue;
      const double left = std::max(0.0, *limit - *used + files_in_cache(folder));
      least = least ? std::min(*least, left) : left;
    }
  }
  return least;
}

Reading cgroup_cpu_quota(const fs::path& root) {
  Reading least = Reading::absent("no quota is set");
  for (const fs::path& folder : cgroup_folders(root, "cpu")) {
    if (const auto quota = quota_in(folder)) least = least ? std::min(*least, *quota) : *quota;
  }
  return least;
}

}  // namespace bakeoff::sample
