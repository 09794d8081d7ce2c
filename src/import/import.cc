#include "import/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/nearest.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

// A folder that vanishes with this object.
struct Scratch {
  fs::path path;
  explicit Scratch(fs::path where) : path(std::move(where)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

// What this program's IR lacks of the ops that the model needs, in one list.
Status check_ops(const OriginModel& model) {
  std::vector<std::string> lines;
  std::set<std::string> seen;
  for (const OriginLine& line : model.lines) {
    if (ir::find_op(line.op) != nullptr || !seen.insert(line.op + line.where).second) continue;
    lines.push_back(fmt::format("{}{} needs the op '{}', which the IR lacks",
                                line.where.empty() ? "" : line.where + ": ", line.source, line.op));
  }
  if (lines.empty()) return Done{};
  return Error{.message = fmt::format("{} op{} cannot be imported:\n  {}", lines.size(),
                                      lines.size() == 1 ? "" : "s", fmt::join(lines, "\n  ")),
               .remedy = "nothing was written; `bakeoff ops` lists the ops that there are"};
}

// What the IR lacks, by the user's line: the IR has one line for each value, behind the head.
Error at_origin(const Error& error, const OriginModel& model) {
  const size_t colon = error.where.rfind(':');
  const auto line = static_cast<size_t>(std::strtoull(error.where.c_str() + colon + 1, nullptr, 10));
  if (colon == std::string::npos || line < 2 || line - 2 >= model.lines.size()) {
    return {.message = "the import is no valid workload: " + error.message, .remedy = error.remedy};
  }
  const OriginLine& origin = model.lines[line - 2];
  return {.message = fmt::format("{} cannot be imported: {}", origin.source, error.message),
          .where = origin.where,
          .remedy = "nothing was written; the IR has no such form of this op"};
}

// Why the origin's weights and the workload's parameters do not fit is a defect: both come from one export.
Result<referee::Weights> read_weights(const ir::Workload& workload, const fs::path& file) {
  TRY(const auto stored, tensor::SafetensorsFile::open(file));
  referee::Weights weights;
  for (const ir::Parameter& p : workload.parameters) {
    TRY(tensor::Tensor one, stored.read(p.name));
    weights.push_back(std::move(one));
  }
  return weights;
}

Status check_request(const ImportRequest& request) {
  if (request.out.extension() != ".ir")
    return Error{.message = fmt::format("--out '{}' does not end in .ir", request.out.string()),
                 .remedy = "name the IR file; weights and recipe are written next to it"};
  const ir::OpInfo* loss = ir::find_op(request.loss);
  if (loss == nullptr || !loss->loss) {
    std::vector<std::string> names;
    for (const ir::OpInfo& row : ir::op_table()) {
      if (row.loss) names.push_back(row.name);
    }
    return Error{.message = fmt::format("--loss '{}' is no loss", request.loss),
                 .remedy = suggest(request.loss, names)};
  }
  if (!fs::exists(request.file))
    return Error{.message = fmt::format("there is no file '{}'", request.file.string()),
                 .remedy = "name a Python file and what makes the model: model.py:make"};
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

std::string ir_text(const ImportRequest& request, const OriginModel& model, const ir::Workload& workload) {
  return fmt::format("# {}:{}, imported with {}.\n{}", request.file.filename().string(), request.function,
                     model.version, ir::dump(workload));
}

// All files, or none of them.
Status write_all(const ImportRequest& request, const OriginModel& model, const ImportReport& report,
                 const referee::Weights& weights) {
  tensor::NamedTensors named;
  nlohmann::json names = nlohmann::json::object();
  for (size_t id = 0; id < weights.size(); ++id) {
    const std::string& name = report.workload.parameters[id].name;
    TRY(auto raw, tensor::encode(weights[id], tensor::DType::kF32));
    named.emplace_back(name, std::move(raw));
    if (const auto found = model.targets.find(name); found != model.targets.end() && !found->second.empty())
      names[name] = found->second;
  }
  const auto written = [&]() -> Status {
    CHECK_OK(tensor::write_safetensors(
        report.weights, named,
        {{"origin", fmt::format("{}:{}", request.file.filename().string(), request.function)},
         {"made with", model.version},
         {"names", names.dump()}}));
    CHECK_OK(write_file(report.ir, ir_text(request, model, report.workload)));
    return write_file(report.recipe, import_recipe(request, report.workload));
  }();
  if (!written) {
    std::error_code ignored;
    for (const fs::path& file : {report.weights, report.ir, report.recipe}) fs::remove(file, ignored);
  }
  return written;
}

}  // namespace

Result<ImportReport> import_model(const ImportRequest& request, const Progress& progress) {
  CHECK_OK(check_request(request));
  ImportReport report{.ir = request.out,
                      .weights = beside(request.out, ".safetensors"),
                      .recipe = beside(request.out, ".toml")};
  for (const fs::path& file : {report.ir, report.weights, report.recipe}) {
    if (fs::exists(file) && !request.force)
      return Error{.message = fmt::format("'{}' exists", file.string()), .remedy = "--force replaces it"};
  }
  std::string made = (fs::temp_directory_path() / "bakeoff_import_XXXXXX").string();
  if (mkdtemp(made.data()) == nullptr) return Error{.message = "no temporary folder: " + made};
  const Scratch scratch(made);
  TRY(Origin origin, Origin::start(request, scratch.path));
  progress(fmt::format("{}:{} is loaded and exported", request.file.filename().string(), request.function));
  TRY(const OriginModel model, origin.export_model());
  CHECK_OK(check_ops(model));
  auto parsed = ir::parse(model.text, request.out.string());
  if (!parsed) return at_origin(parsed.error(), model);
  report.workload = std::move(*parsed);
  TRY(const referee::Weights weights, read_weights(report.workload, origin.weights()));
  TRY(report.proof, prove_import(origin, model, report.workload, weights, scratch.path, progress));
  report.notes = model.notes;
  if (!model.unused.empty())
    report.notes.push_back(fmt::format("tensors that the output does not depend on are left out: {}",
                                       fmt::join(model.unused, ", ")));
  CHECK_OK(write_all(request, model, report, weights));
  return report;
}

}  // namespace bakeoff
