#pragma once

// What a worker sent or failed to do, in words for a table row. Internal to this room.

#include <optional>
#include <string>

#include "records/trial.h"

namespace bakeoff {

// The beginning of what a worker sent, without characters that a terminal would interpret.
std::string printable(const std::string& line);

// The last `lines` lines of a log, at most 4 KiB.
std::string last_lines(const std::string& text, size_t lines);

// Reports that `framework` computes on another device than requested (WorkerSpec::device); nothing if it does
// not. `effective`: the settings that its import reported.
std::optional<Failure> wrong_device(const std::string& asked, const std::string& framework,
                                    const Texts& effective);

}  // namespace bakeoff
