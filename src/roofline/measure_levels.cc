// The bandwidth of each level of memory, by loops over arrays that fit into that level and not into the one
// before. Half of a private cache is used, and a quarter of one that other tenants of the processor may fill.
// With several CPUs each has its own part, so a shared cache may be too small to be told from the level
// before; then there is no number, and the reason. Arrays lie in huge pages, as address translation is not
// what is measured, and are first touched on the CPU that will use them. The best of several short windows
// counts: a limit is what the machine can do, and neighbours only take from it.

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include "roofline/caches.h"
#include "roofline/kernel_sets.h"
#include "roofline/measure.h"

namespace bakeoff::roofline {
namespace {

constexpr int64_t kGrain = 512;  // doubles; arrays are multiples of that
constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kHugePage = 2 * kMiB;

// Memory of one thread, in huge pages where the system gives them: address translation is not what is
// measured.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept : begin_(other.begin_), bytes_(other.bytes_) { other.begin_ = nullptr; }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (begin_ != nullptr) ::munmap(begin_, bytes_);
  }

  // Called on the CPU that will use it.
  bool take(int64_t bytes) {
    bytes_ = static_cast<size_t>(bytes + kHugePage);
    void* got = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return false;
    begin_ = got;
    ::madvise(begin_, bytes_, MADV_HUGEPAGE);
    std::memset(begin_, 0, bytes_);
    return true;
  }
  double* data() const {
    const auto at = reinterpret_cast<uintptr_t>(begin_);
    return reinterpret_cast<double*>((at + kHugePage - 1) / kHugePage * kHugePage);
  }

 private:
  void* begin_ = nullptr;
  size_t bytes_ = 0;
};

// How the loops go over a level: bytes on each core.
struct Spot {
  std::string name;
  int64_t capacity = 0;
  int64_t caches = 0;
  int64_t one = 0, all = 0;
  std::string why_not = {};
};

// The most CPUs of `cpus` that share one such cache, and how many caches they have together.
std::pair<int64_t, int64_t> sharing(const std::filesystem::path& root, const std::vector<int>& cpus,
                                    const std::string& name) {
  int64_t most = 1;
  std::set<std::vector<int>> groups;
  for (const int cpu : cpus) {
    for (const Cache& cache : read_caches(root, cpu)) {
      if (cache.name != name || cache.shared.empty()) continue;
      groups.insert(cache.shared);
      most = std::max<int64_t>(most, std::count_if(cpus.begin(), cpus.end(), [&](int other) {
                                 return std::find(cache.shared.begin(), cache.shared.end(), other) !=
                                        cache.shared.end();
                               }));
    }
  }
  return {most, static_cast<int64_t>(groups.size())};
}

// Half of a private cache. A quarter of the last one: other tenants of the processor may use the rest.
Spot cache_spot(const MeasureOptions& options, const Cache& cache, int64_t inner) {
  const auto [sharers, caches] = sharing(options.root, options.cpus, cache.name);
  const bool first = inner == 0, shared = cache.shared.size() > 2 || cache.name >= "L3";
  Spot spot{.name = cache.name, .capacity = cache.bytes, .caches = caches};
  spot.one = cache.bytes / (shared ? 4 : 2);
  spot.all = std::max(spot.one / sharers, first ? 0 : 2 * inner);
  spot.one = std::max(spot.one, spot.all);
  if (!first && spot.all * sharers > cache.bytes * 3 / 4)
    spot.why_not = fmt::format("{} KiB for {} CPUs are too small to be distinguished from the level before",
                               cache.bytes >> 10, sharers);
  return spot;
}

Spot memory_spot(const MeasureOptions& options, const Spot* last) {
  const int64_t cached = last == nullptr ? 64 * kMiB : last->capacity * std::max<int64_t>(last->caches, 1);
  const int64_t allowed = options.memory_bytes > 0 ? options.memory_bytes : 1024 * kMiB;
  const int64_t total = std::min(std::clamp<int64_t>(4 * cached, 256 * kMiB, 1024 * kMiB), allowed);
  Spot spot{.name = "DRAM", .one = total, .all = total / static_cast<int64_t>(options.cpus.size())};
  if (total < 2 * cached)
    spot.why_not =
        fmt::format("only {} MiB may be touched, the caches hold {} MiB", total / kMiB, cached / kMiB);
  return spot;
}

std::vector<Spot> spots(const MeasureOptions& options, Limits& limits) {
  std::vector<Spot> all;
  for (const Cache& cache : read_caches(options.root, options.cpus[0]))
    all.push_back(cache_spot(options, cache, all.empty() ? 0 : all.back().capacity));
  if (all.empty())
    limits.absent.push_back({"cache bandwidth", "neither /sys nor sysconf reports the sizes of the caches"});
  all.push_back(memory_spot(options, all.empty() ? nullptr : &all.back()));
  return all;
}

using Loop = std::function<void(double*, int64_t, int64_t)>;  // block, bytes, times

struct Traffic {
  Rate Level::*to;
  int arrays;
  bool memory_only;
  Loop loop;
};

// Doubles of each of `arrays` arrays within `bytes`.
int64_t length(int64_t bytes, int arrays) {
  return std::max(bytes / 8 / arrays / kGrain, int64_t{1}) * kGrain;
}

std::vector<Traffic> traffics(const StreamKernels& k) {
  return {{&Level::read, 1, false, [&k](double* a, int64_t n, int64_t t) { k.read(a, n, t); }},
          {&Level::write, 1, false, [&k](double* a, int64_t n, int64_t t) { k.write(a, n, t); }},
          {&Level::copy, 2, false, [&k](double* a, int64_t n, int64_t t) { k.copy(a, a + n, n, t); }},
          {&Level::triad, 3, false,
           [&k](double* a, int64_t n, int64_t t) { k.triad(a, a + n, a + 2 * n, n, t); }},
          {&Level::triad_nt, 3, true,
           [&k](double* a, int64_t n, int64_t t) { k.triad_nt(a, a + n, a + 2 * n, n, t); }}};
}

double rate(const MeasureOptions& options, const std::vector<int>& cpus, int64_t bytes,
            const Traffic& traffic) {
  const Stopwatch watch{.windows = 12, .window_s = 0.008 * options.effort, .stop = options.stop};
  const int64_t n = length(bytes, traffic.arrays);
  std::vector<Block> blocks(cpus.size());
  std::atomic<bool> taken = true;
  const double found = watch.best(
      cpus, static_cast<double>(8 * n * traffic.arrays),
      [&](size_t thread, int64_t times) {
        if (taken) traffic.loop(blocks[thread].data(), n, times);
      },
      [&](size_t thread) {
        if (!blocks[thread].take(8 * n * traffic.arrays)) taken = false;
      });
  return taken ? found : 0;
}

void measure_level(const MeasureOptions& options, const Spot& spot, Limits& limits) {
  if (!spot.why_not.empty()) {
    limits.absent.push_back({spot.name + " bandwidth", spot.why_not});
    return;
  }
  report_progress(options, "memory bandwidth: " + spot.name);
  Level level{.name = spot.name, .capacity = spot.capacity, .caches = spot.caches};
  level.touched = {static_cast<double>(spot.one), static_cast<double>(spot.all)};
  const bool memory = spot.capacity == 0;
  // Narrow loads and stores sometimes leave the memory controllers a better order than wide ones.
  for (const StreamKernels* kernels : {&best_streams(), kScalar.streams}) {
    if (kernels == kScalar.streams && !memory) continue;
    for (const Traffic& traffic : traffics(*kernels)) {
      if (stopped(options)) return;
      if (traffic.memory_only && !memory) continue;
      Rate& to = level.*traffic.to;
      to.one = std::max(to.one, rate(options, {options.cpus[0]}, spot.one, traffic));
      const bool many = options.cpus.size() > 1;
      to.all = many ? std::max(to.all, rate(options, options.cpus, spot.all, traffic)) : to.one;
    }
  }
  if (memory) {
    const Traffic plain{nullptr, 3, true, [](double* a, int64_t n, int64_t times) {
                          for (int64_t t = 0; t < times; ++t) plain_triad(a, a + n, a + 2 * n, n, 0.5);
                        }};
    limits.plain_triad = rate(options, {options.cpus[0]}, spot.one, plain);
  }
  if (level.best().one > 0)
    limits.levels.push_back(std::move(level));
  else
    limits.absent.push_back({spot.name + " bandwidth", "no memory, or no thread could be pinned"});
}

}  // namespace

void measure_levels(const MeasureOptions& options, Limits& limits) {
  for (const Spot& spot : spots(options, limits)) {
    if (!stopped(options)) measure_level(options, spot, limits);
  }
}

}  // namespace bakeoff::roofline
