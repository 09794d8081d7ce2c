// Compiles an emitted LibTorch program into the worker that a race would start, or finds it compiled, and
// prints its path.
//
//   compile_worker PROGRAM PYTHON        the interpreter of the environment that holds torch

#include <iostream>

#include "base/files.h"
#include "worker/compiled_contender.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: compile_worker PROGRAM PYTHON\n";
    return 2;
  }
  const auto worker =
      bakeoff::compile_contender({.sources = {argv[1]}, .python = argv[2], .home = bakeoff::bakeoff_home()},
                                 [](const std::string& what) { std::cerr << what << "\n"; });
  if (worker.failure) {
    std::cerr << worker.failure->reason << "\n" << worker.failure->log_tail << "\n";
    return 1;
  }
  std::cout << worker.program.string() << "\n";
}
