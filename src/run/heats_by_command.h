#pragma once

// Heats that another process runs: an order in a file, a command that carries it out, and a result in a file. The
// process may be on another machine that has a copy of the run directory.

#include <filesystem>
#include <string>
#include <vector>

#include "environments/interpreters.h"
#include "race/race.h"

namespace bakeoff::run {

class HeatsByCommand : public Heats {
 public:
  // `command`: a program and its arguments, which are followed by the run's folder, the order's file and the result's.
  explicit HeatsByCommand(std::vector<std::string> command) : command_(std::move(command)) {}
  // Errors: the command fails, with the end of what it printed; or its result is none. Ctrl-C: no trials.
  Result<HeatResult> run(const Plan& plan, const HeatOrder& order, const Watch& watch,
                         const Happening& happening) override;

 private:
  std::vector<std::string> command_;
};

// The other side: carries out an order, of the file `file`, of a run that another process continues. Nothing but the
// workers' logs is written.
Result<HeatResult> ordered_heat(const Plan& plan, const HeatOrder& order, const std::filesystem::path& file,
                                const Sensed& sensed);
// The same in the folder of a run, from the file `order`, with the result in the file `result`.
Status run_ordered_heat(const std::filesystem::path& folder, const std::filesystem::path& order,
                        const std::filesystem::path& result, const Interpreters& interpreters,
                        const Sensed& sensed);

}  // namespace bakeoff::run
