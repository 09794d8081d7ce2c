#pragma once

// For this room's tests: workers of the fake framework (runners/tests/fake_adapter.py).

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "base/testing.h"
#include "proc/line_channel.h"
#include "proc/process_tree.h"

#ifndef BAKEOFF_SOURCE_DIR  // set by bakeoff_room(); here so that the header compiles alone
#define BAKEOFF_SOURCE_DIR "."
#endif

namespace bakeoff::proc::testing {

using bakeoff::testing::kNet;
using bakeoff::testing::soon;
using bakeoff::testing::TestFolder;

inline constexpr int64_t kMillisecond = 1'000'000;

inline int64_t now() { return monotonic_clock().now_ns(); }
inline int64_t in_seconds(double seconds = kNet) { return now() + static_cast<int64_t>(seconds * 1e9); }

inline ChildOptions shell(const std::string& script) {
  return {.argv = {"/bin/sh", "-c", script}, .control = false};
}

inline ChildOptions fake_options() {
  return {.argv = {"python3", "-m", "bakeoff_runner", "--framework", "fake"},
          .env = {{"PYTHONPATH", BAKEOFF_SOURCE_DIR "/runners:" BAKEOFF_SOURCE_DIR "/runners/tests"},
                  {"PYTHONDONTWRITEBYTECODE", "1"}}};
}

// A worker that has said hello.
struct FakeWorker {
  explicit FakeWorker(ChildOptions options = fake_options())
      : child(Child::start(options).value()), channel(child) {
    const Result<std::string> hello = channel.receive(in_seconds(), "start");
    EXPECT_TRUE(hello) << hello.error().text() << child.log_tail();
  }

  Result<std::string> import(const std::string& options, double seconds = kNet) {
    return channel.exchange(R"({"id":1,"op":"import","threads":1,"options":{)" + options + "}}",
                            in_seconds(seconds), "import");
  }
  Result<std::string> build() {
    return channel.exchange(R"({"id":2,"op":"build","script":"none.py"})", in_seconds(), "build");
  }
  Result<std::string> run(int steps, double seconds = kNet) {
    return channel.exchange(R"({"id":3,"op":"run","steps":)" + std::to_string(steps) + "}",
                            in_seconds(seconds), "run");
  }

  Child child;
  LineChannel channel;
};

inline bool alive(pid_t pid) {
  const char state = process_state(pid);
  return state != '\0' && state != 'Z';
}

// The integer behind "key": in a line of JSON; -1 if absent.
inline int64_t number_in(const std::string& json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\": ");
  return at == std::string::npos ? -1 : std::atoll(json.c_str() + at + key.size() + 4);
}

}  // namespace bakeoff::proc::testing
