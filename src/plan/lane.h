#pragma once

// A contender that can be started, and what is to be proven of all of them.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "ir/training.h"
#include "ir/workload.h"
#include "records/trial.h"
#include "worker/worker.h"

namespace bakeoff {

// What is to be proven.
struct GateJob {
  ir::Workload workload = {};
  ir::Training training = {};
  std::filesystem::path data = {};    // safetensors, raw values
  int64_t rows = 0;                   // in it
  int64_t steps = 10;                 // in float32
  std::filesystem::path folder = {};  // for the files below; exists
};

struct GateContender {
  Contender contender = {};
  std::filesystem::path script = {}, layout = {};
  std::string script_text = {};  // as it was when the run began; empty: it is not looked at
  WorkerSpec worker = {};        // dtype is set by the gate
  bool unbiased_running_var = false;
  // Of a precision variant: the same contender in float32 (gate/gate_variants.h). Empty: it is in float32.
  std::filesystem::path twin_script = {}, twin_layout = {};
  std::map<std::string, std::string> twin_options = {};
};

// Whether it compiles through a cache on disk: slowly the first time, quickly in later processes.
bool keeps_compilations(const Contender& contender);

// A contender ready to be started, or the reason why it cannot be.
struct Lane {
  GateContender entry = {};
  std::optional<Failure> failure = {};
  std::string identity = {};  // of its environment
};

// Interpreters by environment name ("torch"); a missing one has its reason.
struct Interpreter {
  std::filesystem::path python = {};
  std::string why_not = {};
  std::string identity = {};  // changes with the interpreter and its packages
};
using Interpreters = std::map<std::string, Interpreter>;

}  // namespace bakeoff
