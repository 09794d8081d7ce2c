#pragma once

// Whole trainings after the race: for every seed initial weights and an order of the rows, the same for all
// contenders; for every contender and seed a fresh process, alone on the machine, which trains exactly as
// in the race; and rows that no training uses. study/training/target.h and study/training/fit.h say how
// long each contender trains.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "plan/plan.h"
#include "referee/evaluate.h"
#include "study/training/held_out.h"
#include "worker/worker.h"

namespace bakeoff {

// A worker that is built and has trained nothing yet, or has failed.
struct TrainingProcess {
  std::unique_ptr<Worker> worker;
  int64_t start_up_ns = 0;  // start, import, build
  Texts effective = {};
};

class TrainingSetup {
 public:
  // `what`: "target" or "fit", in the names of its files. `held`: number of held-out rows: of MNIST's test
  // pictures or a text's last tenth, of other data the last ones; 0: none.
  TrainingSetup(const Plan& plan, std::string what, int64_t held);
  ~TrainingSetup();  // removes its files
  TrainingSetup(const TrainingSetup&) = delete;
  TrainingSetup& operator=(const TrainingSetup&) = delete;

  Status prepare(const Progress& progress);
  const HeldOut& held_out() const { return held_out_; }
  int64_t rows() const { return rows_; }  // that an epoch trains on
  std::filesystem::path data() const { return file("data"); }

  // Writes weights and rows of a seed (from 1); gives the weights.
  Result<referee::Weights> lay_out(int seed) const;
  uint64_t seed_of(int seed) const;
  // Contenders in the random order of a seed.
  std::vector<size_t> shuffled(std::vector<size_t> lanes, int seed) const;
  // Of the seed that was laid out last.
  TrainingProcess start(size_t lane, int seed) const;
  // What training has made of the parameters. Where the worker fails, it says why, too.
  Result<referee::Weights> state(Worker& worker) const;

 private:
  std::filesystem::path file(const char* kind) const;
  const Plan& plan_;
  std::string what_;
  int64_t held_ = 0, rows_ = 0;
  HeldOut held_out_;
};

// Rows [0, rows) of `data` in a random order, into `to`.
Status write_shuffled(const ir::Workload& workload, const std::filesystem::path& data, int64_t rows,
                      uint64_t seed, const std::filesystem::path& to);

// What a stretch of a training took: as in races our time where it is noticeably longer than the worker's. Of the
// `first` one, whose answer also waits for the input to be opened, what the worker says.
int64_t stretch_ns(const Burst& stretch, bool first);

// What a training must have done by its own answers and cannot have done by our clock: the rules of
// evidence/invariants.h that a race's trials are held against, without those that need a proof or the
// machine's limits. `bursts`: all answers of one process in their order. The first one may take as long as
// starting up did on top of what it claims: opening the input falls on it, outside of the steps.
std::optional<Failure> broken_rule(const Plan& plan, size_t lane, std::vector<Burst> bursts,
                                   const std::vector<HostRound>& rounds, const TrainingProcess& process);

// Why a training counts for nothing: its worker failed, broke a rule, or gave no parameters to look at
// (`looked`).
std::optional<Failure> failure_of(const Plan& plan, size_t lane, std::vector<Burst> bursts,
                                  const std::vector<HostRound>& rounds, const TrainingProcess& process,
                                  const Status& looked);

}  // namespace bakeoff
