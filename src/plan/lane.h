#pragma once

// A lane: a contender that can be started; and the job of the gate.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "environments/interpreters.h"
#include "ir/training.h"
#include "ir/workload.h"
#include "records/trial.h"
#include "worker/worker.h"

namespace bakeoff {

// What the gate is to prove for all contenders of a run.
// Contenders that make more steps in a call are compared by the losses of their steps alone.
inline constexpr int64_t kMostPerCall = 16;

struct GateJob {
  ir::Workload workload = {};
  ir::Training training = {};
  std::filesystem::path data = {};  // safetensors file with raw values
  int64_t rows = 0;                 // rows of the data
  // Initial weights that the recipe names, as the run keeps them; empty: drawn from training.seed.
  std::filesystem::path weights = {};
  int64_t steps = 10;  // float32 steps, a multiple of `per_call`
  // Steps of whole calls of every contender (at most kMostPerCall): parameters are compared after whole calls.
  int64_t per_call = 1;
  int64_t devices = 1;  // of every contender: a batch that is cut divides by it, as the whole one does
  std::filesystem::path folder = {};  // existing folder for the gate's files
  // Scripts train on batches of training.batch rows in place of their own size (reference/reference.h).
  bool cut = false;
};

// What a worker of a contender is started with: in the gate, the race and the studies.
struct ContenderStart {
  Contender contender = {};
  std::filesystem::path script = {}, layout = {};
  std::string script_text = {};  // the script when the run began; empty: its text is not checked
  WorkerSpec worker = {};
  bool unbiased_running_var = false;
  int64_t steps_per_call = 1;  // training steps that one call makes
  // For a precision variant: its float32 counterpart (parity/proof_variants.h). Empty: it computes in float32
  // itself.
  std::filesystem::path twin_script = {}, twin_layout = {};
  std::map<std::string, std::string> twin_options = {};
  // In place of the run's own, for a contender of another run that races in this one; empty: the run's own.
  std::filesystem::path data = {}, weights = {};
};

// Whether it compiles through a cache on disk (inductor): slow the first time, fast in later processes.
bool keeps_compilations(const Contender& contender);
// About how long the gate takes to prove it, among others; a precision variant takes twice as long.
double proof_seconds(const ContenderStart& contender);

// A contender that can be started, or the reason why it cannot.
struct Lane {
  ContenderStart entry = {};
  std::optional<Failure> failure = {};
  std::string identity = {};  // Interpreter::identity of its environment
};

}  // namespace bakeoff
