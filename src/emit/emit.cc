#include "emit/emit.h"

#include <algorithm>

#include "ir/op_table.h"

namespace bakeoff::emit {

bool can(const Framework& framework, ir::Scenario scenario) {
  return std::find(framework.scenarios.begin(), framework.scenarios.end(), scenario) !=
         framework.scenarios.end();
}

Status check_supported(const Framework& framework, const ir::Workload& workload) {
  for (const ir::Node& node : workload.nodes) {
    if (!framework.supports(node.op)) {
      return Error{.message = framework.title + " has no emitter for op '" + ir::info(node.op).name +
                              "' (value '" + node.output + "' of workload '" + workload.name + "')"};
    }
  }
  return Done{};
}

}  // namespace bakeoff::emit
