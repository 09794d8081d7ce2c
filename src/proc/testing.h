#pragma once

// For this room's tests: workers of the fake framework (runners/tests/fake_adapter.py).

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "proc/line_channel.h"
#include "proc/process_tree.h"

#ifndef BAKEOFF_SOURCE_DIR  // set by bakeoff_room(); here so that the header compiles alone
#define BAKEOFF_SOURCE_DIR "."
#endif

namespace bakeoff::proc::testing {

inline constexpr int64_t kMillisecond = 1'000'000;

inline int64_t now() { return monotonic_clock().now_ns(); }
inline int64_t in_seconds(double seconds) { return now() + static_cast<int64_t>(seconds * 1e9); }

// A folder of the test's own, removed with the object.
class TestFolder {
 public:
  TestFolder() {
    std::string name = ::testing::TempDir() + "bakeoff-proc-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TestFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

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
    const Result<std::string> hello = channel.receive(in_seconds(20), "start");
    EXPECT_TRUE(hello) << hello.error().text() << child.log_tail();
  }

  Result<std::string> import(const std::string& options, double seconds = 20) {
    return channel.exchange(R"({"id":1,"op":"import","threads":1,"options":{)" + options + "}}",
                            in_seconds(seconds), "import");
  }
  Result<std::string> build() {
    return channel.exchange(R"({"id":2,"op":"build","script":"none.py"})", in_seconds(20), "build");
  }
  Result<std::string> run(int steps, double seconds = 20) {
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

// Whether `condition` comes true within `seconds`.
inline bool soon(const std::function<bool()>& condition, double seconds = 5) {
  for (const int64_t deadline = in_seconds(seconds); now() < deadline; ::usleep(5000)) {
    if (condition()) return true;
  }
  return condition();
}

// The integer behind "key": in a line of JSON; -1 if there is none.
inline int64_t number_in(const std::string& json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\": ");
  return at == std::string::npos ? -1 : std::atoll(json.c_str() + at + key.size() + 4);
}

}  // namespace bakeoff::proc::testing
