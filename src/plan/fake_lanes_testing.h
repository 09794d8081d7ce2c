#pragma once

// For tests: runs whose contenders are workers of the fake framework.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/lane.h"
#include "plan/plan.h"
#include "records/trial.h"
#include "worker/testing.h"

namespace bakeoff::testing {

// One more contender of `plan`: the fake with these options.
inline void add_fake_lane(Plan& plan, const std::string& id,
                          std::map<std::string, std::string> options = {}) {
  const Contender contender{.id = id, .framework = "fake", .environment = "fake", .script = id + ".py"};
  plan.manifest.contenders.push_back(contender);
  plan.manifest.not_started.emplace_back();
  Lane lane;
  lane.entry.contender = contender;
  lane.entry.script = plan.directory.scripts() / contender.script;
  lane.entry.worker = fake_spec(std::move(options));
  plan.lanes.push_back(std::move(lane));
}

inline std::vector<Parity> all_pass(const Plan& plan) {
  std::vector<Parity> parities;
  for (const Contender& c : plan.manifest.contenders) parities.push_back({.contender = c.id});
  return parities;
}

}  // namespace bakeoff::testing
