// Trains sequences with LibTorch.
//
//   ./train_libtorch data.safetensors weights.safetensors [steps]

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace F = torch::nn::functional;
namespace nn = torch::nn;
using torch::Tensor;
using Batch = std::tuple<Tensor, Tensor, Tensor>;  // x, last, y

constexpr int64_t kBatchSize = 1000;
constexpr double kLearningRate = 0.001;

const torch::Device kDevice = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;

// q, k and v are N, tokens, heads, width; torch has the heads before the tokens. Neighbouring
// heads of q share a head of k and v.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const std::optional<Tensor>& mask = {}, bool causal = false,
                 double dropout = 0.0) {
  const Tensor out = torch::scaled_dot_product_attention(
      q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), mask, dropout, causal,
      /*scale=*/{}, /*enable_gqa=*/q.size(2) != k.size(2));
  return out.transpose(1, 2);
}

// True up to the last token of each row: N, 1, 1, keys.
Tensor padding_mask(const Tensor& last, int64_t keys) {
  return torch::arange(keys, last.options()) <= last.view({-1, 1, 1, 1});
}

// True up to the query and to the last token of each row: N, 1, keys, keys.
Tensor causal_padding_mask(const Tensor& last, int64_t keys) {
  const Tensor places = torch::arange(keys, last.options());
  return (places <= places.unsqueeze(1)) & (places <= last.view({-1, 1, 1, 1}));
}

// The whole sequence from a zero state; the gates are i, f, g, o.
Tensor lstm_sequence(const Tensor& x, const Tensor& weight_ih, const Tensor& weight_hh,
                     const Tensor& bias = {}) {
  const Tensor state = x.new_zeros({1, x.size(0), weight_hh.size(1)});
  std::vector<Tensor> weights = {weight_ih, weight_hh};
  if (bias.defined()) {
    weights.push_back(bias);
    weights.push_back(torch::zeros_like(bias));  // torch has two biases
  }
  const auto [out, h, c] =
      torch::lstm(x, {state, state}, weights, bias.defined(), /*num_layers=*/1, /*dropout=*/0.0,
                  /*train=*/true, /*bidirectional=*/false, /*batch_first=*/true);
  return out;
}

struct SequencesImpl : nn::Module {
  SequencesImpl() {
    register_module("place", place);
    auto rnn = register_module("rnn", std::make_shared<nn::Module>());
    rnn->register_parameter("kernel", rnn_kernel);
    rnn->register_parameter("recurrent", rnn_recurrent);
    rnn->register_parameter("bias", rnn_bias);
    register_module("bare", bare);
    auto deep = register_module("deep", std::make_shared<nn::Module>());
    deep->register_module("full", deep_full);
    // One bias, as in other frameworks: torch's second one stays zero.
    nn::init::zeros_(deep_full->named_parameters()["bias_hh_l0"]).requires_grad_(false);
    register_module("head", head);
  }

  Tensor forward(Tensor x, const Tensor& last) {
    x = x + place->weight.narrow(0, 0, 6);
    x = lstm_sequence(x, rnn_kernel, rnn_recurrent, rnn_bias);
    x = std::get<0>(bare(x));
    x = std::get<0>(deep_full(x)).unflatten(-1, {2, 2});
    const Tensor mask = causal_padding_mask(last, 6);
    Tensor h = attention(x, x, x, mask);
    h = attention(h, x, h, /*mask=*/{}, /*causal=*/true);
    const Tensor mask_2 = padding_mask(last, 6);
    h = attention(h, x, x, mask_2);
    Tensor u = attention(h, x, h, mask_2);
    x = attention(u, h, x).flatten(1);
    return head(x);
  }

  nn::Embedding place{8, 4};
  Tensor rnn_kernel = torch::empty({16, 4});
  Tensor rnn_recurrent = torch::empty({16, 4});
  Tensor rnn_bias = torch::empty({16});
  nn::LSTM bare{nn::LSTMOptions(4, 4).bias(false).batch_first(true)};
  nn::LSTM deep_full{nn::LSTMOptions(4, 4).batch_first(true)};
  nn::Linear head{24, 3};
};
TORCH_MODULE(Sequences);

Sequences make_model() {
  at::globalContext().setAllowTF32CuBLAS(false);  // no TF32 on GPUs
  at::globalContext().setAllowTF32CuDNN(false);
  Sequences model;
  model->to(kDevice);
  return model;
}

torch::optim::Adam make_optimizer(Sequences& model) {
  torch::optim::AdamOptions options(kLearningRate);
  options.betas({0.9, 0.999}).eps(1e-8).weight_decay(0.0);
  return torch::optim::Adam(model->parameters(), options);
}

Tensor train_step(Sequences& model, torch::optim::Optimizer& optimizer, const Tensor& x,
                  const Tensor& last, const Tensor& y) {
  optimizer.zero_grad();
  const Tensor loss = F::cross_entropy(model(x, last), y);
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
  const Tensor last = tensors.at("last").to(torch::kInt64);
  const Tensor y = tensors.at("y").to(torch::kInt64);
  return {x.to(kDevice), last.to(kDevice), y.to(kDevice)};
}

void load_weights(Sequences& model, const std::string& path) {
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
    const auto& [x, last, y] = data_;
    if (first_ + kBatchSize > x.size(0)) first_ = 0;
    const int64_t first = first_;
    first_ += kBatchSize;
    return {x.narrow(0, first, kBatchSize), last.narrow(0, first, kBatchSize),
            y.narrow(0, first, kBatchSize)};
  }

 private:
  Batch data_;
  int64_t first_ = 0;
};

int main(int argc, char** argv) {
  const std::string data = argc > 1 ? argv[1] : "data.safetensors";
  const std::string weights = argc > 2 ? argv[2] : "weights.safetensors";
  const int steps = argc > 3 ? std::stoi(argv[3]) : 100;

  Sequences model = make_model();
  load_weights(model, weights);
  auto optimizer = make_optimizer(model);
  Batches batches(load_data(data));
  for (int step = 0; step < steps; ++step) {
    const auto [x, last, y] = batches.next();
    const Tensor loss = train_step(model, optimizer, x, last, y);
    if (step % 10 == 0) std::printf("step %5d  loss %.6f\n", step, loss.item<double>());
  }
}
