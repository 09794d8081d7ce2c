// Trains class.1 with LibTorch.
//
//   ./train_libtorch data.safetensors [steps]

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
using Batch = std::tuple<Tensor, Tensor, Tensor>;  // model_2, class_2, unused

constexpr int64_t kBatchSize = 1000;
constexpr double kLearningRate = 0.001;

const torch::Device kDevice = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;

struct Class1Impl : nn::Module {
  Class1Impl() {
    auto layer_0 = register_module("0", std::make_shared<nn::Module>());
    layer_0->register_module("in", layer_0_in);
    auto layer_1 = register_module("1", std::make_shared<nn::Module>());
    layer_1->register_parameter("kernel", layer_1_kernel);
    nn::init::kaiming_uniform_(layer_1_kernel, std::sqrt(5.0));
    auto layer_1_shift = layer_1->register_module("shift", std::make_shared<nn::Module>());
    layer_1_shift->register_parameter("0", layer_1_shift_0);
    nn::init::uniform_(layer_1_shift_0, -1 / std::sqrt(4.0), 1 / std::sqrt(4.0));
    register_parameter("scale", scale);
    register_parameter("shift", shift);
  }

  std::tuple<Tensor, Tensor> forward(const Tensor& model_2, const Tensor& class_2) {
    Tensor x = layer_0_in(model_2);
    Tensor h = torch::linear(class_2, layer_1_kernel, layer_1_shift_0);
    h = torch::relu(h);
    x + h;
    x = x + model_2;
    x = x * h;
    h = torch::layer_norm(h, {4}, scale, shift, 1e-5);
    return {x, h};
  }

  nn::Linear layer_0_in{4, 4};
  Tensor layer_1_kernel = torch::empty({4, 4});
  Tensor layer_1_shift_0 = torch::empty({4});
  Tensor scale = torch::ones({4});
  Tensor shift = torch::zeros({4});
};
TORCH_MODULE(Class1);

Class1 make_model() {
  torch::manual_seed(1);
  Class1 model;
  model->to(kDevice);
  return model;
}

torch::optim::Adam make_optimizer(Class1& model) {
  torch::optim::AdamOptions options(kLearningRate);
  return torch::optim::Adam(model->parameters(), options);
}

Tensor train_step(Class1& model, torch::optim::Optimizer& optimizer, const Tensor& model_2,
                  const Tensor& class_2, const Tensor& unused) {
  optimizer.zero_grad();
  const auto [prediction, target] = model(model_2, class_2);
  const Tensor loss = F::mse_loss(prediction, target);
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
  const Tensor model_2 = tensors.at("model").to(torch::kFloat32);
  const Tensor class_2 = tensors.at("class").to(torch::kFloat32);
  const Tensor unused = tensors.at("unused").to(torch::kInt64);
  return {model_2, class_2, unused};
}

// Endless batches, shuffled anew in each epoch; a partial last one is left out.
class Batches {
 public:
  explicit Batches(Batch data) : data_(std::move(data)) {
    TORCH_CHECK(std::get<0>(data_).size(0) >= kBatchSize, "the data has fewer rows than one batch");
  }

  Batch next() {
    const auto& [model_2, class_2, unused] = data_;
    if (!order_.defined() || first_ + kBatchSize > model_2.size(0)) {
      order_ = torch::randperm(model_2.size(0));
      first_ = 0;
    }
    const Tensor rows = order_.narrow(0, first_, kBatchSize);
    first_ += kBatchSize;
    return {model_2.index_select(0, rows).to(kDevice), class_2.index_select(0, rows).to(kDevice),
            unused.index_select(0, rows).to(kDevice)};
  }

 private:
  Batch data_;
  Tensor order_;
  int64_t first_ = 0;
};

int main(int argc, char** argv) {
  const std::string data = argc > 1 ? argv[1] : "data.safetensors";
  const int steps = argc > 2 ? std::stoi(argv[2]) : 100;

  Class1 model = make_model();
  auto optimizer = make_optimizer(model);
  Batches batches(load_data(data));
  for (int step = 0; step < steps; ++step) {
    const auto [model_2, class_2, unused] = batches.next();
    const Tensor loss = train_step(model, optimizer, model_2, class_2, unused);
    if (step % 10 == 0) std::printf("step %5d  loss %.6f\n", step, loss.item<double>());
  }
}
