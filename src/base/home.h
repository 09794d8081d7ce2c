#pragma once

// Whether there is a folder for what Bakeoff keeps (bakeoff_home() in base/files.h).

#include "base/result.h"

namespace bakeoff {

// Error: none of BAKEOFF_HOME, XDG_DATA_HOME and HOME is set. A folder that every user may write to is no
// place for programs that are run. bakeoff_home() throws in that case, so commands that need it call this
// first.
Status check_home();

}  // namespace bakeoff
