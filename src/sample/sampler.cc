#include "sample/sampler.h"

#include <fmt/format.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "sample/sensor_file.h"

namespace bakeoff::sample {

void Series::add(const Reading& reading, int64_t ns) {
  absent = reading.reason();
  if (!reading) return;
  const double value = *reading;
  if (count == 0) {
    low = high = first = value;
    first_ns = ns;
  }
  ++count;
  sum += value;
  low = std::min(low, value);
  high = std::max(high, value);
  last = value;
  last_ns = ns;
}

namespace {

using Nanoseconds = std::chrono::nanoseconds;
using Steady = std::chrono::steady_clock;

// Wakes one thread, which holds no lock meanwhile: from a condition variable the lock comes back as one that
// others wait for, and giving it up is a system call of its own.
class Bell {
 public:
  Bell() { ::sem_init(&rung_, 0, 0); }
  ~Bell() { ::sem_destroy(&rung_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring() { ::sem_post(&rung_); }
  // Both may also return early, for nothing.
  void wait() { ::sem_wait(&rung_); }
  // Whether it was rung before `last`.
  bool wait_until(Steady::time_point last) {
    const auto ns = std::chrono::duration_cast<Nanoseconds>(last.time_since_epoch()).count();
    const timespec time = {.tv_sec = ns / kSecond, .tv_nsec = ns % kSecond};
    return ::sem_clockwait(&rung_, CLOCK_MONOTONIC, &time) == 0 || errno == EINTR;
  }

 private:
  sem_t rung_;
};

struct Source {
  Sensor sensor;
  std::vector<Series> series;     // parallel to sensor.names
  std::vector<Reading> readings;  // of the look under way
  std::string dead = {};          // why it was given up
  int64_t looked_ns = 0;          // 0: never
};

}  // namespace

// Shared between the sampler and its thread, and left to a thread that hangs.
struct Sampler::State {
  SamplerOptions options;
  std::mutex mutex;
  Bell wake;                                     // the thread: begin, end or stop
  std::condition_variable idle;                  // the owner: no look is under way
  std::vector<std::unique_ptr<Source>> sources;  // a thread that hangs keeps its own
  std::vector<size_t> wanted;
  bool active = false, stop = false;
  uint64_t round = 0;            // counts begin() and end()
  uint64_t thread = 0;           // only the thread of this number goes on
  std::optional<size_t> inside;  // the source that is being looked at
  Steady::time_point since = {};

  const Clock& clock() const { return options.clock != nullptr ? *options.clock : monotonic_clock(); }
  bool mine(uint64_t number) const { return !stop && thread == number; }

  // Looks at one source without the lock; false where what it said is of no use any more.
  bool look(size_t i, uint64_t number, std::unique_lock<std::mutex>& lock) {
    const uint64_t started = round;
    inside = i;
    since = Steady::now();
    Source& source = *sources[i];
    lock.unlock();
    source.sensor.read(source.readings);
    const int64_t ns = clock().now_ns();
    lock.lock();
    if (thread != number) return false;  // given up meanwhile
    inside.reset();
    idle.notify_all();
    if (started != round) return false;
    source.looked_ns = ns;
    for (size_t k = 0; k < source.readings.size(); ++k) source.series[k].add(source.readings[k], ns);
    return true;
  }

  void look_at_all(uint64_t number, std::unique_lock<std::mutex>& lock) {
    // `wanted` does not change while `round` stays the same. A sample that began before that returns here.
    for (size_t at = 0; at < wanted.size(); ++at) {
      const size_t i = wanted[at];
      const Source& source = *sources[i];
      if (!source.dead.empty()) continue;
      const int64_t least = source.sensor.least_ns;
      if (least > 0 && source.looked_ns != 0 && clock().now_ns() - source.looked_ns < least) continue;
      if (!look(i, number, lock)) return;
    }
  }

  // Returns at `next`, or where this round or the thread's work is over.
  void sleep_until(Steady::time_point next, uint64_t number, std::unique_lock<std::mutex>& lock) {
    const uint64_t started = round;
    for (bool rung = true; rung && mine(number) && started == round;) {
      lock.unlock();
      rung = wake.wait_until(next);
      lock.lock();
    }
  }

  void run(uint64_t number) {
    std::unique_lock lock(mutex);
    while (mine(number)) {
      if (!active) {
        lock.unlock();
        wake.wait();
        lock.lock();
        continue;
      }
      const uint64_t started = round;
      auto next = Steady::now();
      while (mine(number) && started == round) {
        look_at_all(number, lock);
        next = std::max(next + Nanoseconds(options.period_ns), Steady::now());
        if (started == round) sleep_until(next, number, lock);
      }
    }
  }

  // Waits until no look is under way, at most as long as patience lasts. False: it hangs.
  bool settled(std::unique_lock<std::mutex>& lock) {
    if (!inside) return true;
    const auto last = since + Nanoseconds(options.patience_ns);
    return idle.wait_until(lock, last, [&] { return !inside; });
  }
};

struct Sampler::Thread {
  std::shared_ptr<State> state = std::make_shared<State>();
  std::thread thread;

  void start() {
    thread = std::thread([shared = state, number = state->thread] { shared->run(number); });
  }

  // Leaves a thread that hangs to itself, and goes on without the sensor that holds it.
  void give_up_if_hanging(std::unique_lock<std::mutex>& lock) {
    if (state->settled(lock)) return;
    Source& source = *state->sources[*state->inside];
    source.dead = fmt::format("its sensor did not answer within {:g} s",
                              static_cast<double>(state->options.patience_ns) / 1e9);
    state->inside.reset();
    ++state->thread;
    thread.detach();
    start();
  }

  ~Thread() {
    std::unique_lock lock(state->mutex);
    state->stop = true;
    state->wake.ring();
    const bool joinable = state->settled(lock);
    lock.unlock();
    if (joinable)
      thread.join();
    else
      thread.detach();
  }
};

Sampler::Sampler(SamplerOptions options) : thread_(std::make_unique<Thread>()) {
  thread_->state->options = options;
  thread_->start();
}
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;

size_t Sampler::add(Sensor sensor) {
  State& state = *thread_->state;
  const size_t numbers = sensor.names.size();
  const std::lock_guard lock(state.mutex);
  state.sources.push_back(std::make_unique<Source>(Source{.sensor = std::move(sensor),
                                                          .series = std::vector<Series>(numbers),
                                                          .readings = std::vector<Reading>(numbers)}));
  return state.sources.size() - 1;
}

void Sampler::begin(std::vector<size_t> wanted) {
  State& state = *thread_->state;
  std::unique_lock lock(state.mutex);
  thread_->give_up_if_hanging(lock);
  state.wanted = std::move(wanted);
  for (const size_t i : state.wanted)
    std::fill(state.sources[i]->series.begin(), state.sources[i]->series.end(), Series{});
  state.active = true;
  ++state.round;
  state.wake.ring();
}

std::map<std::string, Series> Sampler::end() {
  State& state = *thread_->state;
  std::unique_lock lock(state.mutex);
  state.active = false;
  ++state.round;
  state.wake.ring();
  thread_->give_up_if_hanging(lock);
  std::map<std::string, Series> all;
  for (const size_t i : state.wanted) {
    const Source& source = *state.sources[i];
    for (size_t k = 0; k < source.series.size(); ++k) {
      Series& series = all[source.sensor.names[k]] = source.series[k];
      if (!source.dead.empty())
        series.absent = source.dead;
      else if (series.count == 0 && series.absent.empty())
        series.absent = source.readings[k].reason();  // of the last look, which came before begin()
    }
  }
  return all;
}

namespace {

// The number that word `index` (from 0) of a line begins with.
Reading word(const Result<std::string_view>& line, size_t index, const char* file) {
  if (!line) return Reading::absent(line.error().message);
  std::string_view rest = *line;
  for (size_t i = 0; i < index; ++i) {
    const size_t space = rest.find(' ');
    rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
  }
  int64_t value = 0;
  const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (code != std::errc() || value < 0)
    return Reading::absent(fmt::format("{} is not as expected: '{}'", file, line->substr(0, 40)));
  return static_cast<double>(value);
}

}  // namespace

Sensor rss_sensor(const std::vector<int>& pids, const std::string& root) {
  std::vector<std::shared_ptr<SensorFile>> files;
  for (const int pid : pids)
    files.push_back(
        std::make_shared<SensorFile>(std::filesystem::path(root) / "proc" / std::to_string(pid) / "statm"));
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  return {.names = {"rss_bytes"}, .read = [files, page](std::span<Reading> out) {
            double bytes = 0;
            for (const auto& file : files) {
              const Reading pages = word(file->read(), 1, "statm");
              if (!pages) return static_cast<void>(out[0] = pages);
              bytes += *pages * page;
            }
            out[0] = bytes;
          }};
}

Sensor run_queue_sensor(const std::string& root) {
  const auto file = std::make_shared<SensorFile>(std::filesystem::path(root) / "proc/loadavg");
  constexpr int64_t kPace = 50'000'000;  // the queue is a matter of milliseconds: a sample of it will do
  return {.names = {"run_queue"},
          .read =
              [file](std::span<Reading> out) {
                const Reading running = word(file->read(), 3, "loadavg");  // "running/all"
                out[0] = running ? Reading(std::max(0.0, *running - 1)) : running;
              },
          .least_ns = kPace};
}

}  // namespace bakeoff::sample
