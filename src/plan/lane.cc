#include "plan/lane.h"

#include "emit/all/frameworks.h"

namespace bakeoff {

bool keeps_compilations(const Contender& contender) {
  const emit::Framework* framework = emit::find_framework(contender.framework);
  return framework != nullptr && framework->cache.used != nullptr &&
         framework->cache.used(contender.settings);
}

double proof_seconds(const ContenderStart& contender) {
  const emit::Framework* framework = emit::find_framework(contender.contender.framework);
  const double seconds = framework == nullptr ? emit::Framework().proof_s : framework->proof_s;
  return contender.twin_script.empty() ? seconds : 2 * seconds;
}

}  // namespace bakeoff
