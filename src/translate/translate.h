#pragma once

// A model in other frameworks: proven by the gate, then written as one folder for each framework, which runs
// without this program.
//
//   jax/  train_jax.py, predict_jax.py   the emitted scripts
//         weights.safetensors            the model's weights
//         data.safetensors               example inputs
//         expected.safetensors           what the referee predicts from them
//         example.py                     predicts with the script, and compares
//         requirements.txt, README.md
//
// Every folder's example is run before the translation counts.

#include <filesystem>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "records/watch.h"
#include "translate/translation.h"

namespace bakeoff {

// Whether a translation may be written to `out`. Error: something else is there, or `force` is missing.
Status check_translation_folder(const std::filesystem::path& out, bool force);

// Writes the frameworks that are proven, all of them at once or, after an error or Ctrl-C, nothing. A
// framework that cannot express the model, is not installed or differs is a row with its reason.
Result<Translation> translate(const TranslationJob& job, const Progress& progress, const Watch& watch);

// translation.json
std::string to_json(const Translation& translation);

}  // namespace bakeoff
