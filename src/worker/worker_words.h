#pragma once

// What a worker sent, or did not do, in the words of a table row. Internal to this room.

#include <optional>
#include <string>

#include "records/trial.h"

namespace bakeoff {

// The beginning of what a worker sent, fit for a terminal.
std::string printable(const std::string& line);

// The last `lines` lines of a log, at most 4 KiB.
std::string last_lines(const std::string& text, size_t lines);

// Why `framework` computes on another device than the one that was asked for (WorkerSpec::device); nothing
// where it does not. `effective`: what its import answered.
std::optional<Failure> wrong_device(const std::string& asked, const std::string& framework,
                                    const Texts& effective);

}  // namespace bakeoff
