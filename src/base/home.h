#pragma once

// Whether there is a place for what bakeoff keeps (bakeoff_home() in base/files.h).

#include "base/result.h"

namespace bakeoff {

// An error where none of BAKEOFF_HOME, XDG_DATA_HOME and HOME is set: a folder that everybody may write to is
// no place for programs that are run. bakeoff_home() throws then: commands that need it ask here first.
Status check_home();

}  // namespace bakeoff
