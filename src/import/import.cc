#include "import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/nearest.h"
#include "base/temporary_folder.h"
#include "base/texts.h"
#include "import/import_steps.h"
#include "ir/text.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

// Why the origin's weights and the workload's parameters do not fit is a defect: both come from one export.
Result<referee::Weights> read_weights(const ir::Workload& workload, const fs::path& file) {
  TRY(const auto stored, tensor::SafetensorsFile::open(file));
  referee::Weights weights;
  for (const ir::Parameter& p : workload.parameters) {
    TRY(tensor::Tensor one, stored.read(p.name));
    const auto finite = [](double x) { return std::isfinite(x); };
    if (ir::trainable(p) && !std::all_of(one.data.begin(), one.data.end(), finite))
      return Error{
          .message = fmt::format("the model's weight '{}' holds numbers that are not finite", p.name),
          .remedy = "nothing was written; import the model before its training went wrong"};
    weights.push_back(std::move(one));
  }
  return weights;
}

Status check_request(const ImportRequest& request) {
  if (request.out.extension() != ".ir")
    return Error{.message = fmt::format("--out '{}' does not end in .ir", request.out.string()),
                 .remedy = "name the IR file; weights and recipe are written next to it"};
  if (!request.knows_inputs || !request.loss.empty()) {
    if (const auto loss = ir::parse_loss(request.loss); !loss)
      return Error{.message = "--loss " + loss.error().message, .remedy = loss.error().remedy};
  }
  if (request.socket.empty() && !fs::exists(request.file))
    return Error{.message = fmt::format("there is no file '{}'", request.file.string()),
                 .remedy = "name a Python file and what makes the model, model.py:make, or an ONNX file"};
  for (const ImportInput& input : request.inputs) {
    if (input.type.shape[0] != request.inputs[0].type.shape[0])
      return Error{.message = "the inputs differ in their batch size",
                   .remedy = "every --input needs the same first number"};
  }
  return Done{};
}

fs::path beside(const fs::path& ir, const char* extension) {
  return fs::path(ir).replace_extension(extension);
}

}  // namespace

Result<ImportReport> import_model(const ImportRequest& asked, const Progress& progress) {
  CHECK_OK(check_request(asked));
  ImportRequest request = asked;
  ImportReport report{.ir = request.out,
                      .weights = beside(request.out, ".safetensors"),
                      .recipe = beside(request.out, ".toml")};
  for (const fs::path& file : {report.ir, report.weights, report.recipe}) {
    if (fs::exists(file) && !request.force && !request.count)
      return Error{.message = fmt::format("'{}' exists", file.string()), .remedy = "--force replaces it"};
  }
  TRY(const TemporaryFolder scratch, TemporaryFolder::make("import"));
  if (request.is_onnx()) {
    CHECK_OK(import_onnx(request, scratch.path(), report, progress));
    return report;
  }
  TRY(Origin origin, Origin::start(request, scratch.path()));
  progress("loading " + request.title());
  TRY(const OriginModel model, origin.export_model());
  TRY(report.workload, parse_import(request, model));
  report.numbers = model.numbers;
  if (request.count) return report;
  TRY(referee::Weights weights, read_weights(report.workload, origin.weights()));
  TRY(report.proof,
      prove_import(origin, model, report.workload, std::move(weights), scratch.path(), progress));
  report.notes = model.notes;
  if (!model.unused.empty()) {
    constexpr size_t kNamed = 8;
    std::vector<std::string> named(
        model.unused.begin(),
        model.unused.begin() + static_cast<long>(std::min(kNamed, model.unused.size())));
    if (model.unused.size() > kNamed) named.push_back(fmt::format("{} more", model.unused.size() - kNamed));
    report.notes.push_back(
        fmt::format("tensors that the output does not depend on are left out: {}", join(named, ", ")));
  }
  if (report.workload.parameter_count() == 0)
    report.notes.push_back(
        "no trained parameter reaches the output: there is nothing for `bakeoff run` to train");
  if (request.inputs.empty()) request.inputs = {{.type = {ir::DType::kF32, {model.batch}}}};
  // Read again: the proof has moved them, and two copies of a large model are too many.
  TRY(const referee::Weights own, read_weights(report.workload, origin.weights()));
  CHECK_OK(write_import(request, model, report, own));
  return report;
}

}  // namespace bakeoff
