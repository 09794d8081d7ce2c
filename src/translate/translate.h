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
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "plan/lane.h"
#include "records/trial.h"
#include "records/watch.h"
#include "translate/source.h"
#include "translate/targets.h"

namespace bakeoff {

struct TranslationJob {
  TranslationSource source = {};
  std::vector<TranslationTarget> targets = {};
  Interpreters interpreters = {};
  std::filesystem::path out = {};
  bool force = false;  // replaces an earlier translation
};

// One framework of a translation.
struct Translated {
  std::string name = {};    // as it was asked for
  std::string title = {};   // "JAX"
  std::string folder = {};  // below the translation's own; empty: not written
  std::string reason = {};  // why it was not written
  std::string log = {};     // what its process printed last, where that failed
  Parity parity = {};
  std::string example = {};  // what the folder's example printed
  bool written() const { return !folder.empty(); }
};

struct Translation {
  std::filesystem::path out = {};  // empty: nothing was written
  std::string model = {};
  std::string proof = {};  // of the import
  std::vector<Translated> rows = {};
  std::vector<std::string> notes = {};
  bool complete() const;  // every framework was written
};

// Whether a translation may be written to `out`. Error: something else is there, or `force` is missing.
Status check_translation_folder(const std::filesystem::path& out, bool force);

// Writes the frameworks that are proven, all of them at once or, after an error or Ctrl-C, nothing. A
// framework that cannot express the model, is not installed or differs is a row with its reason.
Result<Translation> translate(const TranslationJob& job, const Progress& progress, const Watch& watch);

// translation.json
std::string to_json(const Translation& translation);

}  // namespace bakeoff
