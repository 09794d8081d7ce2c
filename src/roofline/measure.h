#pragma once

// Measures the limits of the CPUs that this process may run on, in well under a minute.
//
//   Limits limits = measure({.cpus = allowed_cpus(), .gemms = {{"OpenBLAS",
//   "/usr/lib/.../libopenblas.so.0"}}});
//
// Foreign libraries (BLAS, CUDA) are loaded in a child process each, which may crash or hang without harm.
// The caller must not have other threads at the time.

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
  std::vector<int> cpus = {0};       // the first stands for "one core"
  std::filesystem::path root = "/";  // of /sys
  std::vector<GemmLibrary> gemms = {};
  std::string cuda = "libcuda.so.1";  // found by the loader
  std::string cublas = {};            // path of libcublasLt; empty: the loader's
  int64_t memory_bytes = 0;           // that may be touched; 0: 1 GiB
  double effort = 1;                  // scales the time of every window
  Stop stop = {};
  std::function<void(const std::string&)> progress = {};  // "memory bandwidth: L2"
};

// What could not be measured stands in Limits::absent. After a stop the limits are incomplete and of no use.
Limits measure(const MeasureOptions& options);

// The peaks of arithmetic in f32 and bf16 alone, in about two seconds, such that no program here can exceed
// them, whatever else runs meanwhile: the best of very many windows of a millisecond, all CPUs reckoned as so
// many times one, and for f32 no less than the width of the vectors x units x the fastest clock that was seen
// (two units where the processor's number of them is not known). A peak that is measured beside other work is
// too low by as much for bf16 as for f32, and is corrected by that.
Limits measure_bounds(const MeasureOptions& options);

// Its parts; each adds to `limits`.
void measure_peaks(const MeasureOptions& options, Limits& limits);
void measure_levels(const MeasureOptions& options, Limits& limits);
void measure_costs(const MeasureOptions& options, Limits& limits);
void measure_gemms(const MeasureOptions& options, Limits& limits);
void measure_gpus(const MeasureOptions& options, Limits& limits);

// Triad over plain arrays as the compiler makes it from the obvious loop: the check beside `Level::triad`.
void plain_triad(double* a, const double* b, const double* c, int64_t n, double scale);

inline bool stopped(const MeasureOptions& options) { return options.stop && options.stop(); }
inline void tell(const MeasureOptions& options, const std::string& text) {
  if (options.progress) options.progress(text);
}

}  // namespace bakeoff::roofline
