#include "sample/process_sampler.h"

#include <fmt/format.h>

#include <ctime>

#include "base/files.h"
#include "sample/counters.h"

namespace bakeoff::sample {
namespace {

// Adds a thread's value; the first reason for its absence stays.
template <typename T, typename Parse, typename Take>
void add(const fs::path& file, Parse parse, Take take, Reading& sum) {
  const auto text = read_file(file);
  if (!text) {
    if (!sum) sum = Reading::absent(fmt::format("there is no readable {}", file.filename().string()));
    return;  // a thread may end at any time
  }
  const Result<T> value = parse(*text);
  if (!value)
    sum = Reading::absent(value.error().message);
  else
    sum = (sum ? *sum : 0) + take(*value);
}

}  // namespace

ProcessSnapshot sample_process(pid_t pid, const fs::path& root) {
  ProcessSnapshot snapshot;
  const std::string gone = fmt::format("there is no process {}", pid);
  snapshot.involuntary_switches = snapshot.voluntary_switches = snapshot.wait_s = Reading::absent(gone);
  const fs::path folder = root / "proc" / std::to_string(pid);
  const auto stat = read_file(folder / "stat");
  const Result<PageFaults> faults =
      stat ? parse_page_faults(*stat) : Result<PageFaults>(Error{.message = gone});
  snapshot.minor_faults =
      faults ? Reading(static_cast<double>(faults->minor)) : Reading::absent(faults.error().message);
  snapshot.major_faults =
      faults ? Reading(static_cast<double>(faults->major)) : Reading::absent(faults.error().message);
  std::error_code code;
  for (const auto& task : fs::directory_iterator(folder / "task", code)) {
    add<int64_t>(
        task.path() / "status", parse_involuntary_switches,
        [](int64_t switches) { return static_cast<double>(switches); }, snapshot.involuntary_switches);
    add<int64_t>(
        task.path() / "status", parse_voluntary_switches,
        [](int64_t switches) { return static_cast<double>(switches); }, snapshot.voluntary_switches);
    add<SchedStat>(
        task.path() / "schedstat", parse_schedstat,
        [](const SchedStat& s) { return static_cast<double>(s.wait_ns) / 1e9; }, snapshot.wait_s);
  }
  return snapshot;
}

Result<int64_t> cpu_time_ns(pid_t pid) {
  clockid_t clock = 0;
  timespec time{};
  if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return Error{.message = fmt::format("process {} has no processor time that can be read", pid)};
  }
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace bakeoff::sample
