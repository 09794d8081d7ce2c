// Trains alexnet_small with LibTorch.
//
//   ./train_libtorch data.safetensors weights.safetensors [steps]

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
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
constexpr double kLearningRate = 0.001;

const torch::Device kDevice = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;

// x / (k + alpha * s)^beta, where s sums x^2 over `size` channels; torch divides alpha by the size.
Tensor lrn(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  const double scaled = static_cast<double>(size) * alpha;
  return F::local_response_norm(
      x, F::LocalResponseNormFuncOptions(size).alpha(scaled).beta(beta).k(k));
}

struct AlexnetSmallImpl : nn::Module {
  AlexnetSmallImpl() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv3", conv3);
    register_module("conv4", conv4);
    register_module("conv5", conv5);
    register_module("fc6", fc6);
    register_module("dropout", dropout);
    register_module("fc7", fc7);
    register_module("fc8", fc8);
  }

  Tensor forward(Tensor x) {
    x = torch::relu(conv1(x));
    x = lrn(x, 5, 1e-4, 0.75, 2.0);
    x = torch::max_pool2d(x, 3, /*stride=*/2);
    x = torch::relu(conv2(x));
    x = lrn(x, 5, 1e-4, 0.75, 2.0);
    x = torch::max_pool2d(x, 3, /*stride=*/2);
    x = torch::relu(conv3(x));
    x = torch::relu(conv4(x));
    x = torch::relu(conv5(x));
    x = torch::max_pool2d(x, 3, /*stride=*/2).flatten(1);
    x = torch::relu(fc6(x));
    x = dropout(x);
    x = torch::relu(fc7(x));
    x = dropout(x);
    return fc8(x);
  }

  nn::Conv2d conv1{nn::Conv2dOptions(3, 12, 11).stride(4)};
  nn::Conv2d conv2{nn::Conv2dOptions(12, 32, 5).padding(2).groups(2)};
  nn::Conv2d conv3{nn::Conv2dOptions(32, 48, 3).padding(1)};
  nn::Conv2d conv4{nn::Conv2dOptions(48, 48, 3).padding(1).groups(2)};
  nn::Conv2d conv5{nn::Conv2dOptions(48, 32, 3).padding(1).groups(2)};
  nn::Linear fc6{32, 64};
  nn::Dropout dropout{0.5};
  nn::Linear fc7{64, 64};
  nn::Linear fc8{64, 10};
};
TORCH_MODULE(AlexnetSmall);

AlexnetSmall make_model() {
  at::globalContext().setAllowTF32CuBLAS(false);  // no TF32 on GPUs
  at::globalContext().setAllowTF32CuDNN(false);
  torch::manual_seed(1);
  AlexnetSmall model;
  model->to(kDevice);
  return model;
}

torch::optim::Adam make_optimizer(AlexnetSmall& model) {
  torch::optim::AdamOptions options(kLearningRate);
  options.betas({0.9, 0.999}).eps(1e-8).weight_decay(0.0);
  return torch::optim::Adam(model->parameters(), options);
}

Tensor train_step(AlexnetSmall& model, torch::optim::Optimizer& optimizer, const Tensor& x,
                  const Tensor& y) {
  optimizer.zero_grad();
  const Tensor loss = F::cross_entropy(model(x), y);
  loss.backward();
  optimizer.step();
  return loss.detach();
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

void load_weights(AlexnetSmall& model, const std::string& path) {
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

  AlexnetSmall model = make_model();
  load_weights(model, weights);
  auto optimizer = make_optimizer(model);
  Batches batches(load_data(data));
  for (int step = 0; step < steps; ++step) {
    const auto [x, y] = batches.next();
    const Tensor loss = train_step(model, optimizer, x, y);
    if (step % 10 == 0) std::printf("step %5d  loss %.6f\n", step, loss.item<double>());
  }
}
