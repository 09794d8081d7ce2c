// The peak of a processor is not in any register: clocks change with the load, and vector units lower them.
// So it is measured, by a loop of fused multiply-adds for every instruction set and type that the processor
// has. The best of many short windows counts, since other work can only make a window slower; the clock is
// read right after a burst, before the processor has time to raise it again.
//
// A measured peak can still be too low, and a contender above it would then be called impossible.
// measure_possible_peak() measures again where a type is out of proportion to the others (impossible(),
// limits.h). measure_bounds() is for the rule that no contender exceeds the machine: it takes the larger of
// what was measured and what the core's width allows at its fastest clock.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <thread>

#include "roofline/kernel_sets.h"
#include "roofline/measure.h"

namespace bakeoff::roofline {
namespace {

constexpr double kWindow = 0.008;  // seconds
constexpr double kBurst = 0.001;   // of vector load before each look at the clock
constexpr double kLook = 20e-6;    // far shorter than a processor takes to change its frequency back
constexpr int kLooks = 40;

// The clock while `kernel` runs: median over looks, each right after a burst of it.
double loaded_hz(const FmaKernel& kernel, double ops_per_second) {
  const auto times =
      std::max<int64_t>(1, std::llround(kBurst * ops_per_second / static_cast<double>(kernel.operations())));
  std::vector<double> looks;
  for (int i = 0; i < kLooks; ++i) {
    kernel.run(times);
    looks.push_back(chain_hz(kLook));
  }
  std::nth_element(looks.begin(), looks.begin() + kLooks / 2, looks.end());
  return looks[kLooks / 2];
}

// The same on all CPUs at once: the slowest of them.
double loaded_hz_all(const std::vector<int>& cpus, const FmaKernel& kernel, double ops_per_second) {
  std::vector<double> hz(cpus.size(), 0);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cpus.size(); ++i) {
    threads.emplace_back([&, i] { on_cpu(cpus[i], [&] { hz[i] = loaded_hz(kernel, ops_per_second); }); });
  }
  for (std::thread& thread : threads) thread.join();
  return *std::min_element(hz.begin(), hz.end());
}

void find_units(const KernelSet& set, Peak& peak) {
  const std::string_view isa = set.isa;
  if (isa == "scalar" || isa == "amx" || peak.clock_hz <= 0)
    return;  // no fused instruction; takes many cycles
  const bool plain = peak.dtype == "f32" || peak.dtype == "f64";
  peak.units = plain ? fma_units(this_processor(), isa == "avx512" ? 512 : 256) : 0;
  peak.units_from = "model";
  if (peak.units > 0) return;
  peak.units =
      static_cast<int>(std::lround(peak.ops.one / (2.0 * static_cast<double>(peak.lanes) * peak.clock_hz)));
  peak.units_from = peak.units > 0 ? "inferred" : "";
}

Peak measure_peak(const MeasureOptions& options, const KernelSet& set, const FmaKernel& kernel) {
  const Stopwatch watch{.windows = 25, .window_s = kWindow * options.effort, .stop = options.stop};
  const auto work = [&](size_t, int64_t times) { kernel.run(times); };
  const auto operations = static_cast<double>(kernel.operations());
  Peak peak{.dtype = kernel.dtype, .isa = set.isa, .lanes = kernel.lanes};
  peak.ops.one = watch.best({options.cpus[0]}, operations, work);
  peak.ops.all = options.cpus.size() > 1 ? watch.best(options.cpus, operations, work) : peak.ops.one;
  if (peak.ops.one > 0) on_cpu(options.cpus[0], [&] { peak.clock_hz = loaded_hz(kernel, peak.ops.one); });
  find_units(set, peak);
  return peak;
}

// The better of the peak and of another measurement of it.
void measure_again(const MeasureOptions& options, Peak& peak) {
  for (const KernelSet* set : supported_kernels()) {
    for (const FmaKernel* k = set->fma; k->dtype != nullptr && peak.isa == set->isa; ++k) {
      if (peak.dtype != k->dtype) continue;
      Peak again = measure_peak(options, *set, *k);
      if (again.ops.one > peak.ops.one && again.ops.all > peak.ops.all) peak = std::move(again);
    }
  }
}

// Again where it cannot be true: other work may have taken the processor from what it is held against.
Peak measure_possible_peak(const MeasureOptions& options, const KernelSet& set, const FmaKernel& kernel,
                           std::vector<Peak>& others) {
  constexpr int kTries = 3;
  for (int i = 1;; ++i) {
    Peak peak = measure_peak(options, set, kernel);
    if (i == kTries || peak.ops.one <= 0 || stopped(options) || impossible(peak, others).empty()) return peak;
    for (Peak& plain : others) {
      if (plain.dtype == "f32") measure_again(options, plain);
    }
  }
}

void measure_scalar_clock(const MeasureOptions& options, Limits& limits) {
  const Stopwatch watch{.windows = 10, .window_s = kWindow * options.effort, .stop = options.stop};
  const auto chain = [](size_t, int64_t times) { dependent_additions(times); };
  limits.scalar_hz.one = watch.best({options.cpus[0]}, kChainLength, chain);
  limits.scalar_hz.all =
      watch.best(options.cpus, kChainLength, chain) / static_cast<double>(options.cpus.size());
}

void measure_vector_clock(const MeasureOptions& options, Limits& limits) {
  const Peak* peak = limits.peak("f32");
  for (const KernelSet* set : supported_kernels()) {
    for (const FmaKernel* k = set->fma; peak != nullptr && k->dtype != nullptr; ++k) {
      if (peak->isa != set->isa || peak->dtype != k->dtype || peak->ops.one <= 0) continue;
      limits.vector_hz = {peak->clock_hz, loaded_hz_all(options.cpus, *k, peak->ops.one)};
    }
  }
}

void state_absent(Limits& limits) {
  if (limits.peak("bf16") == nullptr)
    limits.absent.push_back(
        {"bf16 peak", "the processor has neither AVX512_BF16 nor AMX (or the system hides them)"});
  if (limits.peak("int8") == nullptr)
    limits.absent.push_back(
        {"int8 peak", "the processor has neither VNNI nor AMX (or the system hides them)"});
}

// The fastest clock that short looks see, of several: others may hold the processor between two looks, and
// seldom during all.
double fastest_hz(int cpu) {
  constexpr int kManyLooks = 2000;
  double fastest = 0;
  on_cpu(cpu, [&] {
    for (int i = 0; i < kManyLooks; ++i) fastest = std::max(fastest, chain_hz(kLook));
  });
  return fastest;
}

// Operations per second that no core exceeds: its width at that clock.
double nominal(const KernelSet& set, const FmaKernel& kernel, double hz) {
  const int units = fma_units(this_processor(), std::string_view(set.isa) == "avx512" ? 512 : 256);
  return 2.0 * static_cast<double>(kernel.lanes) * (units > 0 ? units : 2) * hz;
}

// Whether a wider loop's operations per second bound those of this one: in f32 they do, as no processor has more than
// twice as many units of half the width.
bool bounded_by_wider(const FmaKernel& kernel) {
  if (std::string_view(kernel.dtype) != "f32") return false;
  for (const KernelSet* set : supported_kernels())
    for (const FmaKernel* k = set->fma; k->dtype != nullptr; ++k)
      if (std::string_view(k->dtype) == "f32" && k->lanes > kernel.lanes) return true;
  return false;
}

}  // namespace

Limits measure_bounds(const MeasureOptions& options) {
  constexpr int kWindows = 150;
  constexpr double kBrief = 0.001;
  Limits limits{.cpus = static_cast<int>(options.cpus.size())};
  const double begin = now_s();
  const auto cpus = static_cast<double>(options.cpus.size());
  const double hz = fastest_hz(options.cpus.front());
  double too_low = 1;  // the peak that was seen in f32, below the nominal one
  const Stopwatch watch{.windows = kWindows, .window_s = kBrief * options.effort, .stop = options.stop};
  for (const char* dtype : {"f32", "bf16"}) {
    for (const KernelSet* set : supported_kernels()) {
      for (const FmaKernel* kernel = set->fma; kernel->dtype != nullptr && !stopped(options); ++kernel) {
        if (std::string_view(kernel->dtype) != dtype || bounded_by_wider(*kernel)) continue;
        Peak peak{.dtype = dtype, .isa = set->isa, .lanes = kernel->lanes, .clock_hz = hz};
        const auto work = [&](size_t, int64_t times) { kernel->run(times); };
        peak.ops.one = watch.best({options.cpus.front()}, static_cast<double>(kernel->operations()), work);
        if (peak.ops.one <= 0) continue;
        if (peak.dtype == "f32") {
          const double width = nominal(*set, *kernel, hz);
          too_low = std::max(1.0, width / peak.ops.one);
          peak.ops.one = std::max(peak.ops.one, width);
        } else {
          peak.ops.one *= too_low;
        }
        peak.ops.all = cpus * peak.ops.one;
        if (!impossible(peak, limits.peaks).empty()) continue;
        limits.peaks.push_back(std::move(peak));
      }
    }
  }
  if (stopped(options)) limits.peaks.clear();
  limits.seconds = now_s() - begin;
  return limits;
}

void measure_peaks(const MeasureOptions& options, Limits& limits) {
  report_progress(options, "clock");
  measure_scalar_clock(options, limits);
  for (const KernelSet* set : supported_kernels()) {
    for (const FmaKernel* kernel = set->fma; kernel->dtype != nullptr && !stopped(options); ++kernel) {
      report_progress(options, fmt::format("arithmetic: {} {}", set->isa, kernel->dtype));
      Peak peak = measure_possible_peak(options, *set, *kernel, limits.peaks);
      const std::string why = peak.ops.one > 0 ? impossible(peak, limits.peaks) : "no thread could be pinned";
      if (why.empty())
        limits.peaks.push_back(std::move(peak));
      else
        limits.absent.push_back({fmt::format("{} peak, {}", kernel->dtype, set->isa), why});
    }
  }
  measure_vector_clock(options, limits);
  state_absent(limits);
}

}  // namespace bakeoff::roofline
