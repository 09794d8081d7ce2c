// Generates with lm with LibTorch.
//
//   ./generate_libtorch data.safetensors weights.safetensors [steps [words.safetensors]]

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
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
using Batch = std::tuple<Tensor>;  // ids

constexpr int64_t kBatchSize = 4;
// Words of each row that are read first, and those that are chosen in answer.
constexpr int64_t kPrompt = 2;
constexpr int64_t kWords = 3;

const torch::Device kDevice = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;

const auto kCached = torch::dtype(torch::kBFloat16).device(kDevice);

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

// True for the last keys up to each position, as many as the window has: L, keys.
Tensor cache_mask(const Tensor& positions, int64_t keys, int64_t window = 0) {
  const Tensor places = torch::arange(keys, positions.options()), own = positions.unsqueeze(1);
  const Tensor seen = places <= own;
  return window > 0 ? seen & (places > own - window) : seen;
}

// k and v join the caches at their positions; then queries see what the mask says.
Tensor cached_attention(const Tensor& q, const Tensor& k, const Tensor& v, Tensor keys,
                        Tensor values, const Tensor& positions, const Tensor& mask) {
  keys.index_copy_(1, positions, k.to(keys.scalar_type()));
  values.index_copy_(1, positions, v.to(values.scalar_type()));
  return attention(q, keys, values, mask);
}

struct AttnImpl : nn::Module {
  AttnImpl() {
    register_module("q", q);
    q->to(torch::kBFloat16);
    register_module("k", k);
    k->to(torch::kBFloat16);
  }

  Tensor forward(Tensor x, const Tensor& positions, const Tensor& mask) {
    Tensor h = q(x).unflatten(-1, {2, 4});
    x = k(x).unsqueeze(2);
    return cached_attention(h, x, x, key_cache, value_cache, positions, mask);
  }

  nn::Linear q{nn::LinearOptions(8, 8).bias(false)};
  nn::Linear k{nn::LinearOptions(8, 4).bias(false)};
  Tensor key_cache = torch::zeros({kBatchSize, 6, 1, 4}, kCached);
  Tensor value_cache = torch::zeros({kBatchSize, 6, 1, 4}, kCached);
};
TORCH_MODULE(Attn);

struct LmImpl : nn::Module {
  LmImpl() {
    register_module("embed", embed);
    embed->to(torch::kBFloat16);
    auto places = register_module("places", std::make_shared<nn::Module>());
    places->register_parameter("weight", places_weight);
    register_module("attn", attn);
    register_module("head", head);
    head->to(torch::kBFloat16);
  }

  Tensor forward(const Tensor& ids, const Tensor& positions) {
    Tensor x = embed(ids);
    Tensor h = places_weight.reshape({1, 6, 8});
    h = torch::index_select(h, 1, positions);
    x = x + h;
    const Tensor mask = cache_mask(positions, 6, 3);
    h = attn(x, positions, mask).flatten(2);
    x = x + h;
    x = x.slice(1, -1, std::nullopt, 1);
    return head(x);
  }

  nn::Embedding embed{9, 8};
  Tensor places_weight = torch::empty({6, 8});
  Attn attn;
  nn::Linear head{nn::LinearOptions(8, 9).bias(false)};
};
TORCH_MODULE(Lm);

Lm make_model() {
  at::globalContext().setAllowTF32CuBLAS(false);  // no TF32 on GPUs
  at::globalContext().setAllowTF32CuDNN(false);
  Lm model;
  model->to(kDevice);
  model->eval();
  return model;
}

// What torch.autocast is in Python: as long as it lives, products are in bfloat16.
class Autocast {
 public:
  Autocast() {
    at::autocast::set_autocast_enabled(kDevice.type(), true);
    at::autocast::set_autocast_dtype(kDevice.type(), torch::kBFloat16);
  }
  ~Autocast() {
    at::autocast::clear_cache();  // of the parameters in bfloat16
    at::autocast::set_autocast_enabled(kDevice.type(), false);
  }
};

// Logits of the word that follows `words`, the first of which stands at `first`.
Tensor decode_step(Lm& model, const Tensor& words, int64_t first) {
  const Tensor positions = torch::arange(first, first + words.size(1), words.options());
  const Autocast autocast;
  return model(words, positions).select(1, -1).to(torch::kFloat32);
}

Tensor likeliest(const Tensor& logits) { return logits.argmax(-1); }

// kWords words in answer to the first kPrompt of each row, one after the other.
class Answer {
 public:
  Answer(const Lm& model, const Tensor& rows) : model_(model), words_(rows.slice(1, 0, kPrompt)) {}

  // The next word of each row: what `choose` makes of the logits.
  Tensor next(const std::function<Tensor(const Tensor&)>& choose = likeliest) {
    const c10::InferenceMode inference;
    const Tensor logits = decode_step(model_, words_, first_);
    first_ += words_.size(1);
    words_ = choose(logits).unsqueeze(1);
    return words_;
  }

 private:
  Lm model_;
  Tensor words_;
  int64_t first_ = 0;
};

Tensor predict_step(const Lm& model, const Tensor& rows) {
  Answer answer(model, rows);
  std::vector<Tensor> parts;
  for (int64_t n = 0; n < kWords; ++n) parts.push_back(answer.next());
  return torch::cat(parts, 1);
}

// A safetensors file with the tensor `words`.
void save_words(const Tensor& words, const std::string& path) {
  std::stringstream header;
  header << "{\"words\":{\"dtype\":\"I64\",\"shape\":[" << words.size(0) << "," << words.size(1)
         << "],\"data_offsets\":[0," << words.nbytes() << "]}}";
  const int64_t length = header.str().size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header.str();
  file.write(static_cast<const char*>(words.data_ptr()), words.nbytes());
  TORCH_CHECK(file.flush(), "cannot write ", path);
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
  const Tensor ids = tensors.at("ids").to(torch::kInt64);
  return {ids.to(kDevice)};
}

void load_weights(Lm& model, const std::string& path) {
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
    const auto& [ids] = data_;
    if (first_ + kBatchSize > ids.size(0)) first_ = 0;
    const int64_t first = first_;
    first_ += kBatchSize;
    return {ids.narrow(0, first, kBatchSize)};
  }

 private:
  Batch data_;
  int64_t first_ = 0;
};

int main(int argc, char** argv) {
  const std::string data = argc > 1 ? argv[1] : "data.safetensors";
  const std::string weights = argc > 2 ? argv[2] : "weights.safetensors";
  const int steps = argc > 3 ? std::stoi(argv[3]) : 100;

  Lm model = make_model();
  load_weights(model, weights);
  Batches batches(load_data(data));
  std::vector<Tensor> answers;
  for (int step = 0; step < steps; ++step) {
    const auto [rows] = batches.next();
    answers.push_back(predict_step(model, rows).cpu());
    if (step % 10 != 0) continue;
    std::printf("batch %5d  first answer", step);
    for (int64_t n = 0; n < kWords; ++n) std::printf(" %d", answers.back()[0][n].item<int>());
    std::printf("\n");
  }
  if (argc > 4) save_words(torch::cat(answers).contiguous(), argv[4]);
}
