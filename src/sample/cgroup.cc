#include "sample/cgroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/files.h"
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

std::optional<std::string> first_line(const fs::path& file) {
  std::error_code code;
  if (!fs::is_regular_file(file, code)) return std::nullopt;
  const auto text = read_file(file);
  if (!text) return std::nullopt;
  return text->substr(0, text->find('\n'));
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
      if (const auto line = first_line(folder / name)) return bytes_of(*line, name);
    }
  }
  return Reading::absent(fmt::format("no cgroup of ours has a readable {} or {}", names.v2, names.v1));
}

Reading least_limit(const std::vector<fs::path>& folders) {
  Reading least = Reading::absent("no cgroup of ours has a readable memory.max or memory.limit_in_bytes");
  for (const fs::path& folder : folders) {
    for (const char* name : {kLimit.v2, kLimit.v1}) {
      const auto line = first_line(folder / name);
      if (!line) continue;
      const Reading limit = *line == "max" ? Reading(kNoLimit) : bytes_of(*line, name);
      if (!limit) return limit;
      least = least ? Reading(std::min(*least, *limit)) : limit;
    }
  }
  return least && *least >= kNoLimit ? Reading::absent("no limit is set") : least;
}

}  // namespace

std::vector<fs::path> cgroup_folders(const fs::path& root, const std::string& controller) {
  const auto text = read_file(root / "proc/self/cgroup");
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

}  // namespace bakeoff::sample
