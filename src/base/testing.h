#pragma once

// For tests: a folder of their own, a clock, waiting for what comes true soon, and how much is tested.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "base/temporary_folder.h"

namespace bakeoff::testing {

// Removed with the object.
class TestFolder {
 public:
  const fs::path& path() const { return folder_.path(); }
  operator const fs::path&() const { return path(); }
  fs::path operator/(const fs::path& name) const { return path() / name; }
  std::string string() const { return path().string(); }

 private:
  TemporaryFolder folder_ = TemporaryFolder::make("test").value();
};

// A clock that shows what a test sets, in nanoseconds.
class SetClock : public Clock {
 public:
  int64_t now_ns() const override { return ns; }
  int64_t ns = 0;
};

inline double now_s() { return static_cast<double>(monotonic_clock().now_ns()) / 1e9; }
// Processor time of this program, which does not grow with what else runs.
inline double cpu_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Only a net against hanging: a test waits for things that come at once, or never.
inline constexpr double kNet = 120;  // seconds

// Whether what others see in part is tested, too (`make full`).
inline bool full_tier() {
  const char* const full = std::getenv("BAKEOFF_FULL_TESTS");
  return full != nullptr && *full != '\0';
}

// How many random cases are tried: of `all` a quarter every day.
inline uint64_t random_cases(uint64_t all) { return full_tier() ? all : (all + 3) / 4; }

// Whether `condition` comes true.
inline bool soon(const std::function<bool()>& condition) {
  for (const double deadline = now_s() + kNet; now_s() < deadline; ::usleep(2000)) {
    if (condition()) return true;
  }
  return condition();
}

}  // namespace bakeoff::testing
