#include "zoo/zoo.h"

#include "base/nearest.h"
#include "ir/builder.h"
#include "zoo/networks.h"

namespace bakeoff::zoo {
namespace {

using ir::Builder;
using ir::DType;
using ir::kBatch;
using ir::Op;

// 32-32-pool-32-64, 3x3 "valid", dense 128: 563,018 parameters.
Result<ir::Workload> mnist_cnn() {
  Builder b("mnist_cnn");
  const auto x = b.input("x", {DType::kF32, {kBatch, 1, 28, 28}});
  const auto y = b.input("y", {DType::kI32, {kBatch}});
  auto h = b.relu(b.conv(x, "conv1", {.channels = 32}));
  h = b.relu(b.conv(h, "conv2", {.channels = 32}));
  h = b.apply(Op::kMaxPool2d, {h},
              {{"kernel", std::vector<int64_t>{2, 2}}, {"stride", std::vector<int64_t>{2, 2}}});
  h = b.relu(b.conv(h, "conv3", {.channels = 32}));
  h = b.relu(b.conv(h, "conv4", {.channels = 64}));
  h = b.relu(b.linear(b.apply(Op::kFlatten, {h}), "fc1", 128));
  const auto logits = b.named(b.linear(h, "fc2", 10), "logits");
  return b.finish(b.softmax_cross_entropy(logits, y));
}

// 100-128-10 of the "four times longer" article.
Result<ir::Workload> mlp_small() {
  Builder b("mlp_small");
  const auto x = b.input("x", {DType::kF32, {kBatch, 100}});
  const auto y = b.input("y", {DType::kI32, {kBatch}});
  const auto h = b.relu(b.linear(x, "fc1", 128));
  const auto logits = b.named(b.linear(h, "fc2", 10), "logits");
  return b.finish(b.softmax_cross_entropy(logits, y));
}

// 100-256-128-10 with BatchNorm and Dropout 0.5 after each hidden layer, of the same article.
Result<ir::Workload> mlp_deep() {
  Builder b("mlp_deep");
  const auto x = b.input("x", {DType::kF32, {kBatch, 100}});
  const auto y = b.input("y", {DType::kI32, {kBatch}});
  auto h = x;
  const int64_t widths[] = {256, 128};
  for (int layer = 1; layer <= 2; ++layer) {
    const std::string n = std::to_string(layer);
    h = b.relu(b.batch_norm(b.linear(h, "fc" + n, widths[layer - 1]), "bn" + n));
    h = b.apply(Op::kDropout, {h}, {{"rate", 0.5}});
  }
  const auto logits = b.named(b.linear(h, "fc3", 10), "logits");
  return b.finish(b.softmax_cross_entropy(logits, y));
}

// Two residual blocks with BatchNorm, the second one halving the picture (1x1 projection on the shortcut).
Result<ir::Workload> residual_cnn() {
  Builder b("residual_cnn");
  const auto x = b.input("x", {DType::kF32, {kBatch, 1, 28, 28}});
  const auto y = b.input("y", {DType::kI32, {kBatch}});
  const Builder::Conv stem{.channels = 16, .stride = {2, 2}, .pad = {1, 1, 1, 1}, .bias = false};
  auto h = b.relu(b.batch_norm(b.conv(x, "stem.conv", stem), "stem.bn"));
  int64_t channels = 16;
  for (const std::string block : {"block1", "block2"}) {
    const int64_t stride = block == "block2" ? 2 : 1;
    auto shortcut = h;
    if (stride == 2) {
      channels *= 2;
      shortcut =
          b.batch_norm(b.conv(h, block + ".down.conv",
                              {.channels = channels, .kernel = {1, 1}, .stride = {2, 2}, .bias = false}),
                       block + ".down.bn");
    }
    h = b.conv(h, block + ".conv1",
               {.channels = channels, .stride = {stride, stride}, .pad = {1, 1, 1, 1}, .bias = false});
    h = b.relu(b.batch_norm(h, block + ".bn1"));
    h = b.conv(h, block + ".conv2", {.channels = channels, .pad = {1, 1, 1, 1}, .bias = false});
    h = b.relu(b.apply(Op::kAdd, {b.batch_norm(h, block + ".bn2"), shortcut}));
  }
  const auto logits = b.named(b.linear(b.apply(Op::kGlobalAvgPool2d, {h}), "fc", 10), "logits");
  return b.finish(b.softmax_cross_entropy(logits, y));
}

template <auto network, Preset preset>
Result<ir::Workload> preset_of() {
  return network(preset);
}

}  // namespace

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {"mnist_cnn", "CNN 32-32-pool-32-64-dense 128 for 28x28 pictures, 563,018 parameters", mnist_cnn},
      {"mlp_small", "MLP 100-128-10", mlp_small},
      {"mlp_deep", "MLP 100-256-128-10 with BatchNorm and Dropout 0.5", mlp_deep},
      {"residual_cnn", "small residual CNN for 28x28 pictures: stem and two blocks with BatchNorm",
       residual_cnn},
      {"resnet18", "ResNet-18 (He et al. 2016) for 224x224 pictures, 11,689,512 parameters",
       preset_of<resnet18, Preset::kFull>},
      {"resnet18_small", "ResNet-18 with an eighth of the channels for 64x64 pictures",
       preset_of<resnet18, Preset::kSmall>},
      {"resnet50",
       "ResNet-50 (He et al. 2016, strides in the 3x3) for 224x224 pictures, 25,557,032 parameters",
       preset_of<resnet50, Preset::kFull>},
      {"resnet50_small",
       "bottlenecks of ResNet-50, 1-2-2-1 of them, an eighth of the channels, 64x64 pictures",
       preset_of<resnet50, Preset::kSmall>},
      {"alexnet",
       "AlexNet (Krizhevsky et al. 2012) with LRN and groups, 227x227 pictures, 60,965,224 parameters",
       preset_of<alexnet, Preset::kFull>},
      {"alexnet_small", "AlexNet with an eighth of the channels for 67x67 pictures",
       preset_of<alexnet, Preset::kSmall>},
      {"bert",
       "BERT-base (Devlin et al. 2019) with tied language model head, 128 tokens, 109,514,298 parameters",
       preset_of<bert, Preset::kFull>},
      {"bert_small", "BERT with 2 layers of 64, 4 heads, 500 words, 24 tokens",
       preset_of<bert, Preset::kSmall>},
      {"lstm_lm", "LSTM language model, medium (Zaremba et al. 2014), 35 steps, 19,775,200 parameters",
       preset_of<lstm_lm, Preset::kFull>},
      {"lstm_lm_small", "LSTM language model of 2 x 64 units, 500 words, 20 steps",
       preset_of<lstm_lm, Preset::kSmall>},
      {"lstm_lm_tied", "lstm_lm whose decoder is the table of the words, 13,275,200 parameters",
       preset_of<lstm_lm_tied, Preset::kFull>},
      {"lstm_lm_tied_small", "lstm_lm_small whose decoder is the table of the words",
       preset_of<lstm_lm_tied, Preset::kSmall>},
  };
  return all;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Entry& entry : entries()) all.push_back(entry.name);
  return all;
}

Result<ir::Workload> build(std::string_view name) {
  for (const Entry& entry : entries()) {
    if (entry.name == name) return entry.build();
  }
  return Error{.message = "unknown workload '" + std::string(name) + "'", .remedy = suggest(name, names())};
}

}  // namespace bakeoff::zoo
