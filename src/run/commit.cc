#include "run/commit.h"

#include "base/clock.h"
#include "base/texts.h"
#include "proc/run.h"
#include "records/marks.h"

namespace bakeoff::run {
namespace {

// What git prints; nothing where it fails.
std::optional<std::string> git(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"git", "--no-optional-locks"});
  const auto done = proc::run_command({.child = {.argv = arguments}, .timeout_ns = 10 * kSecond});
  if (!done || !done->ok()) return std::nullopt;
  return std::string(trimmed(done->output_tail));
}

bool is_hash(const std::string& text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

void note_commit(const RunDirectory& directory, const Progress& tell) {
  const auto hash = git({"rev-parse", "--verify", "HEAD"});
  if (!hash || !is_hash(*hash)) return;
  const auto changed = git({"status", "--porcelain", "--untracked-files=no"});
  const Commit commit{.hash = *hash,
                      .branch = git({"symbolic-ref", "--short", "-q", "HEAD"}).value_or(""),
                      .dirty = changed && !changed->empty(),
                      .started = utc_now()};
  if (const auto kept = directory.append(commit); !kept)
    tell("the commit is not recorded: " + kept.error().text());
}

}  // namespace bakeoff::run
