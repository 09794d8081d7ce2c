#pragma once

// One contender's process, spoken to through the runner protocol (docs/runner_protocol.md). Every method
// blocks until the answer is there, the stage's deadline passes, the worker dies or Ctrl-C comes; after a
// failure the worker is of no further use and failure() says why.

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "proc/child.h"
#include "proc/ring.h"
#include "records/trial.h"

namespace bakeoff {

struct WorkerSpec {
  std::vector<std::string> command = {};  // instead of python -m bakeoff_runner: program and first arguments
  std::filesystem::path python = {};
  std::filesystem::path runner = {};  // folder that holds the package bakeoff_runner
  std::string framework = {};
  std::map<std::string, std::string> options = {};
  std::string dtype = "float32";
  int threads = 1;
  std::vector<int> cpus = {};  // affinity; empty: inherited
  bool huge_pages = true;
  bool randomise_addresses = true;
  Texts environment = {};          // variables, on top of ours
  std::string device = "auto";     // auto | cpu | cuda: import() fails where the framework computes elsewhere
  int64_t memory_limit_bytes = 0;  // of it and its descendants; 0: none. Its allocator fails, or it is killed
  std::filesystem::path log_file = {};
  std::filesystem::path ring_file = {};  // step marks; empty: none
  double stage_seconds = 300;
};

struct Build {
  std::filesystem::path script = {};
  std::filesystem::path weights = {};  // empty: the framework's own initialisers
  std::filesystem::path data = {};
  std::filesystem::path layout = {};
  bool dropout = true;
  bool predict = false;  // the scenario "predict": no optimizer, a step is one forward pass
};

struct Imported {
  int64_t ns = 0;
  Texts versions = {};
  Texts effective = {};
};

// Of the worker's process, by itself.
struct WorkerMemory {
  std::optional<double> allocator_peak_bytes = {};
  std::string allocator_absent = {};  // why there is none
};

struct Losses {
  std::vector<double> losses = {};  // NaN and infinities possible
  int64_t first_ns = 0;
};

// Changes that a burst begins with: the tensors of this safetensors file are added to its parameters.
struct NudgeRequest {
  std::filesystem::path file = {};  // empty: nothing changes
  int64_t every = 0;                // again after each so many steps; 0: never again
};

struct Ran {
  Burst burst = {};
  std::optional<double> loss = {};
  std::vector<double> losses = {};          // of each step, before its update; empty: its loop shows none
  std::optional<double> mean_loss = {};     // of all its steps
  std::map<std::string, double> sums = {};  // of every trained parameter after the last update
  std::vector<ToldOutput> outputs = {};     // of predictions: of each step, or of the last ones
  std::vector<int64_t> step_ns = {};        // from the marks: one fewer than steps
  int64_t jump_ns = 0;                      // more than went by here: a clock jumped
};

struct Served {
  std::vector<int64_t> start_ns = {}, end_ns = {};  // since the beginning, one a request
  int64_t ns = 0;                                   // of all, by the worker's clock
  int64_t went_by_ns = 0;                           // from asking to the answer, by ours
};

class Worker {
 public:
  // Starts the process and waits for its hello.
  static std::unique_ptr<Worker> start(const WorkerSpec& spec);
  ~Worker();

  bool ok() const { return !failure_; }
  const std::optional<Failure>& failure() const { return failure_; }
  int64_t start_ns() const { return start_ns_; }
  pid_t pid() const;  // -1: it was never started

  std::optional<Imported> import();
  // Gives the nanoseconds; effective settings are added to `effective`.
  std::optional<int64_t> build(const Build& build, Texts& effective);
  // Writes canonical tensors to `out`. `grads_in` may be empty. `activations`: outputs of layers too, where
  // they can be had.
  bool parity(int64_t first, int64_t count, const std::filesystem::path& grads_in,
              const std::filesystem::path& out, bool activations = false);
  std::optional<Losses> losses(int64_t steps);
  // SHA-256 of the first batches that training reads, by whatever pipeline it has (data/batch_hashes.h).
  // Afterwards training stands at its beginning. nullopt with ok(): the worker cannot tell.
  std::optional<std::vector<std::string>> batches(int64_t count,
                                                  const std::vector<std::vector<int64_t>>& row_shapes);
  // A burst, watched for a moment after its answer (evidence/barrier.h).
  std::optional<Ran> run(int64_t steps, const std::string& stage = "run", const NudgeRequest& nudge = {});
  // Steps right before a burst: nothing is looked at in between.
  std::optional<Ran> lead_in(int64_t steps, const NudgeRequest& nudge = {});
  // Steps of its loop since the build: its place in the data.
  int64_t steps_done() const;

  // Initial weights and fresh optimizer; the data goes on where it stands.
  bool restore();

  // Writes the parameters as training has left them, canonical, to `out`; training goes on from there.
  bool state(const std::filesystem::path& out);
  // Answers `requests` requests that come at the times in file `arrivals` (empty: each when the last one is
  // answered); fewer after `limit_s`. The times travel through file `out`.
  std::optional<Served> serve(const std::filesystem::path& arrivals, int64_t requests, double limit_s,
                              const std::filesystem::path& out);
  // How long a copy to its device takes, by itself; training goes on afterwards where it stood. Absent:
  // nothing is copied, or it does not tell.
  std::optional<Transfer> transfer();
  // What its framework's allocator says. A worker that cannot tell has its reason, and fails for nothing
  // else.
  WorkerMemory memory();

  void freeze();  // no thread of it runs
  void thaw();
  // Asks it to leave, kills it if it does not; gives what it used.
  proc::ResourceUsage close();

 private:
  struct Impl;
  Worker();
  std::optional<Ran> burst(int64_t steps, const std::string& stage, const NudgeRequest& nudge);
  std::unique_ptr<Impl> impl_;
  std::optional<Failure> failure_;
  int64_t start_ns_ = 0;
};

// Where the next file shared with a worker may lie: in shared memory, else in folder `otherwise`. No file has
// this name: one that a killed process with our process number left behind is passed over.
std::filesystem::path new_shared_file(const std::filesystem::path& otherwise);

// Removes such files of processes that ended an hour ago without doing so themselves (killed by SIGKILL). A
// younger one may belong to a process that is alive in another container.
void remove_shared_files_of_the_dead(const std::filesystem::path& folder);

}  // namespace bakeoff
