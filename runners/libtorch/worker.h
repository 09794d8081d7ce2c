#pragma once

// The worker side of the runner protocol (docs/runner_protocol.md) in C++: requests on descriptor 3, answers
// on descriptor 4, step marks in a ring in shared memory. Knows nothing of any framework; worker.cc needs the
// standard library only.
//
//   int main(int argc, char** argv) {
//     MyAdapter adapter;
//     return bakeoff::serve(argc, argv, adapter);      // program --framework <name> [--ring <file>]
//   }
//
// An exception out of an adapter becomes an `ok: false` answer, and the worker lives on.

#include <time.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "json.h"

namespace bakeoff {

// An expected failure in words for the user; `traceback` may be empty.
struct AdapterError : std::runtime_error {
  explicit AdapterError(const std::string& message, std::string where = {})
      : std::runtime_error(message), traceback(std::move(where)) {}
  std::string traceback;
};

// What compiled this: "g++ 12.2.0".
#ifdef __clang__
inline constexpr const char* kCompiler = __VERSION__;
#else
inline constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

// Nanoseconds of CLOCK_MONOTONIC.
inline int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

// The ring of step marks; without a file a mark costs nothing.
class Ring {
 public:
  Ring() = default;
  explicit Ring(const std::string& path);  // throws AdapterError: no ring, or one of another version
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  Ring(Ring&&) = default;
  Ring& operator=(Ring&&) = default;  // the mapping lasts as long as the process

  // Stamps the end of a step: one clock reading and two stores.
  void mark() {
    if (slots_ != nullptr) {
      slots_[count_ % capacity_] = now_ns();
      __atomic_store_n(published_, ++count_, __ATOMIC_RELEASE);
    }
    if (every_ > 0 && ++since_ % every_ == 0) act_();
  }
  // From now on `act` is called after each `every` marks; 0: no more.
  void after(int64_t every, std::function<void()> act) {
    every_ = every, since_ = 0;
    act_ = std::move(act);
  }

 private:
  int64_t* slots_ = nullptr;
  uint64_t* published_ = nullptr;
  int64_t every_ = 0, since_ = 0;
  std::function<void()> act_;
  uint64_t capacity_ = 0;
  uint64_t count_ = 0;
};

struct ImportRequest {
  std::map<std::string, std::string> options = {};
  int threads = 1;
};

struct BuildRequest {
  std::string script = {};
  std::string weights = {};  // empty: the framework's own initialisers
  std::string data = {};
  std::string layout = {};
  bool dropout = true;  // false: every rate is 0
  bool train = true;    // false: no optimizer
  bool float64 = false;
};

struct ParityRequest {
  int64_t first = 0, count = 0;
  std::string grads_in = {};  // empty: no update
  std::string out = {};
};

struct Losses {
  std::vector<double> losses = {};
  int64_t first_ns = 0, ns = 0;
};

// Time waited for batches; the first one of each epoch apart.
struct BatchWait {
  int64_t ns = 0, batches = 0;
  int64_t first_ns = 0, firsts = 0;
};

struct Burst {
  int64_t ns = 0;
  double loss = 0;  // of the last step
  std::optional<BatchWait> wait = {};
  std::vector<double> losses = {};          // of each step, before its update
  std::map<std::string, double> sums = {};  // of every trained parameter after the last update
};

// What one step that predicts has given, for `outputs`.
struct ToldOutput {
  int64_t size = 0;
  double last = 0, squares = 0;     // its last number, and the sum of all squares
  std::vector<int64_t> words = {};  // all of it, where it is words
};

// What a framework has to do; docs/runner_protocol.md says what each operation means.
class Adapter {
 public:
  virtual ~Adapter() = default;
  virtual Json import_framework(const ImportRequest& request) = 0;  // versions, device, effective
  virtual Json build(const BuildRequest& request) = 0;              // effective
  // Writes request.out and gives the sorted names of its tensors.
  virtual std::vector<std::string> parity(const ParityRequest& request) = 0;
  virtual Losses losses(int64_t steps) = 0;
  virtual Burst run(int64_t steps, Ring& ring) = 0;
  // Initial weights and buffers, fresh optimizer state; the data goes on where it stands.
  virtual void restore() = 0;
  // Adds the tensors of file `changes`, by name, to the parameters as they are now: a run may begin with it. Empty: those
  // of the last file once more, amid a run.
  virtual void nudge(const std::string& changes) = 0;
  // One hash for each of the first batches that training reads; it stands at the first row again afterwards.
  virtual std::vector<std::string> batch_hashes(int64_t count,
                                                const std::vector<std::vector<int64_t>>& row_shapes) = 0;
  // Writes parameters and buffers as they are now; gives the sorted names.
  virtual std::vector<std::string> write_state(const std::string& out) = 0;
  // The learning rates of these steps, counted from 0; empty: constant.
  virtual std::vector<double> rates(const std::vector<int64_t>& steps) = 0;
  // Whether what is built predicts, or answers prompts. Then run() has no losses, outputs() tells those of its steps, and
  // request() is a step whose output is there, or waits for the next word of a batch of answers.
  virtual bool answers() const { return false; }
  virtual std::vector<ToldOutput> outputs() { return {}; }
  virtual void request() {}
};

// Serves until `close` or the end of the requests; gives the exit code.
int serve(int argc, char** argv, Adapter& adapter);

}  // namespace bakeoff
