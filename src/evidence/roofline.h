#pragma once

// The roofline of a race as a finished value for the report (evidence/machine_use.h computes it). Rates are
// per second.

#include <algorithm>
#include <string>
#include <vector>

namespace bakeoff {

// The roofs of the machine as they apply to a race, and the workload's place below them.
struct Roofline {
  struct Roof {
    std::string name = {};  // "L2", "DRAM"
    double bytes_per_s = 0;
    bool operator==(const Roof&) const = default;
  };
  struct Kind {           // all layers of one kind, forward and backward
    std::string op = {};  // "conv2d"
    double flops = 0, bytes = 0;
    bool operator==(const Kind&) const = default;
  };
  int threads = 0;         // threads that the roofs are for: the most that a ranked contender uses
  int fewest_threads = 0;  // the fewest that a ranked contender uses; its shares refer to limits for those
  double peak_flops = 0;
  std::string peak_of = {};      // what reached the peak: "f32, avx2"
  double bf16_flops = 0;         // the peak of contenders in bfloat16; 0: not measured
  double gemm_flops = 0;         // the matrix product of the fastest library; 0: none was found
  std::string gemm_of = {};      // name of that library: "OpenBLAS"
  std::vector<Roof> roofs = {};  // nearest memory first
  std::string level = {};        // memory level that the tensors of a step fit into: the workload's roof
  double bytes_per_s = 0;        // bandwidth of that level
  double flops = 0, bytes = 0;   // of one step
  std::vector<Kind> kinds = {};  // most FLOPs first
  std::string measured = {};     // UTC
  std::string disturbed = {};    // other work during the measurement, in words: the roofs are too low
  double intensity() const { return bytes > 0 ? flops / bytes : 0; }
  // FLOP/s that the roofs allow at this number of FLOPs per byte.
  double attainable(double flops_per_byte) const {
    return bytes_per_s > 0 ? std::min(peak_flops, flops_per_byte * bytes_per_s) : peak_flops;
  }
  bool operator==(const Roofline&) const = default;
};

}  // namespace bakeoff
