#pragma once

// The process of one contender, controlled through the runner protocol (docs/runner_protocol.md). Every
// method blocks until the worker answers, the stage's time limit is over, the worker dies, or Ctrl-C comes.
// After a failure the worker cannot be used again, and failure() says why.

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/training.h"
#include "proc/child.h"
#include "proc/ring.h"
#include "records/trial.h"

namespace bakeoff {

struct WorkerSpec {
  std::vector<std::string> command = {};  // program and first arguments; empty: python -m bakeoff_runner
  std::filesystem::path python = {};
  std::filesystem::path runner = {};  // folder that contains the package bakeoff_runner
  std::string framework = {};
  std::map<std::string, std::string> options = {};
  int threads = 1;
  std::vector<int> cpus = {};  // affinity; empty: inherited
  bool huge_pages = true;
  bool randomise_addresses = true;
  Texts environment = {};       // variables, added to our own
  std::string device = "auto";  // auto | cpu | cuda: import() fails if the framework uses another device
  // Memory of it and its descendants: beyond it allocation fails, or they are killed. 0: no limit.
  int64_t memory_limit_bytes = 0;
  std::filesystem::path log_file = {};
  std::filesystem::path ring_file = {};  // file of the step marks; empty: no marks
  double stage_seconds = 300;            // time limit of each stage
};

struct Build {
  std::filesystem::path script = {};
  std::filesystem::path weights = {};  // empty: the framework initialises the weights itself
  std::filesystem::path data = {};
  std::filesystem::path layout = {};
  bool dropout = true;
  ir::Scenario scenario = ir::Scenario::kTrain;  // else there is no optimizer
  std::string dtype = "float32";
  int64_t batch = 0;  // replaces the script's batch size; 0: the script's own
};

struct Imported {
  int64_t ns = 0;
  Texts versions = {};
  Texts effective = {};
};

// Memory of the worker's process, as its framework reports it.
struct WorkerMemory {
  std::optional<double> allocator_peak_bytes = {};
  std::string allocator_absent = {};  // why there is no allocator peak
};

struct Losses {
  std::vector<double> losses = {};  // one for each step; may be NaN or infinite
  int64_t first_ns = 0;
};

// A nudge: a change that a burst begins with. The tensors of a safetensors file are added to the parameters.
struct NudgeRequest {
  std::filesystem::path file = {};  // empty: no nudge
  int64_t every = 0;                // repeat after this number of steps; 0: never
};

// The worker's answer to one burst.
struct Ran {
  Burst burst = {};
  std::optional<double> loss = {};
  std::vector<double> losses = {};          // one for each step, before its update; empty: not reported
  std::optional<double> mean_loss = {};     // mean of the losses of all its steps
  std::map<std::string, double> sums = {};  // sum of every trained parameter after the last update
  std::vector<int64_t> step_ns = {};        // step times from the marks: one fewer than steps
  int64_t jump_ns = 0;  // how much more the worker's clock counted than ours: a clock jumped
};

// What a worker tells of a burst of predictions, after its answer.
struct ToldOutputs {
  std::vector<ReportedOutput> outputs = {};  // of all steps, or of the last ones
  int64_t late_ns = 0;  // how much longer it took than telling may take: it may have worked on meanwhile
};

struct Served {
  std::vector<int64_t> start_ns = {}, end_ns = {};  // since serving began, one for each request
  int64_t ns = 0;                                   // duration of all requests by the worker's clock
  int64_t elapsed_ns = 0;                           // duration from request to answer by our clock
  int64_t compilations = 0;  // functions that were compiled meanwhile; 0 also where the worker cannot tell
};

class Worker {
 public:
  // Starts the process and waits for its hello.
  static std::unique_ptr<Worker> start(const WorkerSpec& spec);
  ~Worker();

  bool ok() const { return !failure_; }
  const std::optional<Failure>& failure() const { return failure_; }
  int64_t start_ns() const { return start_ns_; }
  pid_t pid() const;  // -1: it never started
  // Its own and those of its ranks, which train beside it, each with a device; they are known after import().
  const std::vector<pid_t>& processes() const;

  std::optional<Imported> import();
  // Returns the build time in ns; adds the effective settings to `effective`.
  std::optional<int64_t> build(const Build& build, Texts& effective);
  // Writes canonical tensors to `out`. `grads_in` may be empty. `activations`: also write the outputs of
  // layers, if the framework can report them.
  bool parity(int64_t first, int64_t count, const std::filesystem::path& grads_in,
              const std::filesystem::path& out, bool activations = false);
  std::optional<Losses> losses(int64_t steps);
  // Batch hashes (data/batch_hashes.h) of the first batches that its own pipeline delivers. Afterwards
  // training is at its beginning again. nullopt with ok(): the worker cannot report them.
  std::optional<std::vector<std::string>> batches(int64_t count,
                                                  const std::vector<std::vector<int64_t>>& row_shapes);
  // Runs a burst, and watches the process for a moment after the answer (evidence/barrier.h).
  std::optional<Ran> run(int64_t steps, Stage stage = Stage::kRun, const NudgeRequest& nudge = {});
  // Of the burst that run() or lead_in() ran last. Each can be asked for once.
  std::optional<ToldOutputs> outputs();
  // Runs steps right before a burst; nothing is watched after them.
  std::optional<Ran> lead_in(int64_t steps, const NudgeRequest& nudge = {});
  // Number of steps since the build: its position in the data.
  int64_t steps_done() const;

  // The learning rates that its training has at these steps, counted from 0. nullopt with ok(): it cannot
  // tell.
  std::optional<std::vector<double>> rates(const std::vector<int64_t>& steps);
  // Loads the initial weights and a fresh optimizer; the position in the data is kept.
  bool restore();

  // Writes the current parameters, canonical, to `out`; training continues from there.
  bool state(const std::filesystem::path& out);
  // Answers `requests` requests. They arrive at the times in the file `arrivals`; if that is empty, each
  // arrives when the previous one is answered. Fewer are answered after `limit_s` seconds. The worker
  // writes its times to the file `out`.
  std::optional<Served> serve(const std::filesystem::path& arrivals, int64_t requests, double limit_s,
                              const std::filesystem::path& out);
  // How long a copy to its device takes while nothing else runs; training continues where it was. Absent:
  // nothing is copied, or the worker cannot report it.
  std::optional<Transfer> transfer();
  // Memory that its framework's allocator reports. If the worker cannot report it, the result has the
  // reason; that is no failure.
  WorkerMemory memory();

  void freeze();  // stops all its threads
  void thaw();
  // Asks the process to end and kills it if it does not; returns the resources that it used. The peak of a worker with
  // ranks is the sum of each one's own.
  proc::ResourceUsage close();
  // Kills the process at once; the same.
  proc::ResourceUsage kill();

 private:
  struct Impl;
  Worker();
  std::optional<Ran> burst(int64_t steps, Stage stage, const NudgeRequest& nudge);
  std::unique_ptr<Impl> impl_;
  std::optional<Failure> failure_;
  int64_t start_ns_ = 0;
};

// Path of the next file to share with a worker: in a folder of this process in shared memory, else in the folder
// `otherwise`. No file has this name yet: a killed process may have left some in `otherwise`.
std::filesystem::path new_shared_file(const std::filesystem::path& otherwise);

}  // namespace bakeoff
