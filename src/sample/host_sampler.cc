#include "sample/host_sampler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/kernel_file.h"
#include "sample/cgroup.h"
#include "sample/clock_probe.h"
#include "sample/counters.h"

namespace bakeoff::sample {
namespace {

// CPU seconds of our own processes that /proc/stat must show; its ticks are hundredths of a second. In some
// containers and sandboxes it never changes.
constexpr double kTellingUse = 0.1;

// Of a file that lxcfs may stand for in a container. A message without the temporary root, and a parse error
// as it is.
template <typename Parse>
auto parsed(const fs::path& root, const std::string& file, Parse parse)
    -> decltype(parse(std::string_view())) {
  const auto text = read_kernel_file_in_time(root / file);
  if (!text)
    return Error{.message = fmt::format("there is no readable /{} ({})", file, text.error().message)};
  return parse(*text);
}

Reading reading(const Result<double>& value) {
  return value ? Reading(*value) : Reading::absent(value.error().message);
}

void take_stat(const HostOptions& options, HostSnapshot& snapshot) {
  const double ticks =
      options.ticks_per_s > 0 ? options.ticks_per_s : static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto stat =
      parsed(options.root, "proc/stat", [&](std::string_view text) { return parse_stat(text, ticks); });
  if (!stat) {
    for (Reading* r : {&snapshot.busy_s, &snapshot.steal_s, &snapshot.run_queue})
      *r = Reading::absent(stat.error().message);
    return;
  }
  snapshot.run_queue = static_cast<double>(std::max<int64_t>(0, stat->running - 1));
  CpuSeconds sum;
  for (const auto& [cpu, seconds] : stat->cpus) {
    const auto& wanted = options.cpus;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), cpu) == wanted.end()) continue;
    sum.busy += seconds.busy;
    sum.steal += seconds.steal;
    ++snapshot.cpus;
  }
  if (snapshot.cpus == 0) {
    snapshot.busy_s = snapshot.steal_s = Reading::absent("/proc/stat does not name the processors in use");
    return;
  }
  snapshot.busy_s = sum.busy;
  snapshot.steal_s = sum.steal;
}

// Our own cgroup's cpu.stat, v2 or v1.
Reading throttled(const fs::path& root) {
  const auto folders = cgroup_folders(root, "cpu");
  if (folders.empty()) return Reading::absent("there is no readable /proc/self/cgroup");
  std::string reason = "no cgroup of ours has a cpu.stat";
  for (const fs::path& folder : folders) {
    const auto stat = read_kernel_file(folder / "cpu.stat");
    if (!stat) continue;
    const auto seconds = parse_throttled_s(*stat);
    if (seconds) return *seconds;
    reason = seconds.error().message;
  }
  return Reading::absent(reason);
}

// The pressure of our own cgroup: in a container the machine's includes all other containers. The machine's
// is used if no group has it.
Reading pressure(const fs::path& root, const std::vector<fs::path>& groups, const std::string& resource) {
  for (const fs::path& folder : groups) {
    const auto text = read_kernel_file(folder / (resource + ".pressure"));
    if (const auto seconds = text ? parse_pressure_some_s(*text) : Result<double>(Error{})) return *seconds;
  }
  return reading(parsed(root, "proc/pressure/" + resource, parse_pressure_some_s));
}

// What a cumulative counter grew by, over `of`.
Reading share(const Reading& before, const Reading& after, double of) {
  if (!before) return before;
  if (!after) return after;
  if (*after < *before) return Reading::absent("the counter went backwards");
  return (*after - *before) / of;
}

Reading largest(const Reading& a, const Reading& b) {
  if (!a) return b;
  return b ? Reading(std::max(*a, *b)) : a;
}

void judge_processors(const HostSnapshot& before, const HostSnapshot& after, double own_cpu_s,
                      HostChange& seen) {
  if (seen.wall_s < kLeastWall) {
    seen.steal = seen.others =
        Reading::absent(fmt::format("{:.2f} s are too short to judge by", std::max(0.0, seen.wall_s)));
    return;
  }
  const double capacity = seen.wall_s * static_cast<double>(after.cpus);
  if (before.cpus != after.cpus) {
    seen.steal = seen.others = Reading::absent("a processor came or went meanwhile");
    return;
  }
  if (before.busy_s && after.busy_s && own_cpu_s > kTellingUse &&
      *after.busy_s - *before.busy_s < own_cpu_s / 4) {
    seen.steal = seen.others = Reading::absent(
        fmt::format("/proc/stat does not count here: we used {:.2f} s of the processors, it says {:.2f} s",
                    own_cpu_s, std::max(0.0, *after.busy_s - *before.busy_s)));
    return;
  }
  seen.steal = share(before.steal_s, after.steal_s, capacity);
  seen.others = share(before.busy_s, after.busy_s, capacity);
  if (seen.others) seen.others = std::max(0.0, *seen.others - own_cpu_s / capacity);
}

}  // namespace

HostSnapshot HostSampler::take() const {
  const fs::path& root = options_.root;
  HostSnapshot snapshot;
  snapshot.ns = (options_.clock != nullptr ? *options_.clock : monotonic_clock()).now_ns();
  snapshot.uptime_s = reading(parsed(root, "proc/uptime", parse_uptime_s));
  take_stat(options_, snapshot);
  snapshot.throttled_s = throttled(root);
  const std::vector<fs::path> groups = cgroup_folders(root, "");
  snapshot.cpu_pressure_s = pressure(root, groups, "cpu");
  snapshot.memory_pressure_s = pressure(root, groups, "memory");
  snapshot.io_pressure_s = pressure(root, groups, "io");
  snapshot.cgroup_memory = sample_cgroup_memory(root);
  snapshot.load = reading(parsed(root, "proc/loadavg", parse_load));
  snapshot.clock_ghz = options_.probe_clock ? clock_probe() : Reading::absent("not asked for");
  return snapshot;
}

HostChange change(const HostSnapshot& before, const HostSnapshot& after, double own_cpu_s) {
  HostChange seen;
  seen.wall_s = static_cast<double>(after.ns - before.ns) / 1e9;
  judge_processors(before, after, own_cpu_s, seen);
  const double wall = std::max(seen.wall_s, 1e-9);
  // The kernel adds up what every processor was held back for.
  seen.throttled = share(before.throttled_s, after.throttled_s,
                         wall * static_cast<double>(std::max<size_t>(after.cpus, 1)));
  seen.cpu_pressure = share(before.cpu_pressure_s, after.cpu_pressure_s, wall);
  seen.memory_pressure = share(before.memory_pressure_s, after.memory_pressure_s, wall);
  seen.io_pressure = share(before.io_pressure_s, after.io_pressure_s, wall);
  seen.run_queue = largest(before.run_queue, after.run_queue);
  seen.load = after.load;
  seen.cgroup_peak_bytes = after.cgroup_memory.peak_bytes;
  seen.cgroup_limit_bytes = after.cgroup_memory.limit_bytes;
  if (!before.clock_ghz || !after.clock_ghz) {
    seen.clock_change = before.clock_ghz ? after.clock_ghz : before.clock_ghz;
  } else {
    const auto [slow, fast] = std::minmax({*before.clock_ghz, *after.clock_ghz});
    seen.clock_change = fast / slow - 1;
  }
  seen.slept_s = share(before.uptime_s, after.uptime_s, 1);
  if (seen.slept_s) seen.slept_s = std::max(0.0, *seen.slept_s - seen.wall_s);
  return seen;
}

}  // namespace bakeoff::sample
