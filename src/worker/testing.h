#pragma once

// For tests: workers of the fake framework (runners/tests/fake_adapter.py).

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/testing.h"
#include "proc/process_tree.h"
#include "worker/worker.h"

#ifndef BAKEOFF_SOURCE_DIR  // set by bakeoff_room(); here so that the header compiles alone
#define BAKEOFF_SOURCE_DIR "."
#endif

namespace bakeoff::testing {

inline bool alive(pid_t pid) {
  const char state = proc::process_state(pid);
  return state != '\0' && state != 'Z';
}

// Living processes below this one that run the runner for `framework`.
inline std::vector<pid_t> workers_alive(const std::string& framework = "fake") {
  std::vector<pid_t> found;
  for (const pid_t pid : proc::descendants(::getpid())) {
    const auto command = read_file(fs::path("/proc") / std::to_string(pid) / "cmdline");
    if (command && command->find("bakeoff_runner") != std::string::npos &&
        command->find(framework) != std::string::npos && alive(pid)) {
      found.push_back(pid);
    }
  }
  return found;
}

inline WorkerSpec fake_spec(std::map<std::string, std::string> options = {}) {
  return {.python = fs::exists("/usr/bin/python3") ? "/usr/bin/python3" : "python3",
          .runner = BAKEOFF_SOURCE_DIR "/runners:" BAKEOFF_SOURCE_DIR "/runners/tests",  // a PYTHONPATH
          .framework = "fake",
          .options = std::move(options),
          .environment = {{"PYTHONDONTWRITEBYTECODE", "1"}},
          .stage_seconds = kNet};
}

}  // namespace bakeoff::testing
