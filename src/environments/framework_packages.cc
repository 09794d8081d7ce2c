// What environments know of frameworks. early_environments is built without it: it has these two functions of
// its own.

#include "base/embedded.h"
#include "emit/all/frameworks.h"
#include "environments/environments.h"

namespace bakeoff::embedded {
const std::vector<File>& requirements();  // envs/*.txt
}  // namespace bakeoff::embedded

namespace bakeoff {

const std::vector<Requirements>& shipped_requirements() {
  static const std::vector<Requirements> shipped = [] {
    std::vector<Requirements> all;
    for (const emit::Framework* framework : emit::frameworks()) {
      for (const embedded::File& file : embedded::requirements()) {
        if (file.path == framework->name + ".txt") all.push_back({framework->name, std::string(file.text)});
      }
    }
    return all;
  }();
  return shipped;
}

std::string framework_package(const std::string& environment) {
  const emit::Framework* framework = emit::find_framework(environment);
  return framework == nullptr ? environment : framework->packages.framework;
}

std::vector<std::string> main_packages(const std::string& environment) {
  const emit::Framework* framework = emit::find_framework(environment);
  return framework == nullptr ? std::vector{environment} : framework->packages.shown;
}

}  // namespace bakeoff
