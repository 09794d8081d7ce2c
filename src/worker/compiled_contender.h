#pragma once

// Contenders that are C++ programs: their sources are compiled, with the runner of runners/libtorch, into a
// worker that speaks the runner protocol. CMake and the C++ compiler of this machine build it against the
// libtorch inside the torch package of an environment. Native programs need no library: the compiler alone builds them,
// with the runner of runners/native.
//
//   const Compiled worker = compile_contender({.sources = {run / "scripts/train_libtorch.cc"},
//                                              .python = home / "envs/torch/bin/python", .home = home},
//                                              progress);
//   if (worker.failure) ...                 // Stage::kCompile: there is no compiler, or it reported errors
//   spec.command = {worker.program};
//
// A worker is kept in `home`/compiled/ under the SHA-256 of sources, runner, torch and compiler, and used
// again until one of them changes. The part that all workers share is compiled once for each runner, torch
// and compiler, in `home`/compiled/runner-<hash>/. Two processes may do this at the same time: the second
// waits.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "records/trial.h"

namespace bakeoff {

struct CompileJob {
  // C++ programs written for runners/libtorch/script.h; the worker names each by the stem of its file.
  std::vector<std::filesystem::path> sources = {};
  std::filesystem::path python =
      {};                           // interpreter of the environment that holds torch; empty: native programs
  std::filesystem::path home = {};  // bakeoff_home()
  double seconds = 900;             // time limit of each of CMake's two runs
  // How native programs are compiled; "-O0" where compiling would take longest.
  std::vector<std::string> flags = {"-O3"};
};

struct Compiled {
  std::filesystem::path program = {};
  std::string compiler = {};  // "g++ (Debian 12.2.0-14+deb12u1) 12.2.0"
  int64_t ns = 0;             // time to compile the sources, without the shared part; kept with the worker
  bool kept = false;          // true: compiled by an earlier run
  std::optional<Failure> failure = {};
};

Compiled compile_contender(const CompileJob& job, const Progress& progress);

// Compiles `target` of a folder that has a CMakeLists.txt of its own, into the folder `build`, against the
// libtorch inside the torch of `python`.
std::optional<Failure> compile_folder(const std::filesystem::path& folder, const std::string& target,
                                      const std::filesystem::path& python,
                                      const std::filesystem::path& build);

// The main file of a worker. It includes all headers that the sources name, then each source in its own
// namespace. Errors: a source that cannot be read; two sources with the same stem.
Result<std::string> worker_main(const std::vector<std::filesystem::path>& sources);

}  // namespace bakeoff
