#pragma once

// The published networks of the zoo; internal to this room. Each builder function makes the network of its
// paper with the preset `kFull`, and with `kSmall` the same architecture, narrower and on smaller inputs,
// which trains in every framework within seconds.
//
//   resnet18(Preset::kFull)      11,689,512 parameters, 1.81 G multiply-accumulates for a 224x224 picture
//   resnet50(Preset::kFull)      25,557,032 parameters, 4.09 G

#include "base/result.h"
#include "ir/workload.h"

namespace bakeoff::zoo {

enum class Preset { kFull, kSmall };

// He et al. 2016, "Deep Residual Learning for Image Recognition", table 1, with names, strides and padding of
// torchvision: the 3x3 convolution of a bottleneck has the stride, not the 1x1 before it ("ResNet v1.5"),
// which costs 4.09 G multiply-accumulates where the paper counts 3.8 G.
Result<ir::Workload> resnet18(Preset preset);
Result<ir::Workload> resnet50(Preset preset);

}  // namespace bakeoff::zoo
