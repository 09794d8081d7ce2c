// Trains mlp_deep with LibTorch.
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

struct MlpDeepImpl : nn::Module {
  MlpDeepImpl() {
    register_module("fc1", fc1);
    register_module("bn1", bn1);
    register_module("dropout", dropout);
    register_module("fc2", fc2);
    register_module("bn2", bn2);
    register_module("fc3", fc3);
  }

  Tensor forward(Tensor x) {
    x = torch::relu(bn1(fc1(x)));
    x = dropout(x);
    x = torch::relu(bn2(fc2(x)));
    x = dropout(x);
    return fc3(x);
  }

  nn::Linear fc1{100, 256};
  nn::BatchNorm1d bn1{nn::BatchNorm1dOptions(256).eps(1e-5).momentum(0.1)};
  nn::Dropout dropout{0.5};
  nn::Linear fc2{256, 128};
  nn::BatchNorm1d bn2{nn::BatchNorm1dOptions(128).eps(1e-5).momentum(0.1)};
  nn::Linear fc3{128, 10};
};
TORCH_MODULE(MlpDeep);

MlpDeep make_model() {
  at::globalContext().setAllowTF32CuBLAS(false);  // no TF32 on GPUs
  at::globalContext().setAllowTF32CuDNN(false);
  torch::manual_seed(1);
  MlpDeep model;
  model->to(kDevice);
  return model;
}

torch::optim::Adam make_optimizer(MlpDeep& model) {
  torch::optim::AdamOptions options(kLearningRate);
  options.betas({0.9, 0.999}).eps(1e-8).weight_decay(0.0);
  return torch::optim::Adam(model->parameters(), options);
}

Tensor train_step(MlpDeep& model, torch::optim::Optimizer& optimizer, const Tensor& x,
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

void load_weights(MlpDeep& model, const std::string& path) {
  const torch::NoGradGuard no_grad;
  const auto tensors = load_safetensors(path);
  for (auto& item : model->named_parameters()) item.value().copy_(tensors.at(item.key()));
  for (auto& item : model->named_buffers()) {
    // BatchNorm's num_batches_tracked is not in the file.
    if (tensors.contains(item.key())) item.value().copy_(tensors.at(item.key()));
  }
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

  MlpDeep model = make_model();
  load_weights(model, weights);
  auto optimizer = make_optimizer(model);
  Batches batches(load_data(data));
  for (int step = 0; step < steps; ++step) {
    const auto [x, y] = batches.next();
    const Tensor loss = train_step(model, optimizer, x, y);
    if (step % 10 == 0) std::printf("step %5d  loss %.6f\n", step, loss.item<double>());
  }
}
