#include "selftest/selftest_scripts.h"

#include <algorithm>

#include "emit/all/frameworks.h"

namespace bakeoff {

const std::vector<SelfTestContender>& selftest_contenders() {
  static const std::vector<SelfTestContender> contenders = [] {
    std::vector<SelfTestContender> all;
    for (const emit::Framework* framework : emit::frameworks()) {
      if (!emit::can(*framework, ir::Scenario::kTrain)) continue;
      for (const emit::Settings& named : emit::named_variants(*framework)) {
        emit::Settings settings = named;
        settings.merge(emit::defaults_of(*framework));
        if (framework->environment(settings).empty()) continue;  // a program alone
        std::string name = framework->name;
        for (const auto& [setting, value] : named) name += "-" + value;
        all.push_back({std::move(name), framework, named, framework->environment(settings)});
      }
    }
    std::ranges::stable_partition(all, &SelfTestContender::has_own_loop);
    return all;
  }();
  return contenders;
}

std::string selftest_workload() {
  return R"(workload selftest(x: f32[N,256], y: i32[N]) {
  h1 = linear(x; weight=fc1.weight[256,256], bias=fc1.bias[256])
  h2 = relu(h1)
  h3 = linear(h2; weight=fc2.weight[256,256], bias=fc2.bias[256])
  h4 = relu(h3)
  logits = linear(h4; weight=fc3.weight[10,256], bias=fc3.bias[10])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
)";
}

}  // namespace bakeoff
