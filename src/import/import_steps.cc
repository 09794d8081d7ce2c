#include "import/import_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/json_text.h"
#include "base/texts.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "referee/init.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

constexpr size_t kMostValues = 1 << 20, kMostValueBytes = 1 << 16;  // of frozen parameters in an IR text

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
                                      lines.size() == 1 ? "" : "s", join(lines, "\n  ")),
               .remedy = "nothing was written; `bakeoff ops` lists the ops that there are"};
}

// With the values of what is frozen, so that the text alone says what is computed: in float64, as the model computes it.
// Where they are too many for a text they stand in the weights alone.
std::string ir_text(const ImportRequest& request, const OriginModel& model, ir::Workload workload,
                    const referee::Weights& weights) {
  const auto text = [&] {
    return fmt::format("# {}, imported with {}.\n{}", request.title(), model.version, ir::dump(workload));
  };
  const std::string plain = text();
  size_t count = 0;
  for (size_t id = 0; id < weights.size(); ++id) {
    ir::Parameter& p = workload.parameters[id];
    if (!p.frozen || (count += weights[id].data.size()) > kMostValues) continue;
    p.values = weights[id].data;
  }
  if (count > kMostValues) return plain;
  std::string whole = text();
  return whole.size() - plain.size() > kMostValueBytes ? plain : whole;
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

}  // namespace

Result<ir::Workload> parse_import(const ImportRequest& request, const OriginModel& model) {
  CHECK_OK(check_ops(model));
  auto parsed = ir::parse(model.text, request.out.string());
  if (!parsed) return at_origin(parsed.error(), model);
  return parsed;
}

Status write_import(const ImportRequest& request, const OriginModel& model, const ImportReport& report,
                    const referee::Weights& weights) {
  std::vector<tensor::TensorSource> named;
  nlohmann::json names = nlohmann::json::object();
  for (size_t id = 0; id < weights.size(); ++id) {
    const std::string& name = report.workload.parameters[id].name;
    const std::vector<double>& held = weights[id].data;
    const auto large = std::find_if(held.begin(), held.end(), [](double x) {
      return std::isfinite(x) && !std::isfinite(static_cast<float>(x));
    });
    if (large != held.end())
      return Error{.message = fmt::format("'{}' holds {}, which is too large for float32", name, *large),
                   .where = request.title(),
                   .remedy = "weights are kept in float32: make the model's numbers smaller"};
    named.push_back(
        tensor::source_of(name, weights[id], referee::held_as(report.workload.parameters[id], weights[id])));
    if (const auto found = model.targets.find(name); found != model.targets.end() && !found->second.empty())
      names[name] = found->second;
  }
  const auto written = [&]() -> Status {
    CHECK_OK(tensor::write_sources(
        report.weights, std::move(named),
        {{"origin", request.title()}, {"made with", model.version}, {"names", dump(names)}}));
    CHECK_OK(write_file(report.ir, ir_text(request, model, report.workload, weights)));
    return write_file(report.recipe, import_recipe(request, report.workload));
  }();
  if (!written) {
    std::error_code ignored;
    for (const fs::path& file : {report.weights, report.ir, report.recipe}) fs::remove(file, ignored);
  }
  return written;
}

}  // namespace bakeoff
