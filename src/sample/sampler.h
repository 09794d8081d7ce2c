#pragma once

// A thread that reads cheap sensors at a steady interval while other work runs, and sleeps otherwise.
//
//   Sampler sampler({.period_ns = 100'000'000});
//   const std::vector<size_t> wanted = {sampler.add(rss_sensor(pid)), sampler.add(run_queue_sensor())};
//   sampler.begin(wanted);
//   ... a burst ...
//   for (const auto& [name, series] : sampler.end()) ...   // "rss_bytes": mean, highest value, ...
//
// A sensor that does not answer within `patience_ns` is abandoned; a new thread samples the rest. Neither
// begin() nor end() waits longer than that. Samples of the other sensors between the hang and the next
// end() are lost. A sensor must own what it reads: it may outlive the sampler.
//
// bench/sampler measures the cost. Time stamps come from `clock`, the interval from the system.

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
  std::vector<std::string> names = {};  // names of the numbers that one sample gives
  // Fills one reading for each name.
  std::function<void(std::span<Reading>)> read = {};
  int64_t least_ns = 0;  // shortest interval between two samples
};

// One number from begin() to end(). Only readings that are not absent count.
struct Series {
  size_t count = 0;
  double sum = 0, low = 0, high = 0;
  double first = 0, last = 0;
  int64_t first_ns = 0, last_ns = 0;
  std::string absent = {};  // why the last sample had no value, even if earlier ones had; empty: it had one
  double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
  void add(const Reading& reading, int64_t ns);
  bool operator==(const Series&) const = default;
};

struct SamplerOptions {
  int64_t period_ns = 100'000'000;
  int64_t patience_ns = 500'000'000;  // a sensor that does not answer within this time is abandoned
  const Clock* clock = nullptr;       // null: CLOCK_MONOTONIC
};

class Sampler {
 public:
  explicit Sampler(SamplerOptions options = {});
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;

  // Returns the sensor's number. May be called from any thread, but not between begin() and end().
  size_t add(Sensor sensor);
  // Takes the first sample of `wanted` at once, then one in every period.
  void begin(std::vector<size_t> wanted);
  // The numbers of the wanted sensors, by name. Those of an abandoned sensor stay absent.
  std::map<std::string, Series> end();

 private:
  struct State;
  struct Thread;
  std::unique_ptr<Thread> thread_;
};

// Sensors that need nothing but files. A number that cannot be read is absent with its reason.
// "rss_bytes" of processes, added up.
Sensor rss_sensor(const std::vector<int>& pids, const std::string& root = "/");
inline Sensor rss_sensor(int pid, const std::string& root = "/") {
  return rss_sensor(std::vector{pid}, root);
}
// "run_queue": runnable tasks, without the sampler's own.
Sensor run_queue_sensor(const std::string& root = "/");

}  // namespace bakeoff::sample
