#include "translate/translate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/temporary_folder.h"
#include "base/texts.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/import_options.h"
#include "cli/output.h"
#include "cli/usage.h"
#include "emit/all/frameworks.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "recipe/shipped.h"

namespace bakeoff::cli {

struct TranslateOptions {
  ImportOptions model = {};  // FILE.py:NAME, an ONNX file, a workload or a recipe; without `out`
  std::string to = {};       // "keras,jax"
  fs::path weights = {};
  fs::path out = {};  // empty: <model>_translated
  std::string format = "text";
};

namespace {

// "model.py:make" and "dir/model.onnx" give model_translated.
fs::path default_folder(const std::string& model) {
  const fs::path file = model.substr(0, model.rfind(".py:"));
  return file.filename().stem().string() + "_translated";
}

Result<TranslationSource> source_of(const TranslateOptions& options, const fs::path& config,
                                    const fs::path& folder, const Progress& progress) {
  const fs::path file = options.model.model;
  if (file.extension() == ".toml" || recipe::find_shipped(file) != nullptr) return recipe_source(file);
  if (file.extension() == ".ir") return workload_source(file, options.weights, folder);
  TRY(const ImportRequest request, import_request(options.model, config));
  return imported_source(request, folder, progress);
}

Result<Translation> translation(const TranslateOptions& options, const fs::path& config,
                                ConsoleProgress& progress) {
  TranslationJob job{.out = options.out.empty() ? default_folder(options.model.model) : options.out,
                     .force = options.model.force};
  CHECK_OK(check_translation_folder(job.out, job.force));
  TRY(job.interpreters, find_interpreters(config));
  TRY(job.targets, translation_targets(options.to, job.interpreters));
  TRY(const TemporaryFolder folder, TemporaryFolder::make("source"));
  TRY(job.source, source_of(options, config, folder.path(), progress.lines()));
  return translate(job, progress.lines(), progress.race());
}

// The check that says most: gradients, of what does not train the prediction.
std::string proven(const Parity& parity) {
  for (const char* what : {"float64 gradients", "float64 prediction"}) {
    for (const ParityCheck& check : parity.checks) {
      if (check.what == what) return fmt::format("proven equal ({} within {:.1e})", what, check.error);
    }
  }
  return "proven equal";
}

void show(const Translation& translation) {
  size_t width = 0;
  for (const Translated& row : translation.rows) width = std::max(width, row.name.size());
  for (const Translated& row : translation.rows) {
    if (row.written()) {
      print(fmt::format("{:<{}}  {}: {}; {}\n", row.name, width, (translation.out / row.folder).string(),
                        proven(row.parity), row.example));
      continue;
    }
    print(fmt::format("{:<{}}  not written: {}\n", row.name, width, row.reason));
  }
  if (!translation.proof.empty()) print(fmt::format("the import: {}\n", translation.proof));
  for (const std::string& note : translation.notes) print("note: " + note + "\n");
}

int translate(const TranslateOptions& options, const fs::path& config) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  const auto done = [&] {
    ConsoleProgress progress;
    return translation(options, config, progress);
  }();
  if (!done) return fail(done.error());
  if (options.format == "json")
    print(to_json(*done));
  else
    show(*done);
  return done->complete() ? 0 : 1;
}

Action add_translate(CLI::App& sub) {
  const auto options = std::make_shared<TranslateOptions>();
  std::vector<std::string> names;
  for (const emit::Framework* framework : emit::frameworks()) names.push_back(framework->name);
  sub.footer(
      "Example:\n  bakeoff translate model.py:make --input 'f32[8,3,32,32]' --loss softmax_cross_entropy --to " +
      names.back());
  add_model_options(sub, options->model, "an ONNX file; a workload (.ir) with weights; or a recipe (.toml)");
  sub.add_option("--to", options->to, fmt::format("names, with commas between them: {}", join(names, ", ")))
      ->required();
  sub.add_option("--weights", options->weights,
                 "weights of a workload; default: the .safetensors file of its name next to it")
      ->type_name("FILE");
  sub.add_option("--out", options->out, "folder; default MODEL_translated");
  sub.add_option("--format", options->format, "text or json")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  return [options](const Invocation& line) { return translate(*options, line.config); };
}

}  // namespace

const Command kTranslate = {
    "translate",
    "Write a model of your own in other frameworks, with its weights: proven equal, one folder for each, which runs "
    "alone",
    nullptr, add_translate};

}  // namespace bakeoff::cli
