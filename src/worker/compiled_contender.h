#pragma once

// Contenders that are programs: C++ sources compiled, with the runner of runners/libtorch, into a worker that
// speaks the runner protocol. CMake and the C++ compiler of this machine build them against the libtorch
// inside the torch package of an environment.
//
//   const Compiled worker = compile_contender({.sources = {run / "scripts/train_libtorch.cc"},
//                                              .python = home / "envs/torch/bin/python", .home = home},
//                                              progress);
//   if (worker.failure) ...                 // stage "compile": no compiler, or its errors
//   spec.command = {worker.program};
//
// Below `home`/compiled/ a worker is kept under the SHA-256 of sources, runner, torch and compiler, and used
// again as long as none of them changes. What all workers share is compiled once for each runner, torch and
// compiler, in `home`/compiled/runner-<hash>/. Two processes may do this at once: the second waits.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "records/trial.h"

namespace bakeoff {

struct CompileJob {
  // C++ programs with the idiom of runners/libtorch/script.h; the worker knows each by its file's stem.
  std::vector<std::filesystem::path> sources = {};
  std::filesystem::path python = {};  // of the environment that holds torch
  std::filesystem::path home = {};    // bakeoff_home()
  double seconds = 900;               // for each of CMake's two runs
};

struct Compiled {
  std::filesystem::path program = {};
  std::string compiler = {};  // "g++ (Debian 12.2.0-14+deb12u1) 12.2.0"
  int64_t ns = 0;             // of compiling the sources, without what all workers share; also where kept
  bool kept = false;          // from an earlier run
  std::optional<Failure> failure = {};
};

Compiled compile_contender(const CompileJob& job, const Progress& progress);

// The main file of a worker: includes each source in a namespace of its own, after all headers that they
// name. Errors: a source that cannot be read; two of one stem.
Result<std::string> worker_main(const std::vector<std::filesystem::path>& sources);

}  // namespace bakeoff
