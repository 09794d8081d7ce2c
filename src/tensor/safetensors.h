#pragma once

// Safetensors files: a little-endian u64 length, a JSON header of that length
//   {"__metadata__": {"key": "text"}, "conv1.weight": {"dtype": "F32", "shape": [32,1,3,3], "data_offsets":
//   [0,1152]}}
// and the raw little-endian data (https://github.com/huggingface/safetensors, "Format").
//
//   CHECK_OK(write_safetensors(path, {{"x", bytes}, {"w", *encode(weights, DType::kF32)}}));
//   TRY(auto file, SafetensorsFile::open(path));       // maps the file: cheap however large
//   TRY(auto batch, file.read_rows("x", 256, 128));    // rows 256..383 as doubles
//
// Little-endian hosts only. Errors name the file and the tensor.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace bakeoff::tensor {

enum class DType { kF64, kF32, kI64, kI32, kU8 };

std::string name(DType dtype);  // "F64", "F32", "I64", "I32", "U8"
size_t size_of(DType dtype);    // in bytes

// A tensor as it lies in a file.
struct RawTensor {
  DType dtype = DType::kF64;
  Shape shape;
  std::string bytes;  // elements(shape) * size_of(dtype), little-endian
  bool operator==(const RawTensor&) const = default;
};

// Rounds to nearest where `dtype` is F32. Fails where a number does not fit an integer type exactly.
Result<RawTensor> encode(const Tensor& tensor, DType dtype);
Result<RawTensor> encode(const IntTensor& tensor, DType dtype);

using Metadata = std::map<std::string, std::string>;
using NamedTensors = std::vector<std::pair<std::string, RawTensor>>;

// Takes the next bytes of a tensor.
using Sink = std::function<Status(std::string_view bytes)>;

// A tensor whose bytes need not be in memory together: `write` hands them on, in order and in pieces of any
// size, elements(shape) * size_of(dtype) in all.
struct TensorSource {
  std::string name;
  DType dtype = DType::kF64;
  Shape shape = {};
  std::function<Status(const Sink&)> write = {};
};

// Of a tensor in memory, which must outlive it; with a type, encoded when it is written.
TensorSource source_of(std::string name, const RawTensor& raw);
TensorSource source_of(std::string name, const Tensor& tensor, DType dtype);

// Writes the file whole or not at all, and holds no more than a piece in memory. Wider types come first, so
// that every tensor is aligned. The metadata gets one more entry, kDigest: the SHA-256 of all data in the
// order of the file.
inline constexpr const char* kDigest = "sha256";
Status stream_safetensors(const std::filesystem::path& path, std::vector<TensorSource> tensors,
                          Metadata metadata = {});

// Writes the file whole or not at all. Wider types come first, so that every tensor is aligned.
Status write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                         const Metadata& metadata = {});
Status write_sources(const std::filesystem::path& path, std::vector<TensorSource> tensors,
                     const Metadata& metadata = {});

// An open file; moves, does not copy. Opening checks the whole header: lengths, dtypes, shapes, offsets
// (inside the file, in one piece, without holes or overlaps), repeated names.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    DType dtype = DType::kF64;
    Shape shape = {};
    size_t begin = 0;  // within the data
    size_t end = 0;
  };

  static Result<SafetensorsFile> open(const std::filesystem::path& path);

  const std::vector<Entry>& entries() const { return entries_; }  // by offset
  const Metadata& metadata() const { return metadata_; }
  const Entry* find(std::string_view tensor) const;  // null if absent

  // Any dtype as doubles (I64 beyond 2^53 fails).
  Result<Tensor> read(std::string_view tensor) const;
  // Rows [first, first + count) of axis 0; only their pages are touched.
  Result<Tensor> read_rows(std::string_view tensor, int64_t first, int64_t count) const;
  // Like read() and read_rows(), but as integers: for I64, I32 and U8. Fails for floats.
  Result<IntTensor> read_ints(std::string_view tensor) const;
  Result<IntTensor> read_int_rows(std::string_view tensor, int64_t first, int64_t count) const;
  // The bytes of a tensor within the mapping; valid while this file lives.
  Result<std::string_view> bytes(std::string_view tensor) const;

 private:
  struct Mapping;
  SafetensorsFile() = default;
  Error error(const std::string& message) const;
  Status parse_header();
  struct Rows;
  Result<Rows> rows(std::string_view tensor, int64_t first, int64_t count) const;
  Result<const Entry*> want(std::string_view tensor) const;

  std::string path_;
  std::shared_ptr<const Mapping> mapping_;  // const after opening
  size_t data_at_ = 0;
  std::vector<Entry> entries_;
  Metadata metadata_;
};

}  // namespace bakeoff::tensor
