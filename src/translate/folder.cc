#include "translate/folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"
#include "data/inputs.h"
#include "emit/emit.h"
#include "environments/requirements.h"
#include "plan/plan.h"
#include "proc/run.h"
#include "referee/evaluate.h"
#include "sample/machine_limits.h"
#include "tensor/safetensors.h"
#include "worker/compiled_contender.h"
#include "worker/worker_messages.h"

namespace bakeoff {
namespace {

constexpr const char* kData = "data.safetensors";
constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kExpected = "expected.safetensors";
constexpr int64_t kExampleBatches = 4;

// A data file of the first batches alone, which shares nothing with the file that all runs link to.
Status cut_data(const fs::path& file, const recipe::Recipe& recipe) {
  const fs::path part = fs::path(file).replace_extension(".part");
  {
    TRY(const auto data, tensor::SafetensorsFile::open(file));
    const auto* entry = data.find(recipe.workload.inputs[0].name);
    const int64_t rows = std::min(entry->shape[0], kExampleBatches * recipe.training.batch);
    CHECK_OK(copy_rows(file, rows, rows, part));
  }
  std::error_code code;
  fs::rename(part, file, code);
  if (code) return Error{.message = fmt::format("cannot write '{}': {}", file.string(), code.message())};
  return Done{};
}

Result<std::string> requirements_of(const TranslationTarget& target) {
  const std::string environment = target.framework->environment(target.settings);
  for (const Requirements& one : shipped_requirements()) {
    if (one.name == environment) return one.text;
  }
  return Error{.message = fmt::format("there are no requirements '{}'", environment)};
}

Status write_expected(const tensor::Tensor& expected, const fs::path& file) {
  TRY(auto raw, tensor::encode(expected, tensor::DType::kF64));
  return tensor::write_safetensors(file, {{"output", std::move(raw)}});
}

}  // namespace

recipe::Recipe recipe_for(const recipe::Recipe& recipe, const TranslationTarget& target,
                          ir::Scenario scenario) {
  recipe::Recipe one = recipe;
  one.training.scenario = scenario;
  one.contenders = {recipe::emitted_contender(scenario, *target.framework, target.settings)};
  return one;
}

Result<tensor::Tensor> expected_output(const recipe::Recipe& recipe, const fs::path& data,
                                       const fs::path& weights) {
  TRY(const auto stored, tensor::SafetensorsFile::open(weights));
  referee::Weights all;
  for (const ir::Parameter& p : recipe.workload.parameters) {
    TRY(tensor::Tensor one, stored.read(p.name));
    all.push_back(std::move(one));
  }
  TRY(const auto inputs,
      read_inputs(recipe.workload, data, recipe.training.input_divisor, 0, recipe.training.batch));
  TRY(auto evaluated,
      referee::evaluate(
          recipe.workload, all, inputs,
          {.train = false, .gradients = false, .threads = static_cast<int>(sample::allowed_cpus().size())}));
  return std::move(evaluated.prediction);
}

Result<emit::Example> write_translated(const TranslationJob& job, const TranslationTarget& target,
                                       const Translated& row, const tensor::Tensor& expected,
                                       const fs::path& folder) {
  emit::Example example;
  std::vector<std::string> scripts;
  for (const ir::Scenario scenario : {ir::Scenario::kTrain, ir::Scenario::kPredict}) {
    if (!emit::can(*target.framework, scenario)) continue;
    const recipe::Recipe recipe = recipe_for(job.source.recipe, target, scenario);
    CHECK_OK(write_scripts(recipe, folder, kSilent));
    const recipe::Contender& contender = recipe.contenders.front();
    scripts.push_back(contender.file);
    TRY(emit::Emitted emitted,
        target.framework->emit({recipe.workload, recipe.training, contender.settings, contender.file}));
    if (!emitted.example.file.empty()) example = std::move(emitted.example);
  }
  CHECK_OK(cut_data(folder / kData, job.source.recipe));
  CHECK_OK(write_expected(expected, folder / kExpected));
  CHECK_OK(write_file(folder / example.file, example.text));
  TRY(const std::string requirements, requirements_of(target));
  CHECK_OK(write_file(folder / "requirements.txt", requirements));
  CHECK_OK(write_file(folder / "README.md", folder_readme(job, target, row, example, scripts, folder)));
  return example;
}

Result<std::string> run_example(const fs::path& folder, const emit::Example& example,
                                const emit::Framework& framework, const fs::path& python, double seconds,
                                const fs::path& scratch) {
  proc::CommandOptions options;
  if (framework.extension == ".cc") {
    if (const auto failed =
            compile_folder(folder, fs::path(example.file).stem().string(), python, scratch / "build"))
      return Error{.message = failed->text() + "\n" + failed->log_tail};
    options.child.argv = {(scratch / "build" / fs::path(example.file).stem()).string(), "."};
  } else {
    options.child.argv = {python.string(), "-B", example.file};
  }
  options.child.cwd = folder;
  options.child.env = {framework.worker_variables.begin(), framework.worker_variables.end()};
  options.child.env_remove = {"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP"};
  options.child.own_temporary_folder = true;
  options.timeout_ns = static_cast<int64_t>(seconds * static_cast<double>(kSecond));
  TRY(const auto result, proc::run_command(options));
  if (!result.ok()) return Error{.message = result.text() + "\n" + last_lines(result.output_tail, 20)};
  return last_lines(result.output_tail, 1);
}

}  // namespace bakeoff
