#include "exports/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "emit/all/frameworks.h"
#include "summary/summarise.h"

namespace bakeoff::exports {

Result<Recorded> read_recorded(const RunDirectory& directory) {
  Recorded run;
  const std::filesystem::path path = directory.path().lexically_normal();
  run.run = (path.has_filename() ? path : path.parent_path()).filename().string();
  TRY(run.summary, summarise(directory));
  TRY(run.parities, directory.read<Parity>());
  TRY(run.trials, directory.read<Trial>());
  TRY(run.fits, directory.read<FitTrial>());
  return run;
}

std::vector<std::string> unfinished(const Recorded& run) {
  const Manifest& manifest = run.summary.manifest;
  const auto known = [](const auto& records, const std::string& id) {
    return std::ranges::any_of(records, [&](const auto& record) { return record.contender == id; });
  };
  size_t not_proven = 0;
  for (size_t i = 0; i < manifest.contenders.size(); ++i)
    not_proven +=
        manifest.not_started[i].reason.empty() && !known(run.parities, manifest.contenders[i].id) ? 1 : 0;
  std::vector<std::string> lacks;
  if (not_proven > 0)
    lacks.push_back(
        fmt::format("{} of {} contenders have no proof yet", not_proven, manifest.contenders.size()));
  if (run.trials.empty()) lacks.push_back("no contender has been timed yet");
  return lacks;
}

std::string settings_text(const Contender& contender) {
  std::string out;
  for (const auto& [key, value] : contender.settings) out += (out.empty() ? "" : ";") + key + '=' + value;
  return out;
}

// Its own package, or another build of it; of a C++ program that of the environment whose libraries it has.
std::string framework_version(const Row& row) {
  const auto named = row.versions.find(row.contender.framework);
  if (named != row.versions.end()) return named->second;
  for (const std::string& name : {row.contender.framework, row.contender.environment}) {
    const emit::Framework* framework = emit::find_framework(name);
    if (framework == nullptr || framework->packages.framework.empty()) continue;
    const std::string& package = framework->packages.framework;
    std::string module = package;
    std::ranges::replace(module, '-', '_');
    for (const std::string& key : {package, module, package + "-cpu", package + "-gpu"}) {
      const auto found = row.versions.find(key);
      if (found != row.versions.end()) return found->second;
    }
  }
  return "";
}

std::vector<const Row*> rows_of(const Summary& summary) {
  std::vector<const Row*> rows;
  for (const auto* part : {&summary.ranked, &summary.unranked})
    for (const Row& row : *part) rows.push_back(&row);
  return rows;
}

}  // namespace bakeoff::exports
