// The user's repository is only read. Each version is checked out by `git worktree` into a temporary folder
// of its own, so an edited file, an index with half a commit or a bisection under way stay as they are.
// `bakeoff gate` is often called by a hook or a CI job: variables that git sets there would lead to another
// repository and are removed, and no hook of the user's runs. Git must never ask for a password, as nobody
// would answer.

#include "regression/git.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/clock.h"
#include "base/nearest.h"
#include "base/temporary_folder.h"
#include "base/texts.h"
#include "proc/run.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::regression {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKind = "version";  // of temporary folders
const std::string kFolder = fmt::format("{}{}_", TemporaryFolder::kPrefix, kKind);
constexpr int kLogLines = 15;
constexpr double kRemoveSeconds = 60;

// The user's hooks do not run, and no variable of a hook that we run in leads to another repository.
proc::ChildOptions git_child(const fs::path& root, const std::vector<std::string>& arguments) {
  proc::ChildOptions child;
  child.argv = {"git", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false", "-C", root.string()};
  child.argv.insert(child.argv.end(), arguments.begin(), arguments.end());
  child.env = {{"GIT_TERMINAL_PROMPT", "0"}, {"GIT_OPTIONAL_LOCKS", "0"}, {"LC_ALL", "C"}};
  child.env_remove = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY"};
  return child;
}

}  // namespace

Result<std::string> Repository::git(const std::vector<std::string>& arguments) const {
  std::string out;
  proc::CommandOptions options{.child = git_child(root_, arguments), .timeout_ns = 120 * kSecond};
  options.on_line = [&](std::string_view line) { out += std::string(line) + "\n"; };
  TRY(const proc::CommandResult done, proc::run_command(options));
  if (done.ok()) return out;
  return Error{.message = fmt::format("git {}: {}\n{}", arguments.front(), done.text(),
                                      join(table::last_lines(done.output_tail, 5), "\n"))};
}

Result<Repository> Repository::open(const fs::path& folder) {
  Repository repository;
  repository.root_ = folder.empty() ? fs::current_path() : folder;
  if (!fs::is_directory(repository.root_))
    return Error{.message = fmt::format("there is no folder '{}'", folder.string()),
                 .remedy = "name the repository's folder: --repo DIR"};
  const auto top = repository.git({"rev-parse", "--show-toplevel"});
  if (!top)
    return Error{.message = fmt::format("'{}' is no git repository with a work tree: {}",
                                        repository.root_.string(), top.error().message),
                 .remedy = "call it in the repository, or name its folder: --repo DIR"};
  repository.root_ = trimmed(*top);
  return repository;
}

bool Repository::has(const std::string& name) const {
  if (name.empty() || name.starts_with("-")) return false;
  return git({"rev-parse", "--verify", "--quiet", name + "^{commit}"}).has_value();
}

Result<Commit> Repository::commit(const std::string& name) const {
  if (has(name)) {
    TRY(const std::string said, git({"rev-parse", "--verify", "--quiet", name + "^{commit}"}));
    const std::string id(trimmed(said));
    TRY(const std::string subject, git({"log", "-1", "--format=%s", id}));
    return Commit{id, table::one_line(trimmed(subject))};
  }
  TRY(const std::string names, git({"for-each-ref", "--format=%(refname:short)"}));
  return Error{.message = fmt::format("'{}' names no commit of '{}'", table::one_line(name), root_.string()),
               .remedy = fmt::format("{}; a shallow clone lacks commits: `git fetch --unshallow`",
                                     suggest(name, lines_of(names)))};
}

Result<std::string> Repository::uncommitted() const {
  TRY(const std::string text, git({"status", "--porcelain", "--untracked-files=no"}));
  std::vector<std::string> files;
  for (const std::string& line : lines_of(text))
    files.push_back(table::one_line(line.substr(std::min<size_t>(3, line.size()))));
  const size_t all = files.size();
  files.resize(std::min<size_t>(all, 3));
  return fmt::format("{}{}", join(files, ", "), all > 3 ? fmt::format(" and {} more", all - 3) : "");
}

Result<std::vector<Commit>> Repository::between(const Commit& good, const Commit& bad) const {
  if (good.id == bad.id)
    return Error{.message = "the good and the bad end are the same commit " + good.brief(),
                 .remedy = "name two commits of which the second is slower"};
  if (!git({"merge-base", "--is-ancestor", good.id, bad.id}))
    return Error{
        .message = fmt::format("{} is no ancestor of {}", good.brief(), bad.brief()),
        .remedy = "name a good commit that the bad one descends from; `git merge-base GOOD BAD` finds one"};
  TRY(const std::string text,
      git({"rev-list", "--first-parent", "--reverse", "--format=%H %s", good.id + ".." + bad.id}));
  std::vector<Commit> all;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("commit ") || line.size() < 41) continue;
    all.push_back({line.substr(0, 40), table::one_line(line.substr(41))});
  }
  return all;
}

Worktree::Worktree(fs::path root, TemporaryFolder outer)
    : root_(std::move(root)), outer_(std::move(outer)), path_(outer_.path() / root_.filename()) {}

Worktree::Worktree(Worktree&& other) noexcept
    : root_(std::move(other.root_)), outer_(std::move(other.outer_)), path_(std::move(other.path_)) {
  other.path_.clear();
}

// A killed process left its entries in the repository; making a folder has removed those that it left beside it.
void Repository::forget_killed() const {
  const auto listed = git({"worktree", "list", "--porcelain"});
  if (!listed) return;
  constexpr std::string_view kEntry = "worktree ";
  for (const std::string& line : lines_of(*listed)) {
    if (!line.starts_with(kEntry)) continue;
    const fs::path path = line.substr(kEntry.size());
    std::error_code failed;
    if (!path.parent_path().filename().string().starts_with(kFolder) || fs::exists(path, failed)) continue;
    (void)git({"worktree", "remove", "--force", "--force", path.string()}).has_value();
  }
}

Result<Worktree> Worktree::add(const Repository& repository, const Commit& commit) {
  TRY(TemporaryFolder outer, TemporaryFolder::make(kKind));
  repository.forget_killed();
  // The folder is called as the repository, as some builds ask for its name.
  Worktree tree(repository.root(), std::move(outer));
  const proc::CommandOptions add{
      .child = git_child(repository.root(),
                         {"worktree", "add", "--detach", "--force", tree.path_.string(), commit.id}),
      .timeout_ns = 600 * kSecond};
  TRY(const proc::CommandResult done, proc::run_command(add));
  if (!done.ok())
    return Error{.message = fmt::format("git cannot check out {}: {}\n{}", commit.brief(), done.text(),
                                        join(table::last_lines(done.output_tail, 5), "\n")),
                 .remedy = "is there space left in the folder for temporary files (TMPDIR)?"};
  return tree;
}

// run_command() refuses to start after Ctrl-C, and this must run then. git forgets a folder that is gone, and not one
// whose checkout was cut short.
Worktree::~Worktree() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (auto child =
          proc::Child::start(git_child(root_, {"worktree", "remove", "--force", "--force", path_.string()})))
    (void)child->wait(monotonic_clock().now_ns() + static_cast<int64_t>(kRemoveSeconds * kSecond));
}

int64_t timeout_of(double left_s) {
  constexpr double kYear = 3e7;  // seconds; beyond it there is no limit
  return left_s < kYear ? std::llround(std::max(left_s, 1.0) * 1e9) : 0;
}

Status build(const std::string& what, const std::string& command, const fs::path& folder, double left_s,
             const std::function<void(std::string_view)>& on_line) {
  proc::CommandOptions options;
  options.child.argv = {"/bin/sh", "-c", command};
  options.child.cwd = folder;
  options.child.env_remove = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"};
  options.on_line = on_line;
  options.timeout_ns = timeout_of(left_s);
  TRY(const proc::CommandResult done, proc::run_command(options));
  if (done.ok()) return Done{};
  if (done.timed_out)
    return Error{.message = fmt::format("{} was not built in the time that the budget left, {}: `{}`", what,
                                        table::duration(1e3 * left_s), table::one_line(command)),
                 .where = "--budget",
                 .remedy = "builds count: name a longer one"};
  return Error{
      .message = fmt::format("{} does not build: `{}`: {}\n{}", what, table::one_line(command), done.text(),
                             join(table::last_lines(done.output_tail, kLogLines), "\n")),
      .remedy = "run the command in a checkout of that version; nothing was measured"};
}

}  // namespace bakeoff::regression
