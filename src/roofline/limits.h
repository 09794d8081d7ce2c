#pragma once

// The measured limits of this machine: the most arithmetic and memory traffic that hand-made loops reach,
// and what the installed libraries reach. Rates are per second, the best of many short windows.

#include <cstdint>
#include <string>
#include <vector>

namespace bakeoff::roofline {

// A rate on one core, and on all allowed CPUs at the same time.
struct Rate {
  double one = 0;
  double all = 0;
  bool operator==(const Rate&) const = default;
};

// The peak of multiply-accumulates in registers; each is two operations.
struct Peak {
  std::string dtype = {};  // type of the factors: "f64", "f32", "bf16", "int8"
  // Instruction set: "scalar", "avx2", "avx512", "avx512-bf16", "avx512-vnni", "avx-vnni", "amx", "neon".
  std::string isa = {};
  Rate ops = {};      // operations per second
  int64_t lanes = 0;  // multiply-accumulates per instruction
  int units = 0;      // instructions that a core starts per cycle
  // Where `units` comes from: "model": the processor model; "inferred": the nearest whole number; "":
  // unknown.
  std::string units_from = {};
  double clock_hz = 0;  // measured right after the loop, on one core
  // ops.one divided by 2 x lanes x units x clock_hz; 0 if units are unknown.
  double of_width() const;
  bool operator==(const Peak&) const = default;
};

// Why a measured peak cannot be true, beside the others of its processor; empty: it can. A core multiplies at
// most twice as many bfloat16 as f32 in a register of the same width, and four times as many int8; 5% is for the
// clock, which changes between two measurements. No peak is a quarter above its width at the clock that was
// measured right after it. Matrix units (AMX) have registers of their own and are held against nothing.
std::string impossible(const Peak& peak, const std::vector<Peak>& all);

// Bytes per second, counted as STREAM does (see kernels.h).
struct Level {
  std::string name = {};  // "L1", "L2", "L3", "DRAM"
  int64_t capacity = 0;   // size of one such cache; 0 for DRAM
  int64_t caches = 0;     // how many of them the CPUs have together; 0: unknown
  Rate touched = {};      // bytes that the loops went over, on each core
  Rate read = {}, write = {}, copy = {}, triad = {};
  Rate triad_nt = {};  // DRAM only: triad whose stores bypass the caches
  Rate best() const;
  bool operator==(const Level&) const = default;
};

// The fastest matrix product of one library.
struct Gemm {
  std::string library = {};  // "OpenBLAS", "oneDNN", "MKL"
  std::string path = {};
  std::string dtype = {};  // "f32", "f64"
  Rate ops = {};
  int64_t size = 0;  // rows of the square matrices that were fastest
  bool operator==(const Gemm&) const = default;
};

struct Gpu {
  std::string name = {};
  struct Tensor {
    std::string dtype = {};  // "f32", "tf32", "bf16", "f16", "f64"
    double ops = 0;
    bool operator==(const Tensor&) const = default;
  };
  std::vector<Tensor> gemm = {};          // matrix products by cuBLASLt
  double memory = 0;                      // bytes per second, read and written, within the device
  double to_device = 0, from_device = 0;  // bytes per second
  bool operator==(const Gpu&) const = default;
};

// A number that could not be measured, and why. It is never recorded as zero.
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
  double plain_triad = 0;  // one core, DRAM: the compiler's own loop over plain arrays, as in STREAM
  // Frequency under scalar load, and right after vector load; all: that of the slowest core.
  Rate scalar_hz = {}, vector_hz = {};
  double page_fault_s = 0;     // first touch of a 4 KiB page
  double process_start_s = 0;  // posix_spawn of a program that does nothing, until it is reaped
  double link =
      0;  // bytes per second from one process to another over the loopback interface; 0: not measured
  double seconds = 0;  // duration of the measurement
  std::vector<Absent> absent = {};

  // The highest peak for a dtype; null if it was not measured.
  const Peak* peak(const std::string& dtype) const;
  const Level* level(const std::string& name) const;
  bool operator==(const Limits&) const = default;
};

}  // namespace bakeoff::roofline
