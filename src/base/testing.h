#pragma once

// For tests: a folder of their own, a clock, and waiting for what comes true soon.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/files.h"

namespace bakeoff::testing {

// Removed with the object.
class TestFolder {
 public:
  TestFolder() {
    std::string name = ::testing::TempDir() + "bakeoff-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TestFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const fs::path& path() const { return path_; }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

// A clock that shows what a test sets, in nanoseconds.
class SetClock : public Clock {
 public:
  int64_t now_ns() const override { return ns; }
  int64_t ns = 0;
};

inline double now_s() { return static_cast<double>(monotonic_clock().now_ns()) / 1e9; }

// Whether `condition` comes true within `seconds`.
inline bool soon(const std::function<bool()>& condition, double seconds = 5) {
  for (const double deadline = now_s() + seconds; now_s() < deadline; ::usleep(5000)) {
    if (condition()) return true;
  }
  return condition();
}

}  // namespace bakeoff::testing
