#pragma once

// What this machine can do, measured: the most arithmetic and the most memory traffic that hand-made loops
// get out of it, and what the libraries at hand reach. Rates are per second, the best of many short windows.

#include <cstdint>
#include <string>
#include <vector>

namespace bakeoff::roofline {

// On one core, and on all allowed CPUs at the same time.
struct Rate {
  double one = 0;
  double all = 0;
  bool operator==(const Rate&) const = default;
};

// Multiply-accumulates in registers; two operations each.
struct Peak {
  std::string dtype = {};  // of the factors: "f64", "f32", "bf16", "int8"
  std::string isa = {};    // "scalar", "avx2", "avx512", "avx512-bf16", "avx512-vnni", "avx-vnni", "amx"
  Rate ops = {};           // operations per second
  int64_t lanes = 0;       // multiply-accumulates of an instruction
  int units = 0;           // such instructions that a core starts in a cycle
  std::string units_from =
      {};               // "model": by processor model; "inferred": the nearest whole number; "": not known
  double clock_hz = 0;  // right after the same loop, on one core
  // ops.one over 2 x lanes x units x clock_hz; 0 where units are not known.
  double of_width() const;
  bool operator==(const Peak&) const = default;
};

// Bytes per second, counted as STREAM does (see kernels.h).
struct Level {
  std::string name = {};  // "L1", "L2", "L3", "DRAM"
  int64_t capacity = 0;   // of one such cache; 0 for DRAM
  int64_t caches = 0;     // how many of them the CPUs have together; 0: not known
  Rate touched = {};      // bytes that the loops went over, on each core
  Rate read = {}, write = {}, copy = {}, triad = {};
  Rate triad_nt = {};  // DRAM only: stores past the caches
  Rate best() const;
  bool operator==(const Level&) const = default;
};

// The best matrix product of a library.
struct Gemm {
  std::string library = {};  // "OpenBLAS", "oneDNN", "MKL"
  std::string path = {};
  std::string dtype = {};  // "f32", "f64"
  Rate ops = {};
  int64_t size = 0;  // of the square matrices that gave the best
  bool operator==(const Gemm&) const = default;
};

struct Gpu {
  std::string name = {};
  struct Tensor {
    std::string dtype = {};  // "f32", "tf32", "bf16", "f16", "f64"
    double ops = 0;
    bool operator==(const Tensor&) const = default;
  };
  std::vector<Tensor> gemm = {};  // cuBLASLt
  double memory = 0;              // bytes per second, read and written, within the device
  double to_device = 0, from_device = 0;
  bool operator==(const Gpu&) const = default;
};

// What could not be measured, and why. Never a zero instead.
struct Absent {
  std::string what = {};
  std::string reason = {};
  bool operator==(const Absent&) const = default;
};

struct Limits {
  int cpus = 0;
  std::vector<Peak> peaks = {};    // one for each dtype and instruction set
  std::vector<Level> levels = {};  // nearest first
  std::vector<Gemm> gemms = {};
  std::vector<Gpu> gpus = {};
  double plain_triad = 0;  // one core, DRAM: the compiler's own loop over plain arrays, as STREAM's is
  Rate scalar_hz = {},
       vector_hz = {};         // frequency under scalar, and right after vector load; all: the slowest core
  double page_fault_s = 0;     // first touch of a 4 KiB page
  double process_start_s = 0;  // posix_spawn of a program that does nothing, until it is reaped
  double seconds = 0;          // that the measurement took
  std::vector<Absent> absent = {};

  // The highest peak for a dtype; null where it was not measured.
  const Peak* peak(const std::string& dtype) const;
  const Level* level(const std::string& name) const;
  bool operator==(const Limits&) const = default;
};

}  // namespace bakeoff::roofline
