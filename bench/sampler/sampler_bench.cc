// What the sampling thread costs at its fastest pace: its own processor time, and by how much a step that has
// every processor gets longer while it runs, in pairs of blocks with and without it. What a thread costs that
// only wakes up at that pace, and reads nothing, is told beside it: no sampler takes less.

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "sample/clock_probe.h"
#include "sample/sampler.h"
#include "sample/temperature.h"
#include "stats/trimmed.h"

namespace bakeoff {
namespace {

constexpr int64_t kPeriod = 10'000'000;  // ns
constexpr double kCoreBar = 0.5;         // percent of a core
constexpr double kStepBar = 0.3;         // percent of a step

double process_cpu_s() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

struct Watched {
  sample::Sampler sampler{{.period_ns = kPeriod}};
  std::vector<size_t> wanted = {sampler.add(sample::rss_sensor(::getpid())),
                                sampler.add(sample::run_queue_sensor()),
                                sampler.add(sample::temperature_sensor())};
};

// Percent of a core that a thread takes which sleeps and wakes up, and does nothing else.
double waking_up(double seconds) {
  const double cpu = process_cpu_s();
  const int64_t begin = monotonic_clock().now_ns();
  std::thread([=] {
    auto next = std::chrono::steady_clock::now();
    while (seconds_since(begin) < seconds)
      std::this_thread::sleep_until(next += std::chrono::nanoseconds(kPeriod));
  }).join();
  return 100 * (process_cpu_s() - cpu) / seconds_since(begin);
}

// Percent of a core while everything else of this process sleeps.
double own_cost(double seconds) {
  Watched watched;
  const double cpu = process_cpu_s();
  const int64_t begin = monotonic_clock().now_ns();
  watched.sampler.begin(watched.wanted);
  ::usleep(static_cast<useconds_t>(seconds * 1e6));
  const auto seen = watched.sampler.end();
  const double share = 100 * (process_cpu_s() - cpu) / seconds_since(begin);
  fmt::print("{} looks in {:.1f} s\n", seen.at("rss_bytes").count, seconds_since(begin));
  return share;
}

// Seconds of a step of fixed work on every processor at once.
double step(size_t threads, int64_t iterations) {
  const int64_t begin = monotonic_clock().now_ns();
  std::vector<std::thread> all;
  for (size_t i = 0; i < threads; ++i) all.emplace_back([=] { sample::dependent_chain(iterations); });
  for (std::thread& thread : all) thread.join();
  return seconds_since(begin);
}

// Percent by which a step gets longer: trimmed mean of the log ratios of pairs, in random order by turns.
double effect(int pairs) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  const auto threads = static_cast<size_t>(std::max(CPU_COUNT(&set), 1));
  int64_t iterations = 1'000'000;
  while (step(threads, iterations) < 0.15) iterations *= 2;
  Watched watched;
  std::vector<double> ratios;
  for (int pair = 0; pair < pairs; ++pair) {
    double seconds[2] = {};  // without, with
    for (const int turn : {0, 1}) {
      const int with = (turn + pair) % 2;
      if (with == 1) watched.sampler.begin(watched.wanted);
      seconds[with] = step(threads, iterations);
      if (with == 1) watched.sampler.end();
    }
    ratios.push_back(std::log(seconds[1] / seconds[0]));
  }
  std::sort(ratios.begin(), ratios.end());
  const size_t cut = ratios.size() / 5;
  const std::vector<double> middle(ratios.begin() + static_cast<long>(cut),
                                   ratios.end() - static_cast<long>(cut));
  const double half =
      2.58 * std::sqrt(stats::variance(middle) / static_cast<double>(std::max<size_t>(middle.size(), 1)));
  fmt::print("{} pairs of steps on {} processors: {:+.3f}% (half width {:.3f}%)\n", pairs, threads,
             100 * stats::mean(middle), 100 * half);
  return 100 * stats::mean(middle);
}

int run(bool quick) {
  fmt::print("a thread that only wakes up every 10 ms: {:.3f}% of a core\n", waking_up(quick ? 1 : 10));
  const double share = own_cost(quick ? 1 : 10);
  fmt::print("sampling thread at 10 ms: {:.3f}% of a core (bar: below {:g}%) {}\n", share, kCoreBar,
             share < kCoreBar ? "ok" : "MISSED");
  const double longer = effect(quick ? 4 : 80);
  fmt::print("a step beside it: {:+.3f}% (bar: below {:g}%) {}\n", longer, kStepBar,
             longer < kStepBar ? "ok" : "MISSED");
  return share < kCoreBar && longer < kStepBar ? 0 : 1;
}

}  // namespace
}  // namespace bakeoff

int main(int argc, char** argv) { return bakeoff::run(argc > 1 && std::strcmp(argv[1], "--quick") == 0); }
