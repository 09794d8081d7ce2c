#include <string>
#include <vector>

#include "ir/builder.h"
#include "zoo/networks.h"

namespace bakeoff::zoo {
namespace {

using ir::Builder;
using ir::DType;
using ir::kBatch;
using ir::Op;
using ir::ValueId;
using Ints = std::vector<int64_t>;

struct ResNetShape {
  std::string name;
  bool bottleneck = false;
  Ints blocks;         // of each of the four stages
  int64_t width = 64;  // channels of the stem; stage s has 2^s times as many inside its blocks
  int64_t size = 224;  // of the picture
  int64_t classes = 1000;
};

constexpr int64_t kExpansion = 4;  // channels that leave a bottleneck, by those inside

class ResNet {
 public:
  explicit ResNet(const ResNetShape& shape) : shape_(shape), b_(shape.name) {}
  Result<ir::Workload> build();

 private:
  // Convolution without bias and BatchNorm behind it.
  ValueId conv_bn(ValueId x, const std::string& conv, const std::string& bn, int64_t channels, int64_t kernel,
                  int64_t stride) {
    const int64_t pad = kernel / 2;
    const ValueId h = b_.conv(x, conv,
                              {.channels = channels,
                               .kernel = {kernel, kernel},
                               .stride = {stride, stride},
                               .pad = {pad, pad, pad, pad},
                               .bias = false});
    return b_.batch_norm(h, bn);
  }
  ValueId block(ValueId x, const std::string& name, int64_t width, int64_t stride);

  const ResNetShape& shape_;
  Builder b_;
};

ValueId ResNet::block(ValueId x, const std::string& name, int64_t width, int64_t stride) {
  const auto part = [&](ValueId h, const char* number, int64_t channels, int64_t kernel, int64_t step) {
    return conv_bn(h, name + ".conv" + number, name + ".bn" + number, channels, kernel, step);
  };
  const int64_t out = shape_.bottleneck ? kExpansion * width : width;
  ValueId h = x;
  if (shape_.bottleneck) {
    h = b_.relu(part(h, "1", width, 1, 1));
    h = b_.relu(part(h, "2", width, 3, stride));
    h = part(h, "3", out, 1, 1);
  } else {
    h = b_.relu(part(h, "1", width, 3, stride));
    h = part(h, "2", out, 3, 1);
  }
  ValueId shortcut = x;
  if (stride != 1 || b_.shape(x)[1] != out) {
    shortcut = conv_bn(x, name + ".downsample.0", name + ".downsample.1", out, 1, stride);
  }
  return b_.relu(b_.apply(Op::kAdd, {h, shortcut}));
}

Result<ir::Workload> ResNet::build() {
  const auto x = b_.input("x", {DType::kF32, {kBatch, 3, shape_.size, shape_.size}});
  const auto y = b_.input("y", {DType::kI32, {kBatch}});
  auto h = b_.relu(conv_bn(x, "conv1", "bn1", shape_.width, 7, 2));
  h = b_.apply(Op::kMaxPool2d, {h},
               {{"kernel", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"pad", Ints{1, 1, 1, 1}}});
  for (size_t stage = 0; stage < shape_.blocks.size(); ++stage) {
    for (int64_t i = 0; i < shape_.blocks[stage]; ++i) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      h = block(h, name, shape_.width << stage, stage > 0 && i == 0 ? 2 : 1);
    }
  }
  h = b_.apply(Op::kGlobalAvgPool2d, {h});
  const auto logits = b_.named(b_.linear(h, "fc", shape_.classes), "logits");
  return b_.finish(b_.softmax_cross_entropy(logits, y));
}

}  // namespace

Result<ir::Workload> resnet18(Preset preset) {
  ResNetShape shape{.name = "resnet18", .blocks = {2, 2, 2, 2}};
  if (preset == Preset::kSmall) {
    shape.name = "resnet18_small";
    shape.width = 8;
    shape.size = 64;
    shape.classes = 10;
  }
  return ResNet(shape).build();
}

Result<ir::Workload> resnet50(Preset preset) {
  ResNetShape shape{.name = "resnet50", .bottleneck = true, .blocks = {3, 4, 6, 3}};
  if (preset == Preset::kSmall) {
    shape.name = "resnet50_small";
    shape.blocks = {1, 2, 2, 1};
    shape.width = 8;
    shape.size = 64;
    shape.classes = 10;
  }
  return ResNet(shape).build();
}

}  // namespace bakeoff::zoo
