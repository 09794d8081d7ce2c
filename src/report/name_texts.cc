#include "report/name_texts.h"

#include <algorithm>
#include <set>

#include "emit/all/frameworks.h"
#include "report/svg.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;

std::string breakable(std::string_view name) {
  std::string markup;
  while (!name.empty()) {
    const size_t end = std::min(name.find_first_of("[,"), name.size() - 1) + 1;
    markup += (markup.empty() ? "" : "<wbr>") + escape_markup(name.substr(0, end));
    name.remove_prefix(end);
  }
  return markup;
}

std::vector<std::string> framework_versions(const std::vector<const Texts*>& versions) {
  std::vector<std::string> out;
  std::set<std::string> seen;  // one package may be that of several frameworks
  for (const emit::Framework* framework : emit::frameworks()) {
    const std::string& package = framework->packages.framework;
    const std::string& name = package.empty() ? framework->module : package;
    if (!seen.insert(name).second) continue;
    std::set<std::string> found;
    for (const Texts* texts : versions) {
      const auto at = texts->find(name);
      // A local build's mark ("2.13.0+cpu") says nothing here.
      if (at != texts->end()) found.insert(one_line(at->second.substr(0, at->second.find('+'))));
    }
    for (const std::string& version : found) out.push_back(framework->title + ' ' + version);
  }
  return out;
}

}  // namespace bakeoff::report
