#include "plan/lane.h"

#include "emit/all/frameworks.h"

namespace bakeoff {

bool keeps_compilations(const Contender& contender) {
  const emit::Framework* framework = emit::find_framework(contender.framework);
  return framework != nullptr && framework->cache.used != nullptr &&
         framework->cache.used(contender.settings);
}

}  // namespace bakeoff
