#pragma once

// A translation as plain values: what is asked for, and what came of it.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "plan/lane.h"
#include "records/trial.h"
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
  // Whether every framework was written.
  bool complete() const {
    return std::all_of(rows.begin(), rows.end(), [](const Translated& row) { return row.written(); });
  }
};

}  // namespace bakeoff
