#include "fleet/shared_folder.h"

#include <fmt/format.h>

#include "recipe/recipe.h"

namespace bakeoff::fleet {

namespace fs = std::filesystem;

namespace {

// Links are followed: what a link leads to has to be there on every node.
bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code code;
  const fs::path inside =
      fs::weakly_canonical(file, code).lexically_relative(fs::weakly_canonical(folder, code));
  return !inside.empty() && *inside.begin() != "..";
}

Error outside(const fs::path& shared, const std::string& what, const fs::path& file, const std::string& where,
              const std::string& remedy) {
  return {.message = fmt::format("{} '{}' lies outside the shared folder '{}'", what, file.string(),
                                 shared.string()),
          .where = where,
          .remedy = remedy};
}

}  // namespace

Status check_places(const fs::path& shared, const Settings& settings, const fs::path& runs) {
  if (!fs::is_directory(shared))
    return Error{.message = fmt::format("'{}' is no folder", shared.string()),
                 .where = "--shared",
                 .remedy = "name the folder that all nodes see, such as /home or /scratch"};
  if (!lies_in(settings.program, shared))
    return outside(shared, "the program", settings.program, "--shared",
                   "copy the program there and start it from there");
  if (!lies_in(settings.home, shared))
    return outside(shared, "the bakeoff home", settings.home, "BAKEOFF_HOME",
                   "set BAKEOFF_HOME to a folder in it and run `bakeoff env create`");
  if (!lies_in(runs, shared))
    return outside(shared, "the run directory", runs, "--out", "name a folder in it with --out");
  return Done{};
}

Status check_shared(const fs::path& shared, const Settings& settings, const Plan& plan) {
  CHECK_OK(check_places(shared, settings, plan.directory.path()));
  for (size_t i = 0; i < plan.lanes.size(); ++i) {
    const Lane& lane = plan.lanes[i];
    const std::string& own = lane.entry.contender.own_script;
    if (!own.empty() && !lies_in(own, shared))
      return outside(shared, "the script", own, recipe::where(plan.recipe, "", "contenders"),
                     "copy it, with the modules beside it, into the shared folder");
    const fs::path& python = lane.entry.worker.python;
    if (!lane.failure && !python.empty() && !lies_in(python.parent_path(), shared))
      return outside(
          shared, "the interpreter", python, lane.entry.contender.id,
          "make the environment there: set BAKEOFF_HOME to a folder in it and run `bakeoff env create`");
  }
  for (const auto& [file, digest] : plan.manifest.source_sha256)
    if (!lies_in(file, shared))
      return outside(shared, "the data", file, recipe::where(plan.recipe, "data", "path"),
                     "copy it into the shared folder, and name it there");
  return Done{};
}

}  // namespace bakeoff::fleet
