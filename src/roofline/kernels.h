#pragma once

// The innermost loops of the measurements, compiled once for each instruction set (kernels_*.cc) and chosen
// at run time. Those files include only this header, loops.h and compiler intrinsics, and their code has
// internal linkage: the linker cannot use a function compiled for a newer processor on an older one.

#include <cstdint>

namespace bakeoff::roofline {

// Independent multiply-accumulates in registers.
struct FmaKernel {
  const char* dtype;           // type of the factors: "f64", "f32", "bf16", "int8"
  int64_t lanes;               // multiply-accumulates per instruction
  int64_t chains;              // instructions per iteration
  void (*run)(int64_t times);  // runs `times` iterations
  int64_t operations() const { return 2 * lanes * chains; }  // operations per iteration
};

// Each loop goes over its arrays `times` times. `n` counts doubles and is a multiple of 512; arrays are
// aligned to 64 bytes. Bytes are counted as STREAM does: every array once, without the reads that a store
// causes.
struct StreamKernels {
  void (*read)(const double* a, int64_t n, int64_t times);                                  // 8 bytes
  void (*write)(double* a, int64_t n, int64_t times);                                       // 8
  void (*copy)(double* to, const double* from, int64_t n, int64_t times);                   // 16
  void (*triad)(double* a, const double* b, const double* c, int64_t n, int64_t times);     // 24: a = b + s c
  void (*triad_nt)(double* a, const double* b, const double* c, int64_t n, int64_t times);  // past the caches
};

// One instruction set.
struct KernelSet {
  const char* isa;               // "avx2"
  const FmaKernel* fma;          // the last one has no dtype
  const StreamKernels* streams;  // null: it has no memory loops of its own
};

extern const KernelSet kScalar;
extern const KernelSet kAvx2;
extern const KernelSet kAvxVnni;
extern const KernelSet kAvx512;
extern const KernelSet kAvx512Bf16;
extern const KernelSet kAvx512Vnni;
extern const KernelSet kAmx;
extern const KernelSet kNeon;

// `times` x 64 additions, each of which needs the result of the one before: one cycle each on every x86-64
// processor.
void dependent_additions(int64_t times);
inline constexpr int64_t kChainLength = 64;

}  // namespace bakeoff::roofline
