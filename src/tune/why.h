#pragma once

// Why the runner-up of a race is slower: each of its settings that is worth trying, against it and the leader.

#include "records/why.h"
#include "run/races.h"
#include "tune/alone.h"

namespace bakeoff::tune {

// Races in `folder`. Nothing where no contender is surely slower than the leader, or where it is a script of the
// user's own.
Result<std::optional<Why>> why(const recipe::Recipe& recipe, const Summary& raced, const Machine& machine,
                               run::Races& races, const std::filesystem::path& folder);

}  // namespace bakeoff::tune
