#pragma once

// Which kernels this processor can run, and what its data sheet says about them.

#include <string>
#include <vector>

#include "roofline/kernels.h"

namespace bakeoff::roofline {

// The sets that processor and operating system support, the scalar one first, then ascending.
const std::vector<const KernelSet*>& supported_kernels();

// The widest one that has memory loops.
const StreamKernels& best_streams();

struct Processor {
  std::string vendor = {};  // "AuthenticAMD", "GenuineIntel", ...; empty: unknown
  int family = 0;
  int model = 0;
};
Processor this_processor();

// Number of multiply-accumulate instructions on 256 or 512 bits of "f32" or "f64" that a core starts per
// cycle, by family and model; 0 if unknown. Sources: the vendors' optimisation manuals, and Agner Fog,
// Instruction tables.
int fma_units(const Processor& processor, int bits);

}  // namespace bakeoff::roofline
