#pragma once

// Reports the progress of long actions: one short line at a time, without an end of line. Called from one
// thread at a time.

#include <functional>
#include <string>

namespace bakeoff {

using Progress = std::function<void(const std::string&)>;

// Takes no notice.
inline const Progress kSilent = [](const std::string&) {};

}  // namespace bakeoff
