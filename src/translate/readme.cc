#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "base/texts.h"
#include "base/version.h"
#include "environments/requirements.h"
#include "ir/text.h"
#include "translate/folder.h"
#include "translate/translate.h"

namespace bakeoff {
namespace {

using Json = nlohmann::json;

// A larger bound is not one of a relative difference, but of dropout's masks or of batches.
constexpr double kLargestBound = 1e-2;

// In a cell of a Markdown table.
std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find_first_of("|\n", at)) != std::string::npos; at += 2)
    text.replace(at, 1, text[at] == '|' ? "\\|" : "; ");
  return text;
}

std::string checks_table(const Parity& parity) {
  std::string text = "| compared | largest relative difference | bound |\n|---|---|---|\n";
  for (const ParityCheck& check : parity.checks) {
    if (check.tolerance <= 0 || check.tolerance > kLargestBound) continue;
    text += fmt::format("| {} | {:.1e} | {:.0e} |\n", cell(check.what), check.error, check.tolerance);
  }
  return text;
}

std::string pip_command(const TranslationTarget& target) {
  const std::string environment = target.framework->environment(target.settings);
  for (const Requirements& one : shipped_requirements()) {
    if (one.name == environment && without_dependencies(one))
      return "python -m pip install --no-deps -r requirements.txt";
  }
  return "python -m pip install -r requirements.txt";
}

std::string versions(const Parity& parity) {
  std::vector<std::string> all;
  for (const auto& [package, version] : parity.versions) all.push_back(package + " " + version);
  return join(all, ", ");
}

std::string inputs_of(const ir::Workload& workload) {
  std::vector<std::string> all;
  for (const ir::Input& input : workload.inputs)
    all.push_back(fmt::format("`{}` {}", input.name, ir::to_text(input.type)));
  return join(all, ", ");
}

}  // namespace

std::string folder_readme(const TranslationJob& job, const TranslationTarget& target, const Translated& row,
                          const emit::Example& example, const std::vector<std::string>& scripts,
                          const fs::path& folder) {
  std::string text = fmt::format(
      "# {} in {}\n\nThe same computation with the same weights, translated by Bakeoff {}. Nothing here needs "
      "Bakeoff.\n\n```\n{}\n{}\n```\n\n| file | what |\n|---|---|\n",
      job.source.title, target.framework->title, kVersion, pip_command(target), example.commands);
  const char* const what[] = {"the model and its training: the loss, the optimizer, the loop over batches",
                              "the model in inference mode"};
  const bool trains = emit::can(*target.framework, ir::Scenario::kTrain);
  for (size_t i = 0; i < scripts.size(); ++i) {
    text += fmt::format("| `{}` | {} |\n", scripts[i], what[trains ? i : 1]);
    if (const fs::path layout = fs::path(scripts[i]).replace_extension(".layout.json");
        fs::exists(folder / layout))
      text += fmt::format("| `{}` | how that script stores each weight |\n", layout.string());
  }
  text += fmt::format(
      "| `{}` | predicts from the first batch of the data, and compares with what the original predicts |\n"
      "| `weights.safetensors` | the weights, by the names of the original |\n"
      "| `data.safetensors` | example rows: {}. Replace them by your own |\n"
      "| `expected.safetensors` | what the original predicts for the first batch |\n"
      "| `requirements.txt` | the packages that it was proven with |\n",
      example.file, inputs_of(job.source.recipe.workload));
  text += "\n## Proven\n\n";
  if (!job.source.proof.empty())
    text +=
        fmt::format("The import of {}: {}. Then, against that import", job.source.title, job.source.proof);
  else
    text += "Against the float64 reference";
  text += fmt::format(" ({}):\n\n{}", versions(row.parity), checks_table(row.parity));
  if (!job.source.notes.empty()) text += "\n## Notes\n\n";
  for (const std::string& note : job.source.notes) text += fmt::format("- {}\n", note);
  return text;
}

std::string translation_readme(const Translation& translation) {
  std::string text =
      fmt::format("# {}, translated\n\n| framework | folder | |\n|---|---|---|\n", translation.model);
  for (const Translated& row : translation.rows) {
    text += row.written() ? fmt::format("| {0} | [{1}/]({1}/README.md) | proven equal; {2} |\n", row.title,
                                        row.folder, cell(row.example))
                          : fmt::format("| {} | not written | {} |\n", row.title, cell(row.reason));
  }
  if (!translation.proof.empty()) text += fmt::format("\nThe import: {}.\n", translation.proof);
  for (const std::string& note : translation.notes) text += fmt::format("\n{}\n", note);
  return text;
}

std::string to_json(const Translation& translation) {
  Json rows = Json::array();
  for (const Translated& row : translation.rows) {
    Json checks = Json::array();
    for (const ParityCheck& check : row.parity.checks) {
      checks.push_back({{"what", check.what},
                        {"tensor", check.tensor},
                        {"error", check.error},
                        {"tolerance", check.tolerance},
                        {"passed", check.passed}});
    }
    rows.push_back({{"name", row.name},
                    {"title", row.title},
                    {"written", row.written()},
                    {"folder", row.written() ? (translation.out / row.folder).string() : ""},
                    {"reason", row.reason},
                    {"log", row.log},
                    {"example", row.example},
                    {"versions", row.parity.versions},
                    {"checks", checks}});
  }
  const Json all = {{"bakeoff", kVersion},
                    {"model", translation.model},
                    {"out", translation.out.string()},
                    {"import", translation.proof},
                    {"rows", rows},
                    {"notes", translation.notes}};
  return dump(all, 2) + "\n";
}

}  // namespace bakeoff
