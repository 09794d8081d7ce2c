#include "base/clock.h"

#include <ctime>

namespace bakeoff {
namespace {

class MonotonicClock : public Clock {
 public:
  int64_t now_ns() const override {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  }
};

}  // namespace

const Clock& monotonic_clock() {
  static const MonotonicClock clock;
  return clock;
}

double seconds_since(int64_t begin_ns) {
  return static_cast<double>(monotonic_clock().now_ns() - begin_ns) / 1e9;
}

std::string utc_now() { return utc_text(std::time(nullptr)); }

std::string utc_text(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace bakeoff
