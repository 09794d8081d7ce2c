#pragma once

// LoRA (Hu et al. 2022) as a pass: beside a linear layer y = W x + b stand two small matrices,
//
//   y = W x + b + alpha / rank * B (A x),   A: [rank, inputs], B: [outputs, rank],
//
// and nothing else of the network is trained. A starts uniform in +-1 / sqrt(inputs), B at zero: a network starts as
// what it was. That is what the package peft does with its defaults (no dropout, biases frozen). Running statistics of
// batch norm still move in training, as they do there.
//
//   TRY(workload, passes::lora(workload, {.rank = 8, .alpha = 16, .targets = {"q_proj", "v_proj"}}));

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"

namespace bakeoff::passes {

struct Lora {
  int64_t rank = 8;
  double alpha = 8;
  // Each names layers: by a pattern (* and ?) of the weight's name, "model.*.q_proj.weight", of the layer's, or of its
  // last parts, "q_proj" or "self_attn.?_proj".
  std::vector<std::string> targets = {};
};

// The matrices of the weight "fc.weight" are "fc_lora_A.weight" and "fc_lora_B.weight"; all other names stay. Layers
// of one weight share them. Errors name the key of a recipe ("lora.rank") and the remedy: a target that names no linear
// layer, or one that is none, a weight that an embedding reads too, a rank that the layer cannot have, LoRA that is there.
Result<ir::Workload> lora(const ir::Workload& workload, const Lora& options);

}  // namespace bakeoff::passes
