// Trains lstm_lm_tied_small with LibTorch.
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
using Batch = std::tuple<Tensor, Tensor>;  // tokens, labels

constexpr int64_t kBatchSize = 1000;
constexpr double kLearningRate = 0.001;

const torch::Device kDevice = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;

struct LstmLmTiedSmallImpl : nn::Module {
  LstmLmTiedSmallImpl() {
    register_module("tokens", tokens_2);
    register_module("dropout", dropout);
    register_module("lstm1", lstm1);
    // One bias, as in other frameworks: torch's second one stays zero.
    nn::init::zeros_(lstm1->named_parameters()["bias_hh_l0"]).requires_grad_(false);
    register_module("lstm2", lstm2);
    nn::init::zeros_(lstm2->named_parameters()["bias_hh_l0"]).requires_grad_(false);
    register_parameter("decoder_bias", decoder_bias);
  }

  Tensor forward(const Tensor& tokens) {
    Tensor x = tokens_2(tokens);
    x = dropout(x);
    x = std::get<0>(lstm1(x));
    x = dropout(x);
    x = std::get<0>(lstm2(x));
    x = dropout(x);
    return torch::linear(x, tokens_2->weight, decoder_bias);
  }

  nn::Embedding tokens_2{500, 64};
  nn::Dropout dropout{0.5};
  nn::LSTM lstm1{nn::LSTMOptions(64, 64).batch_first(true)};
  nn::LSTM lstm2{nn::LSTMOptions(64, 64).batch_first(true)};
  Tensor decoder_bias = torch::empty({500});
};
TORCH_MODULE(LstmLmTiedSmall);

LstmLmTiedSmall make_model() {
  at::globalContext().setAllowTF32CuBLAS(false);  // no TF32 on GPUs
  at::globalContext().setAllowTF32CuDNN(false);
  torch::manual_seed(1);
  LstmLmTiedSmall model;
  model->to(kDevice);
  return model;
}

torch::optim::Adam make_optimizer(LstmLmTiedSmall& model) {
  torch::optim::AdamOptions options(kLearningRate);
  options.betas({0.9, 0.999}).eps(1e-8).weight_decay(0.0);
  return torch::optim::Adam(model->parameters(), options);
}

Tensor train_step(LstmLmTiedSmall& model, torch::optim::Optimizer& optimizer, const Tensor& tokens,
                  const Tensor& labels) {
  optimizer.zero_grad();
  const Tensor prediction = model(tokens);
  const Tensor loss = F::cross_entropy(prediction.flatten(0, 1), labels.flatten());
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
  const Tensor tokens = tensors.at("tokens").to(torch::kInt64);
  const Tensor labels = tensors.at("labels").to(torch::kInt64);
  return {tokens.to(kDevice), labels.to(kDevice)};
}

void load_weights(LstmLmTiedSmall& model, const std::string& path) {
  const torch::NoGradGuard no_grad;
  const auto tensors = load_safetensors(path);
  for (auto& item : model->named_parameters()) {
    // The LSTMs' second biases are not in the file.
    if (item.value().requires_grad()) item.value().copy_(tensors.at(item.key()));
  }
}

// Endless batches in the order of the file; a partial last one is left out.
class Batches {
 public:
  explicit Batches(Batch data) : data_(std::move(data)) {
    TORCH_CHECK(std::get<0>(data_).size(0) >= kBatchSize, "the data has fewer rows than one batch");
  }

  Batch next() {
    const auto& [tokens, labels] = data_;
    if (first_ + kBatchSize > tokens.size(0)) first_ = 0;
    const int64_t first = first_;
    first_ += kBatchSize;
    return {tokens.narrow(0, first, kBatchSize), labels.narrow(0, first, kBatchSize)};
  }

 private:
  Batch data_;
  int64_t first_ = 0;
};

int main(int argc, char** argv) {
  const std::string data = argc > 1 ? argv[1] : "data.safetensors";
  const std::string weights = argc > 2 ? argv[2] : "weights.safetensors";
  const int steps = argc > 3 ? std::stoi(argv[3]) : 100;

  LstmLmTiedSmall model = make_model();
  load_weights(model, weights);
  auto optimizer = make_optimizer(model);
  Batches batches(load_data(data));
  for (int step = 0; step < steps; ++step) {
    const auto [tokens, labels] = batches.next();
    const Tensor loss = train_step(model, optimizer, tokens, labels);
    if (step % 10 == 0) std::printf("step %5d  loss %.6f\n", step, loss.item<double>());
  }
}
