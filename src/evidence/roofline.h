#pragma once

// The roofline of a race as a finished value for the report (made by evidence/machine_use.h). Rates are per
// second.

#include <algorithm>
#include <string>
#include <vector>

namespace bakeoff {

// The machine's roofs as they apply to a race, and where the workload stands under them.
struct Roofline {
  struct Roof {
    std::string name = {};  // "L2", "DRAM"
    double bytes_per_s = 0;
    bool operator==(const Roof&) const = default;
  };
  struct Kind {           // all layers of a kind together, forward and backward
    std::string op = {};  // "conv2d"
    double flops = 0, bytes = 0;
    bool operator==(const Kind&) const = default;
  };
  int threads = 0;         // that the roofs are over: the most that a ranked contender uses
  int fewest_threads = 0;  // that one uses; its shares are of so many threads' limits
  double peak_flops = 0;
  std::string peak_of = {};      // "f32, avx2"
  double bf16_flops = 0;         // the peak of contenders in bfloat16; 0: not measured
  double gemm_flops = 0;         // the best library's matrix product; 0: none was found
  std::string gemm_of = {};      // "OpenBLAS"
  std::vector<Roof> roofs = {};  // nearest memory first
  std::string level = {};        // the one that a step's tensors fit in: the roof over the workload
  double bytes_per_s = 0;        // of that level
  double flops = 0, bytes = 0;   // of a step
  std::vector<Kind> kinds = {};  // those with FLOPs first
  std::string measured = {};     // UTC
  std::string disturbed = {};    // other work beside the measurement: the roofs are too low
  double intensity() const { return bytes > 0 ? flops / bytes : 0; }
  // FLOP/s that the roofs allow at so many FLOPs a byte.
  double attainable(double flops_per_byte) const {
    return bytes_per_s > 0 ? std::min(peak_flops, flops_per_byte * bytes_per_s) : peak_flops;
  }
  bool operator==(const Roofline&) const = default;
};

}  // namespace bakeoff
