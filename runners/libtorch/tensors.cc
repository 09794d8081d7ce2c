#include "tensors.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "json.h"
#include "worker.h"

namespace bakeoff {
namespace {

constexpr uint64_t kMaxHeader = uint64_t{100} << 20;

const std::pair<const char*, torch::ScalarType> kTypes[] = {
    {"F64", torch::kFloat64}, {"F32", torch::kFloat32}, {"F16", torch::kFloat16}, {"BF16", torch::kBFloat16},
    {"I64", torch::kInt64},   {"I32", torch::kInt32},   {"I16", torch::kInt16},   {"I8", torch::kInt8},
    {"U8", torch::kUInt8},    {"BOOL", torch::kBool}};

torch::ScalarType type_of(const std::string& name) {
  for (const auto& [text, type] : kTypes) {
    if (name == text) return type;
  }
  throw AdapterError("dtype '" + name + "' is not known here");
}

std::string name_of(torch::ScalarType type) {
  for (const auto& [text, known] : kTypes) {
    if (known == type) return text;
  }
  throw AdapterError(std::string("a tensor of ") + torch::toString(type) + " cannot be written");
}

torch::Tensor read_one(std::ifstream& file, uint64_t data_at, const Json& entry) {
  const Json *dtype = entry.find("dtype"), *shape = entry.find("shape"), *range = entry.find("data_offsets");
  if (dtype == nullptr || shape == nullptr || range == nullptr || range->array().size() != 2) {
    throw AdapterError("needs dtype, shape and two data_offsets");
  }
  std::vector<int64_t> sizes;
  for (const Json& size : shape->array()) sizes.push_back(size.integer());
  torch::Tensor tensor = torch::empty(sizes, type_of(dtype->string()));
  const int64_t begin = range->array()[0].integer(), end = range->array()[1].integer();
  if (begin < 0 || end - begin != static_cast<int64_t>(tensor.nbytes())) {
    throw AdapterError("its bytes are not those of its shape");
  }
  file.seekg(static_cast<std::streamoff>(data_at) + begin);
  file.read(static_cast<char*>(tensor.data_ptr()), end - begin);
  if (!file) throw AdapterError("the file ends before its data");
  return tensor;
}

}  // namespace

Tensors read_safetensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!file || length > kMaxHeader) throw AdapterError("'" + path + "' is not there, or no safetensors file");
  std::string header(length, '\0');
  file.read(header.data(), static_cast<std::streamsize>(length));
  if (!file) throw AdapterError("'" + path + "' ends within its header");
  Tensors tensors;
  std::string name;
  try {
    const Json entries = Json::parse(header);
    for (const auto& [key, entry] : entries.object()) {
      name = key;
      if (key != "__metadata__") tensors[key] = read_one(file, 8 + length, entry);
    }
  } catch (const std::exception& error) {
    throw AdapterError("'" + path + "', tensor '" + name + "': " + error.what());
  }
  return tensors;
}

void write_safetensors(const std::string& path, const Tensors& tensors) {
  Json header = Json::Object();
  Tensors plain;
  int64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor one = plain[name] = tensor.detach().cpu().contiguous();
    const auto bytes = static_cast<int64_t>(one.nbytes());
    Json::Array shape(one.sizes().begin(), one.sizes().end());
    header[name] = {{"dtype", name_of(one.scalar_type())},
                    {"shape", std::move(shape)},
                    {"data_offsets", Json::Array{at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  const std::string partial = path + ".part" + std::to_string(::getpid());
  std::ofstream file(partial, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length).write(text.data(), text.size());
  for (const auto& [name, tensor] : plain) {
    file.write(static_cast<const char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
  }
  file.close();
  if (!file || std::rename(partial.c_str(), path.c_str()) != 0) {
    std::remove(partial.c_str());
    throw AdapterError("cannot write '" + path + "'");
  }
}

}  // namespace bakeoff
