#pragma once

// Races of a fleet for a command that waits for them: `bakeoff fleet collect --wait`, suites and searches. The command
// submits, asks where the blocks are, and submits again, until there is nothing left to submit.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "fleet/fleet.h"
#include "run/races.h"

namespace bakeoff::fleet {

struct Wait {
  Progress say = kSilent;
  double poll_s = 10;                                 // between two questions to the engine
  std::function<bool()> over = [] { return false; };  // no further wave is planned
};
// Submits and waits until nothing is left to submit, or until Ctrl-C, after which the blocks go on. Other processes
// may wait for the same run. Errors: those of submit(); the engine has not answered for long.
Status see_through(const Board& board, const Engine& engine, const Interpreters& interpreters,
                   const Wait& wait);

// One line for each thing that was done.
std::vector<std::string> told(const Submitted& submitted);
// One line for each block or node that is damaged, given up or kept apart.
std::vector<std::string> told(const Merged& merged);

// How a command wants its races spread.
struct Spread {
  Settings settings = {};
  std::filesystem::path shared = {};  // empty: one machine has all files
  double poll_s = 10;
};

// Called before there is a run. Error: files that races need lie outside the shared folder, or the engine refuses.
// `folder`: where the runs will be.
Status check_spread(const Spread& spread, const std::filesystem::path& folder);

// Proves the contenders of a new run, or of one whose proofs were interrupted, and makes it a fleet's. After
// Ctrl-C it is not a fleet's yet: a contender that was not proven would be left out without a word.
Status make_fleets(run::Session session, const Spread& spread);

// Each race is a run of its own, as of `bakeoff fleet plan`; one that its folder holds goes on with its own settings. A
// recipe's minutes end the planning of waves, never a wave, and the first one is run in any case. Ctrl-C cancels the
// race's jobs.
class Races : public run::Races {
 public:
  Races(run::Surroundings with, Spread spread) : with_(std::move(with)), spread_(std::move(spread)) {}
  Result<Summary> race(const recipe::Recipe& recipe, const std::filesystem::path& folder) override;

 private:
  Status go_on(const std::filesystem::path& folder, const TimeBudget& time);

  run::Surroundings with_;
  Spread spread_;
};

}  // namespace bakeoff::fleet
