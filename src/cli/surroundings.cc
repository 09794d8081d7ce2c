#include "cli/surroundings.h"

#include <cstdlib>
#include <ctime>

#include "base/files.h"
#include "base/texts.h"

namespace bakeoff::cli {

Result<run::Surroundings> surroundings(const fs::path& config, ConsoleProgress& progress) {
  TRY(Interpreters interpreters, find_interpreters(config));
  run::Surroundings found{.interpreters = std::move(interpreters),
                          .proofs = bakeoff_home() / "proofs",
                          .tell = progress.teller()};
  if (const char* root = std::getenv("BAKEOFF_SENSORS"); root && *root) found.sensed.root = root;
  if (const char* library = std::getenv("BAKEOFF_NVML"); library && *library)
    found.sensed.gpu_library = library;
  return found;
}

fs::path dated_folder(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char date[32];
  std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", &local);
  return fs::path("runs") / (plain_name(name) + "-" + date);
}

}  // namespace bakeoff::cli
