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
    for (const embedded::File& file : embedded::requirements()) {
      Requirements one = {fs::path(file.path).stem(), std::string(file.text)};
      if (!extended(one).empty()) all.push_back(std::move(one));
    }
    return all;
  }();
  return shipped;
}

std::string framework_package(const std::string& environment) {
  for (const Requirements& one : shipped_requirements())
    if (const std::string base = extended(one); one.name == environment && !base.empty())
      return framework_package(base);
  const emit::Framework* framework = emit::find_framework(environment);
  return framework == nullptr ? environment : framework->packages.framework;
}

std::vector<std::string> main_packages(const std::string& environment) {
  const emit::Framework* framework = emit::find_framework(environment);
  if (framework != nullptr) return framework->packages.shown;
  for (const Requirements& one : shipped_requirements())
    if (one.name == environment) return imported_once(one);
  return {environment};
}

}  // namespace bakeoff
