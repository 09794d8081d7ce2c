#include "plan/lane.h"

namespace bakeoff {

bool keeps_compilations(const Contender& contender) {
  const auto compile = contender.settings.find("compile");
  if (compile != contender.settings.end() && compile->second != "off") return true;
  const auto backend = contender.settings.find("backend");
  const auto jit = contender.settings.find("jit_compile");
  return backend != contender.settings.end() && backend->second == "torch" &&
         jit != contender.settings.end() && jit->second == "true";
}

}  // namespace bakeoff
