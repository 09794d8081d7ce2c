#pragma once

// One thread that reads cheap sensors at a steady pace while somebody else works, and sleeps otherwise.
//
//   Sampler sampler({.period_ns = 100'000'000});
//   const std::vector<size_t> wanted = {sampler.add(rss_sensor(pid)), sampler.add(run_queue_sensor())};
//   sampler.begin(wanted);
//   ... a burst ...
//   for (const auto& [name, series] : sampler.end()) ...   // "rss_bytes": its mean, its highest, ...
//
// A sensor may hang for ever: the thread that is in it is then left behind, a fresh one goes on without that
// sensor, and neither begin() nor end() waits longer than `patience_ns`. What the other sensors would have
// told between the hang and the next end() is lost. A sensor must own what it reads: it may outlive the
// sampler.
//
// Cost: bench/sampler. The time stamps come from `clock`, the pace from the system.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "sample/reading.h"

namespace bakeoff::sample {

struct Sensor {
  std::vector<std::string> names = {};  // of the numbers that one look at it gives
  // Fills as many readings as there are names.
  std::function<void(std::span<Reading>)> read = {};
  int64_t least_ns = 0;  // it is looked at no more often than this
};

// What one number did from begin() to end(). Only readings that were there count.
struct Series {
  size_t count = 0;
  double sum = 0, low = 0, high = 0;
  double first = 0, last = 0;
  int64_t first_ns = 0, last_ns = 0;
  std::string absent = {};  // why the last look gave nothing, also where that came earlier; empty: it did
  double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
  void add(const Reading& reading, int64_t ns);
  bool operator==(const Series&) const = default;
};

struct SamplerOptions {
  int64_t period_ns = 100'000'000;
  int64_t patience_ns = 500'000'000;  // after which a sensor that does not answer is given up
  const Clock* clock = nullptr;       // null: CLOCK_MONOTONIC
};

class Sampler {
 public:
  explicit Sampler(SamplerOptions options = {});
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;

  // Gives the number it goes by from now on. From any thread, but not between begin() and end().
  size_t add(Sensor sensor);
  // The first look at `wanted` comes at once, the next ones a period apart.
  void begin(std::vector<size_t> wanted);
  // Every number of the wanted sensors, by name; those of one that was given up say so for good.
  std::map<std::string, Series> end();

 private:
  struct State;
  struct Thread;
  std::unique_ptr<Thread> thread_;
};

// The sensors that need nothing but files. What they cannot read is absent with its reason.
// "rss_bytes" of a process.
Sensor rss_sensor(int pid, const std::string& root = "/");
// "run_queue": runnable tasks besides the sampler's own.
Sensor run_queue_sensor(const std::string& root = "/");

}  // namespace bakeoff::sample
