#pragma once

// The folder of one framework. Internal to
// translate/translate.h.

#include <filesystem>
#include <string>

#include "base/result.h"
#include "emit/emit.h"
#include "plan/lane.h"
#include "recipe/recipe.h"
#include "tensor/tensor.h"
#include "translate/translation.h"

namespace bakeoff {

// The recipe with one contender: the target's, in this scenario.
recipe::Recipe recipe_for(const recipe::Recipe& recipe, const TranslationTarget& target,
                          ir::Scenario scenario);

// What the referee predicts for the first batch.
Result<tensor::Tensor> expected_output(const recipe::Recipe& recipe, const std::filesystem::path& data,
                                       const std::filesystem::path& weights);

// Scripts, weights, example data and README; gives the example.
Result<emit::Example> write_translated(const TranslationJob& job, const TranslationTarget& target,
                                       const Translated& row, const tensor::Tensor& expected,
                                       const std::filesystem::path& folder);

// Runs the example of a folder as its README says, but for a build folder in `scratch`. Gives its last line,
// or why it failed.
Result<std::string> run_example(const std::filesystem::path& folder, const emit::Example& example,
                                const emit::Framework& framework, const std::filesystem::path& python,
                                double seconds, const std::filesystem::path& scratch);

// The README of a framework's folder, and that of the whole translation.
std::string folder_readme(const TranslationJob& job, const TranslationTarget& target, const Translated& row,
                          const emit::Example& example, const std::vector<std::string>& scripts,
                          const std::filesystem::path& folder);
std::string translation_readme(const Translation& translation);

}  // namespace bakeoff
