#include "sample/memory.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/kernel_file.h"

namespace bakeoff::sample {
namespace {

// "VmRSS:     1234 kB" of a text of such lines.
Reading kilobytes(std::string_view text, std::string_view key, const char* file) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    line.remove_prefix(key.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    int64_t value = 0;
    const auto [at, code] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (code != std::errc() || value < 0 || std::string_view(at, line.end()) != " kB")
      return Reading::absent(
          fmt::format("'{}' of {} is not as expected: '{}'", key, file, line.substr(0, 40)));
    return static_cast<double>(value) * 1024;
  }
  return Reading::absent(fmt::format("{} has no line '{}'", file, key));
}

void add(Reading& sum, const Reading& more) {
  if (sum) sum = more ? Reading(*sum + *more) : more;
}

}  // namespace

ProcessMemory sample_memory(pid_t pid, const fs::path& root, bool with_pss) {
  ProcessMemory memory;
  const fs::path folder = root / "proc" / std::to_string(pid);
  if (const auto status = read_kernel_file(folder / "status")) {
    memory.rss_bytes = kilobytes(*status, "VmRSS", "status");
    memory.peak_rss_bytes = kilobytes(*status, "VmHWM", "status");
  } else {
    memory.rss_bytes = memory.peak_rss_bytes = Reading::absent(fmt::format("there is no process {}", pid));
  }
  if (!with_pss) {
    memory.pss_bytes = Reading::absent("not asked for");
  } else if (const auto rollup = read_kernel_file_in_time(folder / "smaps_rollup")) {
    memory.pss_bytes = kilobytes(*rollup, "Pss", "smaps_rollup");
  } else {
    memory.pss_bytes = Reading::absent("there is no readable smaps_rollup");
  }
  return memory;
}

ProcessMemory sample_memory(const std::vector<pid_t>& pids, const fs::path& root, bool with_pss) {
  ProcessMemory all{.rss_bytes = 0, .peak_rss_bytes = 0, .pss_bytes = 0};
  for (const pid_t pid : pids) {
    const ProcessMemory one = sample_memory(pid, root, with_pss);
    add(all.rss_bytes, one.rss_bytes);
    add(all.peak_rss_bytes, one.peak_rss_bytes);
    add(all.pss_bytes, one.pss_bytes);
  }
  return all;
}

}  // namespace bakeoff::sample
