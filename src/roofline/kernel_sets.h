#pragma once

// Which kernels this processor runs, and what its data sheet says of them.

#include <string>
#include <vector>

#include "roofline/kernels.h"

namespace bakeoff::roofline {

// Those that processor and operating system support, the scalar one first, then ascending.
const std::vector<const KernelSet*>& supported_kernels();

// The widest one that moves memory.
const StreamKernels& best_streams();

struct Processor {
  std::string vendor = {};  // "AuthenticAMD", "GenuineIntel", ...; empty: unknown
  int family = 0;
  int model = 0;
};
Processor this_processor();

// Instructions of multiply-accumulate that a core starts in one cycle, for vectors of 256 or 512 bits in
// "f32" and "f64", by its family and model; 0 where that is not known. Sources: the vendors' optimisation
// manuals, and Agner Fog, Instruction tables.
int fma_units(const Processor& processor, int bits);

}  // namespace bakeoff::roofline
