// Trains mlp_small with LibTorch.
//
//   ./train_libtorch data.safetensors weights.safetensors [steps]

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace F = torch::nn::functional;
namespace nn = torch::nn;
using torch::Tensor;
using Batch = std::tuple<Tensor, Tensor>;  // x, y

constexpr int64_t kBatchSize = 1000;
constexpr double kLearningRate = 0.1;
constexpr int64_t kWarmupSteps = 10;
constexpr double kWarmupFrom = 0.1;
constexpr int64_t kDecaySteps = 90;
constexpr double kFinalShare = 0.01;
constexpr double kClipNorm = 1.0;
constexpr double kEmaDecay = 0.99;
constexpr int64_t kAccumulate = 4;
const std::set<std::string> kNoDecay = {"fc1.bias", "fc2.bias"};

const torch::Device kDevice = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;

struct MlpSmallImpl : nn::Module {
  MlpSmallImpl() {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  Tensor forward(Tensor x) {
    x = torch::relu(fc1(x));
    return fc2(x);
  }

  nn::Linear fc1{100, 128};
  nn::Linear fc2{128, 10};
};
TORCH_MODULE(MlpSmall);

// That of a step; steps are counted from 0.
double learning_rate(int64_t step) {
  if (step < kWarmupSteps) {
    return kLearningRate * (kWarmupFrom + (1 - kWarmupFrom) * step / kWarmupSteps);
  }
  const double done = std::min((step - kWarmupSteps) / double(kDecaySteps), 1.0);
  const double cosine = (1 + std::cos(M_PI * done)) / 2;
  return kLearningRate * (kFinalShare + (1 - kFinalShare) * cosine);
}

// SGD with the recipe's clipping and average of weights.
class RecipeOptimizer : public torch::optim::SGD {
 public:
  using SGD::SGD;

  Tensor step(LossClosure closure = nullptr) override {
    {
      const torch::NoGradGuard no_grad;
      std::vector<Tensor> grads;
      for (auto& group : param_groups()) {
        for (const Tensor& p : group.params()) {
          if (p.grad().defined()) grads.push_back(p.grad());
        }
      }
      std::vector<Tensor> norms;
      for (const Tensor& grad : grads) norms.push_back(grad.norm());
      const Tensor factor = (kClipNorm / torch::stack(norms).norm()).clamp_max(1);
      for (Tensor& grad : grads) grad.mul_(factor);
    }
    for (auto& group : param_groups()) group.options().set_lr(learning_rate(steps_));
    ++steps_;
    const Tensor loss = SGD::step(closure);
    const torch::NoGradGuard no_grad;
    for (auto& group : param_groups()) {
      for (const Tensor& p : group.params()) {
        // The first update copies.
        const auto [average, first] = averages_.try_emplace(p.unsafeGetTensorImpl(), p.detach());
        if (first) {
          average->second = p.detach().clone();
        } else {
          average->second.lerp_(p, 1 - kEmaDecay);
        }
      }
    }
    return loss;
  }

  double rate(int64_t step) const { return learning_rate(step); }

  Tensor average(const Tensor& p) const { return averages_.at(p.unsafeGetTensorImpl()); }

 private:
  int64_t steps_ = 0;
  std::map<c10::TensorImpl*, Tensor> averages_;
};

MlpSmall make_model() {
  at::globalContext().setAllowTF32CuBLAS(false);  // no TF32 on GPUs
  at::globalContext().setAllowTF32CuDNN(false);
  MlpSmall model;
  model->to(kDevice);
  return model;
}

RecipeOptimizer make_optimizer(MlpSmall& model) {
  torch::optim::SGDOptions options(kLearningRate);
  options.momentum(0.9).nesterov(false).weight_decay(0.01);
  std::vector<Tensor> decayed, kept;
  for (const auto& item : model->named_parameters()) {
    (kNoDecay.contains(item.key()) ? kept : decayed).push_back(item.value());
  }
  RecipeOptimizer optimizer(std::vector<torch::optim::OptimizerParamGroup>{decayed, kept}, options);
  auto& still = optimizer.param_groups().back().options();
  static_cast<torch::optim::SGDOptions&>(still).weight_decay(0.0);
  return optimizer;
}

Tensor train_step(MlpSmall& model, torch::optim::Optimizer& optimizer, const Tensor& x,
                  const Tensor& y) {
  optimizer.zero_grad();
  std::vector<Tensor> shares;
  const std::vector<std::vector<Tensor>> chunks = {x.chunk(kAccumulate), y.chunk(kAccumulate)};
  for (int64_t chunk = 0; chunk < kAccumulate; ++chunk) {
    const Tensor& x = chunks[0][chunk];
    const Tensor& y = chunks[1][chunk];
    const Tensor loss = F::cross_entropy(model(x), y);
    const Tensor share = loss / kAccumulate;
    share.backward();
    shares.push_back(share.detach());
  }
  optimizer.step();
  return torch::stack(shares).sum();
}

// What stands between `open` and `close` in an entry of the header below.
std::string field(const std::string& entry, const std::string& open, char close) {
  const size_t begin = entry.find(open) + open.size();
  const size_t end = entry.find(close, begin);
  TORCH_CHECK(begin >= open.size() && end != std::string::npos, "no ", open, " in ", entry);
  return entry.substr(begin, end - begin);
}

// A safetensors file: 8 bytes with the length of a JSON header, the header
// {"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}, then the tensors' bytes.
std::map<std::string, Tensor> load_safetensors(const std::string& path) {
  static const std::map<std::string, torch::ScalarType> kTypes = {
      {"U8", torch::kUInt8},    {"I32", torch::kInt32},   {"I64", torch::kInt64},
      {"F32", torch::kFloat32}, {"F64", torch::kFloat64},
  };
  std::ifstream file(path, std::ios::binary);
  int64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  TORCH_CHECK(file && length < 100'000'000, path, " is not there, or no safetensors file");
  std::string header(length, ' ');
  file.read(header.data(), length);

  std::map<std::string, Tensor> tensors;
  for (size_t at = 1; header[at] == '"';) {
    const size_t colon = header.find("\":{", at), end = header.find('}', colon);
    TORCH_CHECK(end != std::string::npos, "the header of ", path, " is damaged");
    const std::string name = header.substr(at + 1, colon - at - 1);
    const std::string entry = header.substr(colon, end - colon);
    at = end + 2;  // behind "},"
    if (name == "__metadata__") continue;
    std::vector<int64_t> shape;
    std::stringstream sizes(field(entry, "\"shape\":[", ']'));
    for (std::string size; std::getline(sizes, size, ',');) shape.push_back(std::stoll(size));
    const Tensor tensor = torch::empty(shape, kTypes.at(field(entry, "\"dtype\":\"", '"')));
    file.seekg(8 + length + std::stoll(field(entry, "\"data_offsets\":[", ',')));
    file.read(static_cast<char*>(tensor.data_ptr()), tensor.nbytes());
    tensors[name] = tensor;
  }
  TORCH_CHECK(file, path, " ends before its data");
  return tensors;
}

Batch load_data(const std::string& path) {
  const auto tensors = load_safetensors(path);
  const Tensor x = tensors.at("x").to(torch::kFloat32);
  const Tensor y = tensors.at("y").to(torch::kInt64);
  return {x.to(kDevice), y.to(kDevice)};
}

void load_weights(MlpSmall& model, const std::string& path) {
  const torch::NoGradGuard no_grad;
  const auto tensors = load_safetensors(path);
  for (auto& item : model->named_parameters()) item.value().copy_(tensors.at(item.key()));
}

// Endless batches in the order of the file; a partial last one is left out.
class Batches {
 public:
  explicit Batches(Batch data) : data_(std::move(data)) {
    TORCH_CHECK(std::get<0>(data_).size(0) >= kBatchSize, "the data has fewer rows than one batch");
  }

  Batch next() {
    const auto& [x, y] = data_;
    if (first_ + kBatchSize > x.size(0)) first_ = 0;
    const int64_t first = first_;
    first_ += kBatchSize;
    return {x.narrow(0, first, kBatchSize), y.narrow(0, first, kBatchSize)};
  }

 private:
  Batch data_;
  int64_t first_ = 0;
};

int main(int argc, char** argv) {
  const std::string data = argc > 1 ? argv[1] : "data.safetensors";
  const std::string weights = argc > 2 ? argv[2] : "weights.safetensors";
  const int steps = argc > 3 ? std::stoi(argv[3]) : 100;

  MlpSmall model = make_model();
  load_weights(model, weights);
  auto optimizer = make_optimizer(model);
  Batches batches(load_data(data));
  for (int step = 0; step < steps; ++step) {
    const auto [x, y] = batches.next();
    const Tensor loss = train_step(model, optimizer, x, y);
    if (step % 10 == 0) std::printf("step %5d  loss %.6f\n", step, loss.item<double>());
  }
}
