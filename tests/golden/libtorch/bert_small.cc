// Trains bert_small with LibTorch.
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
using Batch = std::tuple<Tensor, Tensor, Tensor, Tensor>;  // tokens, token_types, last, labels

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

struct AttentionImpl : nn::Module {
  AttentionImpl() {
    register_module("query", query);
    register_module("key", key);
    register_module("value", value);
    register_module("output", output);
    register_module("dropout", dropout);
    register_module("norm", norm);
  }

  Tensor forward(Tensor x, const Tensor& mask) {
    Tensor q = query(x).unflatten(-1, {4, 16});
    Tensor k = key(x).unflatten(-1, {4, 16});
    Tensor v = value(x).unflatten(-1, {4, 16});
    Tensor h = attention(q, k, v, mask).flatten(2);
    h = output(h);
    h = dropout(h);
    x = x + h;
    return norm(x);
  }

  nn::Linear query{64, 64};
  nn::Linear key{64, 64};
  nn::Linear value{64, 64};
  nn::Linear output{64, 64};
  nn::Dropout dropout{0.1};
  nn::LayerNorm norm{nn::LayerNormOptions({64}).eps(1e-12)};
};
TORCH_MODULE(Attention);

struct EncoderBlockImpl : nn::Module {
  EncoderBlockImpl() {
    register_module("attention", attention_2);
    register_module("intermediate", intermediate);
    register_module("output", output);
    register_module("dropout", dropout);
    register_module("norm", norm);
  }

  Tensor forward(Tensor x, const Tensor& mask) {
    x = attention_2(x, mask);
    Tensor h = torch::gelu(intermediate(x), "none");
    h = output(h);
    h = dropout(h);
    x = x + h;
    return norm(x);
  }

  Attention attention_2;
  nn::Linear intermediate{64, 256};
  nn::Linear output{256, 64};
  nn::Dropout dropout{0.1};
  nn::LayerNorm norm{nn::LayerNormOptions({64}).eps(1e-12)};
};
TORCH_MODULE(EncoderBlock);

struct HeadImpl : nn::Module {
  HeadImpl() {
    register_module("dense", dense);
    register_module("norm", norm);
  }

  Tensor forward(Tensor x) {
    x = torch::gelu(dense(x), "none");
    return norm(x);
  }

  nn::Linear dense{64, 64};
  nn::LayerNorm norm{nn::LayerNormOptions({64}).eps(1e-12)};
};
TORCH_MODULE(Head);

struct BertSmallImpl : nn::Module {
  BertSmallImpl() {
    auto embeddings = register_module("embeddings", std::make_shared<nn::Module>());
    embeddings->register_module("word", embeddings_word);
    embeddings->register_module("token_type", embeddings_token_type);
    embeddings->register_module("position", embeddings_position);
    embeddings->register_module("norm", embeddings_norm);
    register_module("dropout", dropout);
    register_module("encoder", encoder);
    for (int i = 0; i < 2; ++i) encoder->push_back(EncoderBlock());
    register_module("head", head);
    register_parameter("decoder_bias", decoder_bias);
  }

  Tensor forward(const Tensor& tokens, const Tensor& token_types, const Tensor& last) {
    Tensor x = embeddings_word(tokens);
    Tensor h = embeddings_token_type(token_types);
    x = x + h;
    x = x + embeddings_position->weight.narrow(0, 0, 24);
    x = embeddings_norm(x);
    x = dropout(x);
    const Tensor mask = padding_mask(last, 24);
    for (const auto& block : *encoder) {
      x = block->as<EncoderBlock>()->forward(x, mask);
    }
    x = head(x);
    return torch::linear(x, embeddings_word->weight, decoder_bias);
  }

  nn::Embedding embeddings_word{500, 64};
  nn::Embedding embeddings_token_type{2, 64};
  nn::Embedding embeddings_position{32, 64};
  nn::LayerNorm embeddings_norm{nn::LayerNormOptions({64}).eps(1e-12)};
  nn::Dropout dropout{0.1};
  nn::ModuleList encoder;
  Head head;
  Tensor decoder_bias = torch::empty({500});
};
TORCH_MODULE(BertSmall);

BertSmall make_model() {
  at::globalContext().setAllowTF32CuBLAS(false);  // no TF32 on GPUs
  at::globalContext().setAllowTF32CuDNN(false);
  torch::manual_seed(1);
  BertSmall model;
  model->to(kDevice);
  return model;
}

torch::optim::Adam make_optimizer(BertSmall& model) {
  torch::optim::AdamOptions options(kLearningRate);
  options.betas({0.9, 0.999}).eps(1e-8).weight_decay(0.0);
  return torch::optim::Adam(model->parameters(), options);
}

Tensor train_step(BertSmall& model, torch::optim::Optimizer& optimizer, const Tensor& tokens,
                  const Tensor& token_types, const Tensor& last, const Tensor& labels) {
  optimizer.zero_grad();
  const Tensor prediction = model(tokens, token_types, last);
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
  const Tensor token_types = tensors.at("token_types").to(torch::kInt64);
  const Tensor last = tensors.at("last").to(torch::kInt64);
  const Tensor labels = tensors.at("labels").to(torch::kInt64);
  return {tokens.to(kDevice), token_types.to(kDevice), last.to(kDevice), labels.to(kDevice)};
}

void load_weights(BertSmall& model, const std::string& path) {
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
    const auto& [tokens, token_types, last, labels] = data_;
    if (first_ + kBatchSize > tokens.size(0)) first_ = 0;
    const int64_t first = first_;
    first_ += kBatchSize;
    return {tokens.narrow(0, first, kBatchSize), token_types.narrow(0, first, kBatchSize),
            last.narrow(0, first, kBatchSize), labels.narrow(0, first, kBatchSize)};
  }

 private:
  Batch data_;
  int64_t first_ = 0;
};

int main(int argc, char** argv) {
  const std::string data = argc > 1 ? argv[1] : "data.safetensors";
  const std::string weights = argc > 2 ? argv[2] : "weights.safetensors";
  const int steps = argc > 3 ? std::stoi(argv[3]) : 100;

  BertSmall model = make_model();
  load_weights(model, weights);
  auto optimizer = make_optimizer(model);
  Batches batches(load_data(data));
  for (int step = 0; step < steps; ++step) {
    const auto [tokens, token_types, last, labels] = batches.next();
    const Tensor loss = train_step(model, optimizer, tokens, token_types, last, labels);
    if (step % 10 == 0) std::printf("step %5d  loss %.6f\n", step, loss.item<double>());
  }
}
