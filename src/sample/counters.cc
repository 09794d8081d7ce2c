// The kernel's files are read several times a second, on kernels of any age and in containers that hide or
// replace some of them. A field that is missing must not become a zero, which would be taken for a
// measurement: every parser gives a value or an error with what it saw. A number has to fill its whole word,
// be finite and not negative; fields that only newer kernels have are optional by name.

#include "sample/counters.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

namespace bakeoff::sample {
namespace {

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// A number that fills the whole of `text`: finite, and no counter is negative.
std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

Error garbage(std::string_view what, std::string_view seen) {
  return Error{.message = fmt::format("{} is not as expected: '{}'", what, seen.substr(0, 40))};
}

// The words of the line that begins with `key` (with or without a colon behind it).
std::optional<std::vector<std::string_view>> line_of(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, "\n")) {
    auto words = split(line, " \t");
    if (words.empty()) continue;
    std::string_view name = words[0];
    if (name.ends_with(':')) name.remove_suffix(1);
    if (name != key) continue;
    words.erase(words.begin());
    return words;
  }
  return std::nullopt;
}

Result<double> value_of(std::string_view text, std::string_view key, std::string_view file) {
  const auto words = line_of(text, key);
  if (!words) return Error{.message = fmt::format("{} has no line '{}'", file, key)};
  const auto value = words->empty() ? std::nullopt : number((*words)[0]);
  if (!value) return garbage(fmt::format("'{}' of {}", key, file), words->empty() ? "" : (*words)[0]);
  return *value;
}

// "cpu3 user nice system idle iowait irq softirq steal ...": kernels of before 2.6.11 have no steal.
Result<CpuSeconds> parse_cpu(const std::vector<std::string_view>& words, double ticks_per_s) {
  std::vector<double> ticks;
  for (size_t i = 1; i < words.size(); ++i) {
    const auto value = number(words[i]);
    if (!value) return garbage("a number of /proc/stat", words[i]);
    ticks.push_back(*value / ticks_per_s);
  }
  if (ticks.size() < 8) return Error{.message = fmt::format("/proc/stat has no column of steal")};
  return CpuSeconds{ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6], ticks[7]};
}

}  // namespace

Result<Stat> parse_stat(std::string_view text, double ticks_per_s) {
  Stat stat;
  for (const std::string_view line : split(text, "\n")) {
    const auto words = split(line, " \t");
    if (words.empty() || !words[0].starts_with("cpu") || words[0].size() == 3) continue;
    const auto cpu = number(words[0].substr(3));
    if (!cpu) return garbage("a line of /proc/stat", line);
    TRY(stat.cpus[static_cast<int>(*cpu)], parse_cpu(words, ticks_per_s));
  }
  if (stat.cpus.empty()) return Error{.message = "/proc/stat has no line of a processor"};
  TRY(const double running, value_of(text, "procs_running", "/proc/stat"));
  stat.running = static_cast<int64_t>(running);
  return stat;
}

Result<double> parse_pressure_some_s(std::string_view text) {
  const auto words = line_of(text, "some");
  if (!words) return garbage("the pressure file", text.substr(0, text.find('\n')));
  for (const std::string_view word : *words) {
    if (!word.starts_with("total=")) continue;
    if (const auto us = number(word.substr(6))) return *us / 1e6;
    return garbage("the total of the pressure file", word);
  }
  return Error{.message = "the pressure file has no total"};
}

Result<double> parse_throttled_s(std::string_view text) {
  if (line_of(text, "throttled_usec")) {
    TRY(const double us, value_of(text, "throttled_usec", "cpu.stat"));
    return us / 1e6;
  }
  if (line_of(text, "throttled_time")) {
    TRY(const double ns, value_of(text, "throttled_time", "cpu.stat"));
    return ns / 1e9;
  }
  return Error{.message = "cpu.stat says nothing of throttling: no quota can be set here"};
}

Result<double> parse_load(std::string_view text) {
  const auto words = split(text, " \n");
  const auto load = words.size() < 3 ? std::nullopt : number(words[0]);
  if (!load) return garbage("/proc/loadavg", text.substr(0, text.find('\n')));
  return *load;
}

Result<double> parse_uptime_s(std::string_view text) {
  const auto words = split(text, " \n");
  const auto uptime = words.empty() ? std::nullopt : number(words[0]);
  if (!uptime) return garbage("/proc/uptime", text.substr(0, text.find('\n')));
  return *uptime;
}

Result<int64_t> parse_involuntary_switches(std::string_view text) {
  TRY(const double switches, value_of(text, "nonvoluntary_ctxt_switches", "status"));
  return static_cast<int64_t>(switches);
}

Result<int64_t> parse_voluntary_switches(std::string_view text) {
  TRY(const double switches, value_of(text, "voluntary_ctxt_switches", "status"));
  return static_cast<int64_t>(switches);
}

// Columns of a process's stat, from 0, as many as asked for: those of proc(5) less 3, for "7 (a name) S ppid
// ..." has a name that may hold anything, and so they are counted from behind it.
template <size_t N>
Result<std::array<int64_t, N>> stat_columns(std::string_view text, const std::array<size_t, N>& columns,
                                            const char* what) {
  const size_t name = text.rfind(')');
  const auto words = split(name == std::string_view::npos ? "" : text.substr(name + 1), " \n");
  std::array<int64_t, N> values{};
  for (size_t i = 0; i < N; ++i) {
    if (words.size() <= columns[i]) return garbage("stat of a process", text.substr(0, text.find('\n')));
    const auto value = number(words[columns[i]]);
    if (!value) return garbage(what, words[columns[i]]);
    values[i] = static_cast<int64_t>(*value);
  }
  return values;
}

Result<PageFaults> parse_page_faults(std::string_view text) {
  TRY(const auto faults, stat_columns<2>(text, {7, 9}, "the page faults of a process"));
  return PageFaults{faults[0], faults[1]};
}

Result<CpuTicks> parse_cpu_ticks(std::string_view text) {
  TRY(const auto ticks, stat_columns<4>(text, {11, 12, 13, 14}, "the processor time of a process"));
  return CpuTicks{ticks[0] + ticks[1], ticks[2] + ticks[3]};
}

Result<SchedStat> parse_schedstat(std::string_view text) {
  const auto words = split(text, " \n");
  const auto run = words.size() < 2 ? std::nullopt : number(words[0]);
  const auto wait = words.size() < 2 ? std::nullopt : number(words[1]);
  if (!run || !wait) return garbage("schedstat", text.substr(0, text.find('\n')));
  return SchedStat{static_cast<int64_t>(*run), static_cast<int64_t>(*wait)};
}

std::map<std::string, std::string> parse_cgroups(std::string_view text) {
  std::map<std::string, std::string> paths;
  for (const std::string_view line : split(text, "\n")) {
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string path(line.substr(second + 1));
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) paths[""] = path;
    for (const std::string_view controller : split(controllers, ",")) paths[std::string(controller)] = path;
  }
  return paths;
}

}  // namespace bakeoff::sample
