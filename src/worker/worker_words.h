#pragma once

// What a worker sent, or did not do, in the words of a table row. Internal to worker/worker.h's Worker.

#include <optional>
#include <string>

#include "records/trial.h"
#include "worker/worker.h"

namespace bakeoff {

// The beginning of what a worker sent, fit for a terminal.
std::string printable(const std::string& line);

// Why a contender's framework computes on another device than the one it was to; nothing where it does not.
std::optional<Failure> wrong_device(const WorkerSpec& spec, const Imported& imported);

}  // namespace bakeoff
