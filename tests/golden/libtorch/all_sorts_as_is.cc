// Trains all_sorts with LibTorch.
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
using Batch = std::tuple<Tensor, Tensor, Tensor>;  // picture, words, y

constexpr int64_t kBatchSize = 256;
constexpr double kLearningRate = 1e-4;

const torch::Device kDevice = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;

// The mean over the part of each window that lies inside the picture. `pad` is before, after of
// each axis from the last; torch::avg_pool2d pads evenly only.
Tensor avg_pool2d_uneven(const Tensor& x, torch::IntArrayRef kernel, torch::IntArrayRef stride,
                         torch::IntArrayRef pad) {
  const Tensor ones = torch::ones_like(x.slice(0, 0, 1).slice(1, 0, 1));
  const Tensor inside = torch::avg_pool2d(torch::constant_pad_nd(ones, pad), kernel, stride);
  return torch::avg_pool2d(torch::constant_pad_nd(x, pad), kernel, stride) / inside;
}

struct StemImpl : nn::Module {
  StemImpl() {
    register_module("conv", conv);
    register_module("depth", depth);
    register_module("bn", bn);
  }

  Tensor forward(Tensor x) {
    x = conv(torch::constant_pad_nd(x, {1, 0, 0, 1}, 0));
    x = torch::gelu(depth(x), "tanh");
    x = torch::max_pool2d(torch::constant_pad_nd(x, {0, 1, 1, 0}, -INFINITY), 2, /*stride=*/1);
    x = avg_pool2d_uneven(x, {3, 2}, {2, 2}, {0, 1, 1, 0});
    x = torch::constant_pad_nd(x, {0, 2, 1, 0}, 0.5);
    x = torch::avg_pool2d(x, 2, /*stride=*/1, /*padding=*/{1, 0}, /*ceil_mode=*/false,
                          /*count_include_pad=*/true);
    return bn(x);
  }

  nn::Conv2d conv{nn::Conv2dOptions(3, 6, {3, 2}).stride({2, 1})};
  nn::Conv2d depth{nn::Conv2dOptions(6, 6, 3).padding(2).dilation(2).groups(6).bias(false)};
  nn::BatchNorm2d bn{nn::BatchNorm2dOptions(6)};
};
TORCH_MODULE(Stem);

struct AllSortsImpl : nn::Module {
  AllSortsImpl() {
    register_module("stem", stem);
    register_module("words", words_2);
    register_module("norm", norm);
    register_module("dropout", dropout);
    register_module("mix", mix);
    register_module("head", head);
    register_parameter("tied_bias", tied_bias);
    nn::init::uniform_(tied_bias, -1 / std::sqrt(6.0), 1 / std::sqrt(6.0));
  }

  Tensor forward(const Tensor& picture, const Tensor& words) {
    Tensor x = stem(picture);
    Tensor h = torch::sigmoid(x);
    x = x * h;
    x = x.mean({2, 3});
    h = words_2(words).transpose(1, 2);
    h = h.reshape({-1, 5, 6});
    h = norm(h).flatten(1);
    h = dropout(h);
    h = torch::tanh(mix(h));
    h = torch::softmax(h, 1);
    h = torch::cat({x, h}, 1);
    x = torch::gelu(head(h) + x, "none");
    return torch::linear(x, words_2->weight, tied_bias);
  }

  Stem stem;
  nn::Embedding words_2{20, 6};
  nn::LayerNorm norm{nn::LayerNormOptions({6})};
  nn::Dropout dropout{0.25};
  nn::Linear mix{30, 6};
  nn::Linear head{nn::LinearOptions(12, 6).bias(false)};
  Tensor tied_bias = torch::empty({20});
};
TORCH_MODULE(AllSorts);

AllSorts make_model() {
  torch::manual_seed(1);
  AllSorts model;
  model->to(kDevice);
  for (Tensor& p : model->parameters()) {
    if (p.dim() == 4) p.set_data(p.contiguous(torch::MemoryFormat::ChannelsLast));
  }
  return model;
}

torch::optim::RMSprop make_optimizer(AllSorts& model) {
  torch::optim::RMSpropOptions options(kLearningRate);
  return torch::optim::RMSprop(model->parameters(), options);
}

Tensor train_step(AllSorts& model, torch::optim::Optimizer& optimizer, const Tensor& picture,
                  const Tensor& words, const Tensor& y) {
  optimizer.zero_grad();
  const Tensor loss = F::cross_entropy(model(picture, words), y,
                                       F::CrossEntropyFuncOptions().reduction(torch::kSum));
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
  const Tensor picture = tensors.at("picture").to(torch::kFloat32) / 255.0;
  const Tensor words = tensors.at("words").to(torch::kInt64);
  const Tensor y = tensors.at("y").to(torch::kInt64);
  return {picture, words, y};
}

// Endless batches, shuffled anew in each epoch; a partial last one is left out.
class Batches {
 public:
  explicit Batches(Batch data) : data_(std::move(data)) {
    TORCH_CHECK(std::get<0>(data_).size(0) >= kBatchSize, "the data has fewer rows than one batch");
  }

  Batch next() {
    const auto& [picture, words, y] = data_;
    if (!order_.defined() || first_ + kBatchSize > picture.size(0)) {
      order_ = torch::randperm(picture.size(0));
      first_ = 0;
    }
    const Tensor rows = order_.narrow(0, first_, kBatchSize);
    first_ += kBatchSize;
    return {picture.index_select(0, rows).to(kDevice).contiguous(torch::MemoryFormat::ChannelsLast),
            words.index_select(0, rows).to(kDevice), y.index_select(0, rows).to(kDevice)};
  }

 private:
  Batch data_;
  Tensor order_;
  int64_t first_ = 0;
};

int main(int argc, char** argv) {
  const std::string data = argc > 1 ? argv[1] : "data.safetensors";
  const int steps = argc > 2 ? std::stoi(argv[2]) : 100;

  AllSorts model = make_model();
  auto optimizer = make_optimizer(model);
  Batches batches(load_data(data));
  for (int step = 0; step < steps; ++step) {
    const auto [picture, words, y] = batches.next();
    const Tensor loss = train_step(model, optimizer, picture, words, y);
    if (step % 10 == 0) std::printf("step %5d  loss %.6f\n", step, loss.item<double>());
  }
}
