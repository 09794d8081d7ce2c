#include <string>
#include <vector>

#include "ir/builder.h"
#include "zoo/networks.h"

namespace bakeoff::zoo {

using ir::Builder;
using ir::DType;
using ir::kBatch;
using ir::Op;
using ir::ValueId;
using Ints = std::vector<int64_t>;

Result<ir::Workload> alexnet(Preset preset) {
  const bool full = preset == Preset::kFull;
  const int64_t size = full ? 227 : 67, classes = full ? 1000 : 10;
  const int64_t share = full ? 1 : 8;  // of the channels and of the dense layers, a small network has one
  Builder b(full ? "alexnet" : "alexnet_small");
  const auto x = b.input("x", {DType::kF32, {kBatch, 3, size, size}});
  const auto y = b.input("y", {DType::kI32, {kBatch}});
  const auto conv = [&](ValueId in, const char* layer, int64_t channels, int64_t kernel, int64_t groups) {
    const int64_t pad = kernel / 2;
    return b.relu(b.conv(in, layer,
                         {.channels = channels / share,
                          .kernel = {kernel, kernel},
                          .pad = {pad, pad, pad, pad},
                          .groups = groups}));
  };
  const auto norm = [&](ValueId in) {
    return b.apply(Op::kLrn, {in}, {{"size", int64_t{5}}, {"alpha", 1e-4}, {"beta", 0.75}, {"k", 2.0}});
  };
  const auto pool = [&](ValueId in) {
    return b.apply(Op::kMaxPool2d, {in}, {{"kernel", Ints{3, 3}}, {"stride", Ints{2, 2}}});
  };
  const auto dense = [&](ValueId in, const char* layer) {
    const ValueId h = b.relu(b.linear(in, layer, 4096 / (share * share)));
    return b.apply(Op::kDropout, {h}, {{"rate", 0.5}});
  };
  auto h = b.relu(b.conv(x, "conv1", {.channels = 96 / share, .kernel = {11, 11}, .stride = {4, 4}}));
  h = pool(norm(h));
  h = pool(norm(conv(h, "conv2", 256, 5, 2)));
  h = conv(h, "conv3", 384, 3, 1);
  h = conv(h, "conv4", 384, 3, 2);
  h = pool(conv(h, "conv5", 256, 3, 2));
  h = dense(b.apply(Op::kFlatten, {h}), "fc6");
  h = dense(h, "fc7");
  const auto logits = b.named(b.linear(h, "fc8", classes), "logits");
  return b.finish(b.softmax_cross_entropy(logits, y));
}

}  // namespace bakeoff::zoo
