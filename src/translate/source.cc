#include "translate/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "emit/code_writer.h"
#include "import/import.h"
#include "ir/text.h"

namespace bakeoff {
namespace {

constexpr const char* kLossIfNoneIsNamed = "mse";
constexpr int64_t kBatchesOfData = 4;  // that are drawn
constexpr int64_t kLeastBatch = 4;     // an example of one row is no batch that batch norm trains on
constexpr int64_t kSteps = 3;          // of the proof in float32

// The recipe that stands beside an import, for a proof instead of a race.
Result<recipe::Recipe> recipe_beside(const fs::path& file) {
  TRY(recipe::Recipe recipe, recipe::load(file));
  recipe.training.batch = std::max(recipe.training.batch, kLeastBatch);
  recipe.data.samples = kBatchesOfData * recipe.training.batch;
  recipe.race.parity_steps = kSteps;
  return recipe;
}

std::string proof_of(const ImportRequest& request, const ImportProof& proof) {
  if (request.is_onnx()) {
    return fmt::format(
        "outputs differ from ONNX Runtime's by {:.1e}, from those of ONNX's reference in float64 by {:.1e}",
        proof.float32, proof.outputs);
  }
  return fmt::format("in float64 outputs differ by {:.1e} at most, gradients of {} parameters by {:.1e}",
                     proof.outputs, proof.parameters, proof.gradients);
}

}  // namespace

Result<TranslationSource> imported_source(ImportRequest request, const fs::path& folder,
                                          const Progress& progress) {
  TranslationSource source{.title = request.title()};
  if (request.loss.empty() && request.knows_inputs) {
    request.child += fmt::format("={}", kLossIfNoneIsNamed);  // of a model that has none
  } else if (request.loss.empty()) {
    request.loss = kLossIfNoneIsNamed;
    source.notes.push_back(fmt::format("no --loss is named: the scripts train with {}", request.loss));
  }
  request.out = folder / (emit::identifier(request.file.stem().string()) + ".ir");
  TRY(const ImportReport report, import_model(request, progress));
  TRY(source.recipe, recipe_beside(report.recipe));
  source.proof = proof_of(request, report.proof);
  source.notes.insert(source.notes.end(), report.notes.begin(), report.notes.end());
  return source;
}

Result<TranslationSource> workload_source(const fs::path& file, fs::path weights, const fs::path& folder) {
  TRY(const std::string text, read_file(file));
  TRY(const ir::Workload workload, ir::parse(text, file.string()));
  if (weights.empty()) weights = fs::path(file).replace_extension(".safetensors");
  if (!fs::exists(weights)) {
    return Error{.message = fmt::format("there are no weights '{}'", weights.string()),
                 .remedy = "--weights names the safetensors file that holds them"};
  }
  const fs::path copy = folder / file.filename();
  std::error_code code;
  fs::create_symlink(fs::absolute(weights), fs::path(copy).replace_extension(".safetensors"), code);
  if (code) return Error{.message = fmt::format("cannot link '{}': {}", weights.string(), code.message())};
  CHECK_OK(write_file(copy, text));
  const ImportRequest request{
      .file = file, .inputs = {{.type = {ir::DType::kF32, {kTranslationBatch}}}}, .out = copy};
  const fs::path recipe = fs::path(copy).replace_extension(".toml");
  CHECK_OK(write_file(recipe, import_recipe(request, workload)));
  TranslationSource source{.title = file.filename().string()};
  TRY(source.recipe, recipe_beside(recipe));
  return source;
}

Result<TranslationSource> recipe_source(const fs::path& file) {
  TranslationSource source{.title = file.filename().string()};
  TRY(source.recipe, recipe::load(file));
  if (source.recipe.training.predicts() || !source.recipe.training.equalised()) {
    return Error{
        .message = "a translation needs a recipe that trains from weights that are the same everywhere",
        .where = file.string(),
        .remedy = "remove scenario = \"predict\" or track = \"as-is\""};
  }
  return source;
}

}  // namespace bakeoff
