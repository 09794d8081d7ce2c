#include "roofline/stopwatch.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "roofline/kernels.h"

namespace bakeoff::roofline {
namespace {

bool pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

// All threads meet before anyone goes on. Spins: a sleeping thread would wake late. Yields: there may be
// fewer CPUs than it seems.
class Meeting {
 public:
  explicit Meeting(size_t members) : members_(members) {}

  void wait() {
    const size_t round = round_.load();
    if (arrived_.fetch_add(1) + 1 == members_) {
      arrived_.store(0);
      round_.store(round + 1);
      return;
    }
    for (int spins = 0; round_.load() == round; ++spins) {
      if (spins > 20'000) sched_yield();
    }
  }

 private:
  const size_t members_;
  std::atomic<size_t> arrived_{0};
  std::atomic<size_t> round_{0};
};

struct Span {
  double begin = 0, end = 0;
};

using Work = std::function<void(size_t, int64_t)>;

// Times that fill about `seconds`.
int64_t calibrate(const Work& work, size_t thread, double seconds) {
  int64_t times = 1;
  while (true) {
    const double begin = now_s();
    work(thread, times);
    const double took = now_s() - begin;
    if (took >= seconds / 4)
      return std::max<int64_t>(1, std::llround(static_cast<double>(times) * seconds / took));
    times *= took > 1e-7 ? std::clamp<int64_t>(std::llround(seconds / 3 / took), 2, 16) : 16;
  }
}

// What the threads of one measurement share.
struct Shared {
  explicit Shared(size_t threads) : meeting(threads), spans(threads) {}
  Meeting meeting;
  std::vector<Span> spans;
  std::atomic<int64_t> times{0};
  std::atomic<bool> stop{false};
  std::atomic<bool> unpinned{false};
  double best = 0;
};

// Of a window that has ended; seconds from the first start to the last end.
double length(const std::vector<Span>& spans) {
  double begin = spans[0].begin, end = spans[0].end;
  for (const Span& s : spans) begin = std::min(begin, s.begin), end = std::max(end, s.end);
  return end - begin;
}

void run_thread(Shared& shared, size_t thread, const Stopwatch& watch, double units, const Work& work) {
  const double threads = static_cast<double>(shared.spans.size());
  if (thread == 0) shared.times = calibrate(work, 0, watch.window_s);
  shared.meeting.wait();
  for (int window = 0; window < watch.windows && !shared.unpinned; ++window) {
    if (thread == 0 && watch.stop && watch.stop()) shared.stop = true;
    shared.meeting.wait();
    if (shared.stop) return;
    const int64_t times = shared.times;
    shared.spans[thread].begin = now_s();
    work(thread, times);
    shared.spans[thread].end = now_s();
    shared.meeting.wait();
    if (thread == 0) {
      shared.best =
          std::max(shared.best, units * static_cast<double>(times) * threads / length(shared.spans));
    }
  }
}

}  // namespace

double now_s() { return static_cast<double>(monotonic_clock().now_ns()) / 1e9; }

double Stopwatch::best(const std::vector<int>& cpus, double units, const Work& work,
                       const std::function<void(size_t)>& prepare) const {
  if (cpus.empty()) return 0;
  Shared shared(cpus.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cpus.size(); ++i) {
    threads.emplace_back([&, i] {
      if (!pin(cpus[i])) shared.unpinned = true;
      if (prepare) prepare(i);
      shared.meeting.wait();
      run_thread(shared, i, *this, units, work);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return shared.stop || shared.unpinned ? 0 : shared.best;
}

bool on_cpu(int cpu, const std::function<void()>& work) {
  bool pinned = false;
  std::thread([&] {
    pinned = pin(cpu);
    if (pinned) work();
  }).join();
  return pinned;
}

double chain_hz(double seconds) {
  int64_t times = 256;
  while (true) {
    const double begin = now_s();
    dependent_additions(times);
    const double took = now_s() - begin;
    if (took >= seconds / 2) return static_cast<double>(times * kChainLength) / took;
    times *= 2;
  }
}

}  // namespace bakeoff::roofline
