#include "roofline/caches.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/kernel_file.h"

namespace bakeoff::roofline {
namespace {

std::string word(const fs::path& path) {
  const std::string line = kernel_line(path);
  return line.substr(0, line.find(' '));
}

// Removes the number at the beginning of `text` and returns it; nullopt if there is no number.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::vector<Cache> from_sysconf() {
  std::vector<Cache> caches;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  const std::pair<const char*, int> levels[] = {
      {"L1", _SC_LEVEL1_DCACHE_SIZE}, {"L2", _SC_LEVEL2_CACHE_SIZE}, {"L3", _SC_LEVEL3_CACHE_SIZE}};
  for (const auto& [name, key] : levels) {
    if (const long bytes = ::sysconf(key); bytes > 0) caches.push_back({name, bytes, {}});
  }
#endif
  return caches;
}

}  // namespace

int64_t parse_size(const std::string& text) {
  std::string_view left = text;
  const int64_t number = take_number(left).value_or(0);
  const int64_t unit = left.empty()  ? 1
                       : left == "K" ? 1 << 10
                       : left == "M" ? 1 << 20
                       : left == "G" ? 1 << 30
                                     : 0;
  return number > 0 && number < (int64_t{1} << 32) ? number * unit : 0;
}

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::string_view left = text;
  while (!left.empty() && left != "\n") {
    const std::optional<int64_t> first = take_number(left);
    std::optional<int64_t> last = first;
    if (left.starts_with('-')) {
      left.remove_prefix(1);
      last = take_number(left);
    }
    if (!first || !last || *last < *first || *last > 1 << 16) return {};
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    if (!left.starts_with(',')) return left.empty() || left == "\n" ? cpus : std::vector<int>{};
    left.remove_prefix(1);
  }
  return cpus;
}

std::vector<Cache> read_caches(const fs::path& root, int cpu) {
  std::vector<Cache> caches;
  for (int index = 0; index < 8; ++index) {
    const fs::path folder = root / fmt::format("sys/devices/system/cpu/cpu{}/cache/index{}", cpu, index);
    const std::string type = word(folder / "type"), level = word(folder / "level");
    const int64_t bytes = parse_size(word(folder / "size"));
    if ((type != "Data" && type != "Unified") || bytes < 1024 || level.size() != 1) continue;
    if (level[0] < '1' || level[0] > '4') continue;
    caches.push_back({"L" + level, bytes, parse_cpu_list(word(folder / "shared_cpu_list"))});
  }
  if (caches.empty() && root == "/") caches = from_sysconf();
  std::sort(caches.begin(), caches.end(), [](const Cache& a, const Cache& b) { return a.name < b.name; });
  return caches;
}

}  // namespace bakeoff::roofline
