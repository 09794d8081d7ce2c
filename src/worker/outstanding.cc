#include "worker/outstanding.h"

#include <time.h>

#include <algorithm>

#include "base/clock.h"
#include "sample/process_sampler.h"

namespace bakeoff {
namespace {

constexpr int64_t kWindow = 4'000'000;  // ns; long enough that another process does not hide a worker
constexpr int64_t kPatience = 5;        // in limits: other processes may use the processors meanwhile

void sleep_ns(int64_t ns) {
  const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  ::nanosleep(&time, nullptr);
}

}  // namespace

int64_t busy_after(pid_t pid, int64_t limit_ns) {
  const int64_t begin = monotonic_clock().now_ns();
  int64_t last = begin, busy = 0;
  auto used = sample::cpu_time_ns(pid);
  while (used && busy < limit_ns && last - begin < kPatience * limit_ns) {
    sleep_ns(kWindow);
    const auto now_used = sample::cpu_time_ns(pid);
    const int64_t now = monotonic_clock().now_ns();
    if (!now_used) break;
    const int64_t more = std::min(*now_used - *used, now - last);
    if (more < (now - last) / 4 && !sample::wants_processor(pid)) break;
    busy += more;
    used = now_used;
    last = now;
  }
  return busy;
}

}  // namespace bakeoff
