#include "plan/fairness.h"

#include <algorithm>

#include "emit/all/frameworks.h"

namespace bakeoff {
namespace {

// Topics that matter only for updates.
bool of_training(const std::string& topic) {
  using namespace emit::topic;
  for (const char* name : {kEps, kEpsForm, kRho, kWeightDecay, kBatchNormMomentum, kRunningVar}) {
    if (topic == name) return true;
  }
  return false;
}

// "keras (jax)": the framework with the settings that are always named.
std::string column_of(const emit::Framework& framework, const emit::Settings& settings) {
  std::string column = framework.name;
  for (const emit::Setting& setting : framework.settings) {
    if (setting.always_named)
      column += " (" + emit::setting_or(settings, setting.name, setting.fallback) + ")";
  }
  return column;
}

}  // namespace

FairnessDiff fairness_diff(const ir::Workload& workload, const ir::Training& training,
                           const std::vector<Contender>& contenders) {
  FairnessDiff diff;
  ir::Training as_is = training;
  as_is.track = ir::Track::kAsIs;
  as_is.optimizer.stated = {"kind", "lr"};  // what would hold if the recipe said nothing more
  for (const Contender& contender : contenders) {
    const emit::Framework* framework = emit::find_framework(contender.framework);
    if (framework == nullptr || framework->defaults == nullptr) continue;
    const std::string column = column_of(*framework, contender.settings);
    if (std::find(diff.frameworks.begin(), diff.frameworks.end(), column) != diff.frameworks.end()) {
      continue;
    }
    diff.frameworks.push_back(column);
    for (const emit::Default& line :
         framework->defaults({workload, as_is, contender.settings, contender.script})) {
      if (training.predicts() && of_training(line.topic)) continue;
      auto found = std::find_if(diff.lines.begin(), diff.lines.end(),
                                [&](const FairnessLine& l) { return l.topic == line.topic; });
      if (found == diff.lines.end()) {
        diff.lines.push_back({.topic = line.topic, .values = {}});
        found = diff.lines.end() - 1;
      }
      found->values.resize(diff.frameworks.size());
      found->values.back() = line.value;
    }
  }
  for (FairnessLine& line : diff.lines) {
    line.values.resize(diff.frameworks.size());
    line.differs = std::any_of(line.values.begin(), line.values.end(),
                               [&](const std::string& v) { return v != line.values[0]; });
  }
  return diff;
}

}  // namespace bakeoff
