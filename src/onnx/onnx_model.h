#pragma once

// A mapped file as a workload.

#include <string>

#include "base/result.h"
#include "ir/workload.h"
#include "onnx/mapper.h"

namespace bakeoff::onnx {

// The text of the workload: inputs, the target of the loss, nodes, the loss. Errors: an output that is no float,
// or that the inputs do not reach.
Result<std::string> workload_text(const MapResult& mapped, const std::string& name, const std::string& loss);
std::string target_name(const MapResult& mapped);

// By ParamId.
Result<std::vector<tensor::Tensor>> onnx_weights(const MapResult& mapped, const ir::Workload& workload);

// The numbers of an initialiser or a Constant node; null: there is none.
Result<ArrayPtr> stated(const ModelFile& file, const std::string& name);

// "pytorch 2.3.0, opset 17"
std::string producer(const ModelFile& file);

}  // namespace bakeoff::onnx
