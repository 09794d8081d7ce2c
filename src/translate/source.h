#pragma once

// What is translated: a model that is imported, a workload with its weights, or a recipe.

#include <filesystem>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "import/origin.h"
#include "recipe/recipe.h"

namespace bakeoff {

struct TranslationSource {
  recipe::Recipe recipe = {};  // its workload, weights, training and data count, its contenders do not
  std::string title = {};      // "model.py:make"
  std::string proof = {};      // of the import; empty: nothing was imported
  std::vector<std::string> notes = {};
};

// Rows of a batch where neither recipe nor input states them.
inline constexpr int64_t kTranslationBatch = 8;

// A torch module or an ONNX file: imported into `folder`, its loss mse where the request names none.
Result<TranslationSource> imported_source(ImportRequest request, const std::filesystem::path& folder,
                                          const Progress& progress);
// A workload (.ir); `weights` empty: the .safetensors file of its name next to it.
Result<TranslationSource> workload_source(const std::filesystem::path& file, std::filesystem::path weights,
                                          const std::filesystem::path& folder);
// A recipe that trains (.toml).
Result<TranslationSource> recipe_source(const std::filesystem::path& file);

}  // namespace bakeoff
