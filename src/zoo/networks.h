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

// Krizhevsky et al. 2012, "ImageNet Classification with Deep Convolutional Neural Networks", section 3: local
// response normalisation behind conv1 and conv2, two groups in conv2, conv4 and conv5 (there: two GPUs),
// pictures of 227x227 (with 224 its strides do not fit). 60,965,224 parameters ("60 million" there; without
// groups they would be 62,378,344; torchvision's alexnet, of a later paper, has 61,100,840).
Result<ir::Workload> alexnet(Preset preset);

// Devlin et al. 2019, "BERT", the base model (12 layers of 768, 12 heads, 30,522 word pieces) with its masked
// language model head, whose decoder is the table of the words: 109,514,298 parameters. Sequences of 128
// tokens; `last` is the index of a row's last token, what follows is padding; `labels` names a word for every
// token. Dropout of 0.1 behind embeddings and sublayers; the one on attention weights is left out.
Result<ir::Workload> bert(Preset preset);

// Zaremba et al. 2014, "Recurrent Neural Network Regularization", section 4.1: the medium language model, two
// layers of 650 units, 35 steps, 10,000 words, dropout 0.5 on all connections but the recurrent ones:
// 19,775,200 parameters ("20M" in Merity et al. 2016, table 2). Every batch starts from a zero state.
Result<ir::Workload> lstm_lm(Preset preset);
// lstm_lm with the table of the words as weight of the decoder (Press & Wolf 2017): 13,275,200 parameters.
Result<ir::Workload> lstm_lm_tied(Preset preset);

}  // namespace bakeoff::zoo
