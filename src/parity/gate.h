#pragma once

// The gate for a whole plan: reuses proofs of earlier runs that match, and proves the other contenders, all of
// them at once or in portions.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "records/trial.h"
#include "records/watch.h"

namespace bakeoff {

// A race can start when enough contenders are proven:
//
//   TRY(Gate gate, Gate::open(plan, parities_of_the_run_directory));
//   CHECK_OK(gate.prove(watch, 2));   // gate.parities(): what is known now
//   ...
//   CHECK_OK(gate.prove(watch));      // the others
//
// Between two portions no process is left; the referee's results are kept in memory until all are proven.
class Gate {
 public:
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();
  // Seconds that the proofs may still take.
  using TimeLeft = std::function<double()>;
  static double unlimited() { return std::numeric_limits<double>::infinity(); }

  // `done`: the parities that the run directory holds already. Stored proofs of earlier runs, in the folder `proofs`
  // (parity/proof_store.h), are appended to it; empty: none are reused or kept. No process is started. The plan must outlive
  // the gate.
  static Result<Gate> open(Plan& plan, std::vector<Parity> done, const std::filesystem::path& proofs = {});
  Gate(Gate&&) noexcept;
  ~Gate();

  // Proves contenders until `enough` of one precision group have passed, those with the shortest proofs
  // first, or until none is left. `done` and stored proofs count. What is found is appended to parities() and
  // to the run directory. The referee computes once for all portions, and only if some contender must be
  // proven. Interrupted, or no time left: contenders whose proof was under way are not recorded, and can be proven by
  // a later call, or by a gate that is opened later.
  Status prove(const Watch& watch, size_t enough = kAll, const TimeLeft& time_left = unlimited);

  // `done`, and what was found since, in the order in which it was recorded.
  const std::vector<Parity>& parities() const;
  // Whether every lane that can be started is among them.
  bool finished() const;

 private:
  struct State;
  explicit Gate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Proves every lane that is not in `done`, in one portion.
Result<std::vector<Parity>> gate_all(Plan& plan, std::vector<Parity> done, const Watch& watch,
                                     const std::filesystem::path& proofs = {});

}  // namespace bakeoff
