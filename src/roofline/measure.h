#pragma once

// Measures the limits of the CPUs that this process may run on, in well under a minute.
//
//   Limits limits = measure({.cpus = allowed_cpus(),
//                            .gemms = {{"OpenBLAS", "/usr/lib/.../libopenblas.so.0"}}});
//
// Foreign libraries (BLAS, CUDA) are loaded in a child process each, which may crash or hang without harm.
// The caller must have no other threads at that time.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "roofline/limits.h"
#include "roofline/stopwatch.h"

namespace bakeoff::roofline {

struct GemmLibrary {
  std::string name = {};  // "OpenBLAS"
  std::filesystem::path path = {};
};

struct MeasureOptions {
  std::vector<int> cpus = {0};       // the first one is used for "one core"
  std::filesystem::path root = "/";  // folder that contains /sys
  std::vector<GemmLibrary> gemms = {};
  std::string cuda = "libcuda.so.1";  // searched by the loader
  std::string cublas = {};            // path of libcublasLt; empty: searched by the loader
  int64_t memory_bytes = 0;           // memory that may be used; 0: 1 GiB
  double effort = 1;                  // scales the time of every window
  Stop stop = {};
  std::function<void(const std::string&)> progress = {};  // "memory bandwidth: L2"
};

// Measures everything. What could not be measured is in Limits::absent. After a stop the limits are
// incomplete.
Limits measure(const MeasureOptions& options);

// Measures only the arithmetic peaks in f32 and bf16, in about two seconds, as upper bounds that no program
// here can exceed even if other work runs meanwhile: the best of very many windows of a millisecond;
// n CPUs count as n times one; and for f32 at least width of the vectors x units x the fastest clock
// that was seen (two units if the processor's number is unknown). Other work lowers the measured peaks of
// bf16 and f32 by the same share, so bf16 is corrected by that of f32. No peaks after a stop: those of the loops
// measured until then are no bounds.
Limits measure_bounds(const MeasureOptions& options);

// Its parts; each adds its results to `limits`.
void measure_peaks(const MeasureOptions& options, Limits& limits);
void measure_levels(const MeasureOptions& options, Limits& limits);
void measure_costs(const MeasureOptions& options, Limits& limits);
void measure_link(const MeasureOptions& options, Limits& limits);
void measure_gemms(const MeasureOptions& options, Limits& limits);
void measure_gpus(const MeasureOptions& options, Limits& limits);

// Triad over plain arrays, as the compiler makes it from the obvious loop: a check of `Level::triad`.
void plain_triad(double* a, const double* b, const double* c, int64_t n, double scale);

inline bool stopped(const MeasureOptions& options) { return options.stop && options.stop(); }
inline void report_progress(const MeasureOptions& options, const std::string& text) {
  if (options.progress) options.progress(text);
}

}  // namespace bakeoff::roofline
