#pragma once

// The host: name, kernel, processor, memory and settings that can change a result.

#include "records/trial.h"

namespace bakeoff {

Host read_host();

}  // namespace bakeoff
