#include "onnx/onnx_model.h"

#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <algorithm>
#include <map>

#include "ir/text.h"

namespace bakeoff::onnx {
namespace {

std::string type_text(Kind kind, const Shape& shape) {
  return fmt::format("{}[{}]", kind == Kind::kFloat ? "f32" : "i32", numbers_text(shape));
}

}  // namespace

std::string target_name(const MapResult& mapped) {
  std::string name = "y";
  const auto taken = [&] {
    return std::any_of(mapped.inputs.begin(), mapped.inputs.end(),
                       [&](const auto& one) { return one.first == name; }) ||
           mapped.text.find("  " + name + " = ") != std::string::npos;
  };
  for (int count = 2; taken(); ++count) name = fmt::format("y{}", count);
  return name;
}

Result<std::string> workload_text(const MapResult& mapped, const std::string& name, const std::string& loss) {
  const Value& output = mapped.output;
  CHECK_OK(check_output(output, mapped.output_names[0]));
  TRY(const ir::LossText named, ir::parse_loss(loss));
  const std::string target = target_name(mapped);
  std::string text = "workload " + name + "(";
  for (const auto& [input, type] : mapped.inputs)
    text += input + ": " + type_text(type.first, type.second) + ", ";
  Shape shape = ir_shape(output.layout);
  Kind kind = Kind::kFloat;
  if (named.op == "softmax_cross_entropy") {
    kind = Kind::kInt;
    shape.pop_back();
  } else if (named.op == "ctc" && shape.size() > 1) {  // the largest number of labels that surely fits
    kind = Kind::kInt;
    shape = {shape[0], (shape[1] + 1) / 2};
  }
  return fmt::format("{}{}: {}) {{\n{}  loss = {}({}, {}) {}\n}}\n", text, target, type_text(kind, shape),
                     mapped.text, named.op, output.name, target, named.attributes);
}

Result<std::vector<tensor::Tensor>> onnx_weights(const MapResult& mapped, const ir::Workload& workload) {
  std::map<std::string, const GraphParameter*> by_name;
  for (const GraphParameter& p : mapped.parameters) by_name[p.name] = &p;
  std::vector<tensor::Tensor> weights;
  for (const ir::Parameter& p : workload.parameters) {
    const auto found = by_name.find(p.name);
    if (found == by_name.end())
      return Error{.message = fmt::format("the parameter '{}' has no numbers", p.name)};
    weights.push_back({found->second->array->shape, found->second->array->reals});
  }
  return weights;
}

namespace {

Result<ArrayPtr> stated_in(const ModelFile& file, const wire::GraphProto& graph, const std::string& name) {
  for (const auto& tensor : graph.initializer()) {
    if (tensor.name() == name) return file.decode(tensor);
  }
  for (const auto& node : graph.node()) {
    const bool here = node.op_type() == "Constant" && node.output_size() == 1 && node.output(0) == name;
    for (const auto& a : node.attribute()) {
      if (here && a.name() == "value") return file.decode(a.t());
      if (here && a.name() == "value_floats") {
        Array numbers{.kind = Kind::kFloat, .shape = {a.floats_size()}};
        numbers.reals.assign(a.floats().begin(), a.floats().end());
        return std::make_shared<const Array>(std::move(numbers));
      }
      if (!a.has_g()) continue;
      TRY(const ArrayPtr inner, stated_in(file, a.g(), name));
      if (inner != nullptr) return inner;
    }
  }
  return ArrayPtr();
}

}  // namespace

Result<ArrayPtr> stated(const ModelFile& file, const std::string& name) {
  return stated_in(file, file.model().graph(), name);
}

std::string producer(const ModelFile& file) {
  const wire::ModelProto& model = file.model();
  int64_t opset = 0;
  for (const auto& one : model.opset_import()) {
    if (one.domain().empty() || one.domain() == "ai.onnx") opset = one.version();
  }
  std::string made;
  for (const char c : model.producer_name() + " " + model.producer_version()) {
    if (c >= ' ' && c < 127) made += c;
  }
  return fmt::format("{}, opset {}", made == " " ? "an unknown producer" : made, opset);
}

}  // namespace bakeoff::onnx
