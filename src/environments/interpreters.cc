#include "environments/interpreters.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/home.h"
#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "environments/environments.h"

namespace bakeoff {
namespace {

// "missing: never created; run ..." as part of a sentence: "was never created", "is outdated: numpy is 1, not 2".
std::string state_in_words(const std::string& why_not) {
  const std::string what = why_not.substr(0, why_not.find("; run "));
  return what == "missing: never created" ? "was never created" : "is " + what;
}

}  // namespace

Result<Interpreters> find_interpreters(const std::filesystem::path& config) {
  const std::filesystem::path home = bakeoff_home();
  TRY(const auto loaded, load_config(config, home, environment_names()));
  Interpreters interpreters;
  for (const Environment& e : list_environments({.home = home, .config = loaded})) {
    std::string identity = e.python.string();
    for (const auto& [package, version] : e.versions) identity += "\n" + package + " " + version;
    interpreters[e.name] = {e.python, e.why_not(), identity};
  }
  interpreters[""] = {};  // of programs that need no environment
  return interpreters;
}

std::string environments_to_make(const recipe::Recipe& recipe, const Interpreters& interpreters) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::string>> by_state;
  for (const recipe::Contender& contender : recipe.contenders) {
    const std::string& name = contender.environment;
    const auto found = interpreters.find(name);
    if (found == interpreters.end() || found->second.why_not.find("bakeoff env create") == std::string::npos)
      continue;
    if (std::ranges::find(names, name) != names.end()) continue;
    names.push_back(name);
    by_state[state_in_words(found->second.why_not)].push_back(name);
  }
  if (names.empty()) return "";
  const bool one = names.size() == 1;
  std::vector<std::string> states;
  for (const auto& [state, of] : by_state)
    states.push_back(one                    ? "its environment " + state
                     : by_state.size() == 1 ? fmt::format("the environment of each {}", state)
                                            : fmt::format("the environment of {} {}", join(of, ", "), state));
  return fmt::format("{} cannot start: {}; `bakeoff env create {}` makes {}", join(names, ", "),
                     join(states, "; "), join(names, " "), one ? "it" : "them");
}

}  // namespace bakeoff
