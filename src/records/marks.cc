#include "records/marks.h"

#include "records/record_json.h"

namespace bakeoff {

BAKEOFF_RECORD(Commit, hash, branch, dirty, started)
BAKEOFF_KEPT(Commit)
BAKEOFF_RECORD(AcceptedStep, contender, at, note, withdrawn)
BAKEOFF_KEPT(AcceptedStep)

}  // namespace bakeoff
