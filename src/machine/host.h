#pragma once

// What shapes a number on this machine.

#include "records/trial.h"

namespace bakeoff {

Host read_host();

}  // namespace bakeoff
