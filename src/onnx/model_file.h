#pragma once

// Reads an ONNX file: its messages, and the numbers of a tensor, in the file or in files next to it.
//
//   TRY(ModelFile file, ModelFile::open("model.onnx"));
//   TRY(ArrayPtr weight, file.decode(file.model().graph().initializer(0)));

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "onnx/array.h"

namespace bakeoff::onnx {

namespace wire {
class ModelProto;
class TensorProto;
}  // namespace wire

class ModelFile {
 public:
  // Errors: no file; 2 GB or more (protobuf's limit); no protobuf, a truncated one, one without a graph.
  static Result<ModelFile> open(const std::filesystem::path& path);
  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;
  ~ModelFile();

  const wire::ModelProto& model() const { return *model_; }
  const std::filesystem::path& path() const { return path_; }

  // Errors: a type without numbers, a shape that does not fit the bytes, an external file that is not there,
  // is too short, or lies outside the model's folder.
  Result<ArrayPtr> decode(const wire::TensorProto& tensor) const;

 private:
  ModelFile(std::filesystem::path path, std::unique_ptr<wire::ModelProto> model);
  std::filesystem::path path_;
  std::unique_ptr<wire::ModelProto> model_;
};

// "float", "int64", ...: the name of a data type of ONNX, or its number.
std::string type_name(int32_t type);
// Whether a data type is read, and as what. Errors name the type.
Result<Kind> kind_of(int32_t type);

}  // namespace bakeoff::onnx
