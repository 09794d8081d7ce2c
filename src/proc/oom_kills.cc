#include "proc/oom_kills.h"

#include <fstream>
#include <optional>
#include <string>

namespace bakeoff::proc {
namespace {

// The number behind `key` in a file of "key number" lines.
std::optional<int64_t> counter(const std::filesystem::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string name;
  int64_t value = 0;
  while (file >> name >> value) {
    if (name == key) return value;
  }
  return std::nullopt;
}

}  // namespace

int64_t oom_kills(const std::filesystem::path& root) {
  const std::filesystem::path mounts = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    // "0::/path" is version 2; "4:memory:/path" is version 1.
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const auto path = std::filesystem::path(line.substr(second + 1)).relative_path();
    const auto count_in = [&](const std::filesystem::path& top, const char* file) {
      const auto own = counter(top / path / file, "oom_kill");
      return own ? own : counter(top / file, "oom_kill");
    };
    std::optional<int64_t> count;
    if (controllers == "memory") count = count_in(mounts / "memory", "memory.oom_control");
    if (controllers.empty()) count = count_in(mounts, "memory.events");
    if (controllers.empty() && !count) count = count_in(mounts / "unified", "memory.events");
    if (count) return *count;
  }
  return counter(root / "proc/vmstat", "oom_kill").value_or(0);
}

}  // namespace bakeoff::proc
