// Trains speech with LibTorch.
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
using Batch = std::tuple<Tensor, Tensor>;  // sound, words

constexpr int64_t kBatchSize = 1000;
constexpr double kLearningRate = 0.001;

const torch::Device kDevice = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;

struct SpeechImpl : nn::Module {
  SpeechImpl() {
    register_module("rnn", rnn);
    register_module("early", early);
    register_module("head", head);
  }

  std::tuple<Tensor, Tensor> forward(const Tensor& sound) {
    Tensor x = std::get<0>(rnn(sound));
    Tensor h = early(sound);
    x = head(x);
    return {x, h};
  }

  nn::GRU rnn{nn::GRUOptions(5, 6).batch_first(true)};
  nn::Linear early{5, 7};
  nn::Linear head{6, 7};
};
TORCH_MODULE(Speech);

Speech make_model() {
  at::globalContext().setAllowTF32CuBLAS(false);  // no TF32 on GPUs
  at::globalContext().setAllowTF32CuDNN(false);
  Speech model;
  model->to(kDevice);
  return model;
}

torch::optim::Adam make_optimizer(Speech& model) {
  torch::optim::AdamOptions options(kLearningRate);
  options.betas({0.9, 0.999}).eps(1e-8).weight_decay(0.0);
  return torch::optim::Adam(model->parameters(), options);
}

Tensor train_step(Speech& model, torch::optim::Optimizer& optimizer, const Tensor& sound,
                  const Tensor& words) {
  optimizer.zero_grad();
  const auto [logits, early_2] = model(sound);
  const Tensor log_p = torch::log_softmax(logits, -1).transpose(0, 1);
  const Tensor lengths = (words >= 0).sum(1);
  const Tensor frames = torch::full_like(lengths, 12);
  const Tensor main_2 = F::ctc_loss(log_p, words, frames, lengths,
                                    F::CTCLossFuncOptions().reduction(torch::kSum)) / words.size(0);
  const Tensor log_p_2 = torch::log_softmax(early_2, -1).transpose(0, 1);
  const Tensor lengths_2 = (words >= 0).sum(1);
  const Tensor frames_2 = torch::full_like(lengths_2, 12);
  const Tensor aux = F::ctc_loss(log_p_2, words, frames_2, lengths_2,
                                 F::CTCLossFuncOptions().reduction(torch::kSum));
  const Tensor loss = main_2 + 0.1 * aux;
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
  const Tensor sound = tensors.at("sound").to(torch::kFloat32);
  const Tensor words = tensors.at("words").to(torch::kInt64);
  return {sound.to(kDevice), words.to(kDevice)};
}

void load_weights(Speech& model, const std::string& path) {
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
    const auto& [sound, words] = data_;
    if (first_ + kBatchSize > sound.size(0)) first_ = 0;
    const int64_t first = first_;
    first_ += kBatchSize;
    return {sound.narrow(0, first, kBatchSize), words.narrow(0, first, kBatchSize)};
  }

 private:
  Batch data_;
  int64_t first_ = 0;
};

int main(int argc, char** argv) {
  const std::string data = argc > 1 ? argv[1] : "data.safetensors";
  const std::string weights = argc > 2 ? argv[2] : "weights.safetensors";
  const int steps = argc > 3 ? std::stoi(argv[3]) : 100;

  Speech model = make_model();
  load_weights(model, weights);
  auto optimizer = make_optimizer(model);
  Batches batches(load_data(data));
  for (int step = 0; step < steps; ++step) {
    const auto [sound, words] = batches.next();
    const Tensor loss = train_step(model, optimizer, sound, words);
    if (step % 10 == 0) std::printf("step %5d  loss %.6f\n", step, loss.item<double>());
  }
}
