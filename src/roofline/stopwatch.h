#pragma once

// Measures how fast a loop runs on one core, or on several at the same time. Every thread is pinned to its
// own CPU; all start a window together, and its rate is the work of all divided by the time from the first
// start to the last end. The best of many short windows counts: a limit is what the machine reaches without
// disturbance.
//
//   const Stopwatch watch{.windows = 20, .window_s = 0.01};
//   double flops = watch.best(cpus, kernel.operations(), [&](size_t, int64_t times) { kernel.run(times); });

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace bakeoff::roofline {

using Stop = std::function<bool()>;  // returns true to end the measurement

struct Stopwatch {
  int windows = 20;
  double window_s = 0.01;
  Stop stop = {};

  // Units per second: `units` for each of `times`, on each CPU. 0 if it was stopped, or if no thread can be
  // pinned. Calls `work(thread, times)`. `prepare(thread)`, if any, runs once on the thread's CPU before
  // all windows, so memory that it touches first lies near that CPU.
  double best(const std::vector<int>& cpus, double units, const std::function<void(size_t, int64_t)>& work,
              const std::function<void(size_t)>& prepare = {}) const;
};

// Runs `work` on a thread pinned to `cpu`. False if that is impossible.
bool on_cpu(int cpu, const std::function<void()>& work);

// Frequency in Hz of the CPU that this runs on, measured with a chain of dependent additions for about
// `seconds`.
double chain_hz(double seconds);

// Seconds of CLOCK_MONOTONIC.
double now_s();

}  // namespace bakeoff::roofline
