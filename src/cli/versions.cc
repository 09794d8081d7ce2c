// "--base X" may be a commit, a folder, an interpreter, a package version or a file. They are told apart by
// what X looks like and what lies on disk, in a fixed order, and where two meanings are possible the user is
// asked to write another name instead of being given the likelier one (not_ambiguous). HEAD with uncommitted
// changes is refused for the same reason: nobody can tell which of the two was meant.
//
// A version is raced with its own files: a commit gets a checkout and the build command, a package version a
// folder of packages that is put before the others. Such a folder is made under another name and then
// renamed, because two commands may make it at once.

#include "cli/versions.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/home.h"
#include "base/sha256.h"
#include "base/texts.h"
#include "cli/output.h"
#include "emit/all/frameworks.h"
#include "environments/script_environment.h"
#include "proc/run.h"
#include "race/race.h"
#include "recipe/shipped.h"
#include "regression/metric_pair.h"
#include "regression/package_versions.h"
#include "regression/recipe_pair.h"
#include "table/text.h"

namespace bakeoff::cli {
namespace {

using regression::Commit;
using regression::Repository;

fs::path place_of(const VersionRequest& request) {
  return request.repo.empty() ? fs::current_path() : fs::absolute(request.repo);
}

bool executable(const fs::path& file) {
  std::error_code failed;
  return fs::is_regular_file(file, failed) && ::access(file.c_str(), X_OK) == 0;
}

// The interpreter that a path names: itself, or that of a virtual environment; empty: none.
fs::path interpreter_at(const fs::path& path) {
  if (executable(path)) return fs::absolute(path);
  for (const char* name : {"bin/python", "bin/python3"})
    if (executable(path / name)) return fs::absolute(path / name);
  return {};
}

std::string versions_of(const fs::path& python) {
  const auto done =
      proc::run_command({.child = {.argv = {python.string(), "--version"}}, .timeout_ns = 20 * kSecond});
  return done && done->ok() ? table::one_line(done->output_tail) : "";
}

Error no_target(const std::string& what, const fs::path& file) {
  return Error{.message = fmt::format("{} has no file '{}'", what, file.string()),
               .remedy =
                   "name a script or recipe that both versions have, by its path from the current folder (or "
                   "from --repo DIR)"};
}

// A version whose target lies in `folder`.
Result<Version> in_folder(Version version, const VersionRequest& request) {
  version.file = version.folder / request.target;
  std::error_code failed;
  if (!fs::exists(version.file, failed) && !version.tree && recipe::find_shipped(request.target))
    version.file = request.target;  // a recipe inside the program
  else if (!fs::exists(version.file, failed))
    return no_target(fmt::format("{} ({})", version.what, version.info.name), request.target);
  return version;
}

// Nothing if the text names no interpreter and no folder.
std::optional<Version> on_disk(const std::string& what, const std::string& text) {
  std::error_code failed;
  Version version{.what = what, .info = {.name = text}};
  if (const fs::path python = interpreter_at(text); !python.empty()) {
    version.python = python;
    version.info.detail = versions_of(python);
    return version;
  }
  if (!fs::is_directory(text, failed)) return std::nullopt;
  version.folder = fs::absolute(text).lexically_normal();
  version.info.detail = "files as they are";
  return version;
}

Status not_ambiguous(const std::string& text, const Result<Repository>& repository) {
  if (!repository || text.find('/') != std::string::npos || !repository->has(text)) return Done{};
  return Error{
      .message = fmt::format("'{}' is a folder or a program here, and a commit's name too", text),
      .remedy = fmt::format("write ./{0} for what lies here, or refs/heads/{0} for the branch", text)};
}

// HEAD is what is committed; a user with uncommitted changes may mean these.
Status not_dirty(const std::string& what, const std::string& text, const Repository& repository) {
  if (text != "HEAD" && text != "@") return Done{};
  TRY(const std::string changed, repository.uncommitted());
  if (changed.empty()) return Done{};
  return Error{
      .message = fmt::format("{} is {}, and the work tree has changes that are in no commit: {}", what, text,
                             changed),
      .remedy = fmt::format(
          "commit or stash them; or --{} . for the files as they are; or {}^0 for the commit without them",
          what, text)};
}

Result<fs::path> interpreter_for(const Version& version, const VersionRequest& request) {
  if (!version.python.empty()) return version.python;
  if (!request.python.empty()) {
    // One that a build has made lies in the version's own folder.
    if (request.python.is_relative() && request.python.has_parent_path())
      for (const fs::path& folder : {version.folder, fs::current_path()})
        if (executable(folder / request.python)) return folder / request.python;
    return request.python;
  }
  TRY(const auto python, interpreter_of_script(version.file, request.framework, request.config));
  return python.value_or("python3");  // of a script of no framework
}

// What an interpreter is, for proofs: another package makes another proof.
Result<std::string> packages_of(const fs::path& python) {
  const auto done = proc::run_command(
      {.child =
           {.argv =
                {python.string(), "-c",
                 "import importlib.metadata as m, sys\nprint(sys.executable, sys.version)\n"
                 "for d in sorted((d.metadata['Name'] or '', d.version) for d in m.distributions()): print(*d)"}},
       .timeout_ns = 60 * kSecond});
  if (!done) return done.error();
  if (!done->ok())
    return Error{.message = fmt::format("'{}' does not run: {}", python.string(), done->text())};
  return sha256(done->output_tail);
}

Result<fs::path> installed(const fs::path& python, const std::string& spec, const TimeBudget& time,
                           const Progress& progress) {
  const auto version = proc::run_command(
      {.child = {.argv = {python.string(), "-c", "import sys; print(sys.version, sys.prefix)"}},
       .timeout_ns = 60 * kSecond});
  if (!version) return version.error();
  if (!version->ok())
    return Error{.message = fmt::format("'{}' does not run: {}", python.string(), version->text())};
  const fs::path home = bakeoff_home() / "packages";
  const fs::path folder = home / fmt::format("{}-{}", spec, sha256(version->output_tail).substr(0, 12));
  std::error_code failed;
  fs::create_directories(home, failed);
  if (failed) return Error{.message = fmt::format("cannot make '{}': {}", home.string(), failed.message())};
  if (fs::exists(folder, failed)) return folder;
  progress(fmt::format("installing {}", spec));
  // Whoever finishes first puts its folder in place; one that is half made never has its name.
  const fs::path half = home / fmt::format(".{}-{}", folder.filename().string(), ::getpid());
  fs::remove_all(half, failed);
  proc::CommandOptions pip{
      .child = {.argv = {python.string(), "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
                         "--target", half.string(), spec}},
      .timeout_ns = regression::timeout_of(time.left_s())};
  pip.on_line = [&](std::string_view line) { progress(fmt::format("{}: {}", spec, line)); };
  const auto done = proc::run_command(pip);
  if (!done || !done->ok()) {
    fs::remove_all(half, failed);
    if (!done) return done.error();
    return Error{
        .message = fmt::format("pip cannot install {}: {}\n{}", spec, done->text(),
                               join(table::last_lines(done->output_tail, 8), "\n")),
        .remedy = "`pip index versions NAME` lists versions; --python FILE names an interpreter with pip"};
  }
  fs::rename(half, folder, failed);
  if (failed) fs::remove_all(half, failed);
  if (!fs::exists(folder, failed)) return Error{.message = fmt::format("cannot make '{}'", folder.string())};
  return folder;
}

}  // namespace

bool is_package_version(const std::string& text) {
  const size_t at = text.find("==");
  if (at == std::string::npos || !regression::is_version(text.substr(at + 2))) return false;
  std::string name = text.substr(0, at);
  if (const size_t open = name.find('['); open != std::string::npos && name.ends_with(']')) {
    for (const std::string& extra :
         split(std::string_view(name).substr(open + 1, name.size() - open - 2), ","))
      if (!regression::is_package(extra)) return false;
    name.resize(open);
  }
  return regression::is_package(name);
}

Result<Version> commit_version(const std::string& what, const std::string& name, const Commit& commit,
                               const Repository& repository, const VersionRequest& request,
                               const Progress& progress) {
  progress(fmt::format("checking out {} ({})", name, commit.brief()));
  Version version{.what = what,
                  .info = {.name = name, .detail = fmt::format("{} {}", commit.brief(), commit.subject)}};
  TRY(regression::Worktree tree, regression::Worktree::add(repository, commit));
  const fs::path inside = fs::relative(fs::canonical(place_of(request)), fs::canonical(repository.root()));
  version.folder = (tree.path() / inside).lexically_normal();
  version.tree.emplace(std::move(tree));
  std::error_code failed;
  if (!fs::is_directory(version.folder, failed))
    return no_target(fmt::format("{} ({})", what, name), inside / request.target);
  if (!request.build.empty()) {
    const auto on_line = [&](std::string_view line) { progress(fmt::format("building {}: {}", name, line)); };
    CHECK_OK(regression::build(fmt::format("{} ({}, {})", what, name, commit.brief()), request.build,
                               version.folder, request.time.left_s(), on_line));
  }
  return in_folder(std::move(version), request);
}

Result<Version> package_version(const std::string& what, const std::string& spec,
                                const VersionRequest& request, const Progress& progress) {
  TRY(Version version,
      in_folder({.what = what, .info = {.name = spec}, .folder = place_of(request)}, request));
  TRY(const fs::path python, interpreter_for(version, request));
  version.python = python;
  TRY(version.packages, installed(python, spec, request.time, progress));
  return version;
}

Result<Version> find_version(const std::string& what, const std::string& text, const VersionRequest& request,
                             const Progress& progress) {
  std::error_code failed;
  if (request.target.empty()) {
    if (!fs::is_regular_file(text, failed))
      return Error{
          .message = fmt::format("{}: there is no file '{}'", what, table::one_line(text)),
          .remedy =
              "without a script or recipe, --base and --head name two scripts (or two recipes); for two "
              "commits name the script too: bakeoff gate --base main --head HEAD train.py"};
    return Version{
        .what = what, .info = {.name = text}, .folder = fs::current_path(), .file = fs::absolute(text)};
  }
  if (is_package_version(text)) return package_version(what, text, request, progress);
  const auto repository = Repository::open(place_of(request));
  if (auto version = on_disk(what, text)) {
    CHECK_OK(not_ambiguous(text, repository));
    if (version->folder.empty()) version->folder = place_of(request);
    return in_folder(std::move(*version), request);
  }
  if (!repository) return repository.error();
  CHECK_OK(not_dirty(what, text, *repository));
  TRY(const Commit commit, repository->commit(text));
  return commit_version(what, text, commit, *repository, request, progress);
}

Result<regression::ScriptSide> script_side(const Version& version, const VersionRequest& request,
                                           const fs::path& runner) {
  TRY(const fs::path python, interpreter_for(version, request));
  TRY(explain::Subject subject,
      explain::subject_of_file(version.file, {.python = python, .runner = runner, .folder = version.folder}));
  subject.name = request.target.empty() ? version.info.name : request.target;
  const fs::path inside = version.file.lexically_relative(version.folder);
  const bool below = !inside.empty() && *inside.begin() != "..";
  subject.spec.arguments = {below ? inside.string() : version.file.string()};
  subject.spec.arguments.insert(subject.spec.arguments.end(), request.arguments.begin(),
                                request.arguments.end());
  if (!version.packages.empty()) subject.spec.environment["PYTHONPATH"] = version.packages.string();
  return regression::ScriptSide{version.what, std::move(subject)};
}

namespace {

bool is_recipe(const fs::path& file) {
  std::error_code failed;
  return file.extension() == ".toml" || (!fs::exists(file, failed) && recipe::find_shipped(file));
}

Result<regression::RecipeSide> recipe_side(const Version& version, const VersionRequest& request) {
  if (!version.packages.empty())
    return Error{
        .message = fmt::format("{}: a package version cannot be put below a recipe", version.info.name),
        .remedy = "name two environments instead: --base env-a --head env-b"};
  TRY(recipe::Recipe recipe, recipe::load(version.file));
  CHECK_OK(check_budget(recipe));
  TRY(Interpreters interpreters, find_interpreters(request.config));
  if (const fs::path python = version.python.empty() ? request.python : version.python; !python.empty()) {
    TRY(const std::string identity, packages_of(python));
    for (const recipe::Contender& contender : recipe.contenders)
      interpreters[contender.environment] = {python, "", identity};
  }
  return regression::RecipeSide{version.what, std::move(recipe), std::move(interpreters)};
}

// The pair, and what it runs.
class OwningPair : public regression::Pairing {
 public:
  OwningPair(std::shared_ptr<const Version> base, std::shared_ptr<const Version> head,
             std::unique_ptr<regression::Pairing> inner)
      : base_(std::move(base)), head_(std::move(head)), inner_(std::move(inner)) {}
  std::vector<regression::Row> rows() const override { return inner_->rows(); }
  Result<std::vector<regression::PairHeats>> heat(const std::vector<size_t>& open, int64_t rounds,
                                                  double left_s) override {
    return inner_->heat(open, rounds, left_s);
  }
  double round_s(const std::vector<size_t>& open) const override { return inner_->round_s(open); }
  bool whole_runs() const override { return inner_->whole_runs(); }
  std::string per() const override { return inner_->per(); }
  std::vector<std::string> notes() const override { return inner_->notes(); }

 private:
  std::shared_ptr<const Version> base_, head_;
  std::unique_ptr<regression::Pairing> inner_;  // ends before its checkouts vanish
};

// The pair, with the name of the file that its rows are about.
template <typename Pair>
std::unique_ptr<regression::Pairing> owned(std::shared_ptr<const Version> base,
                                           std::shared_ptr<const Version> head, const VersionRequest& request,
                                           std::unique_ptr<Pair> pair) {
  pair->file = request.target.empty() ? head->info.name : file_in_repository(request);
  return std::make_unique<OwningPair>(std::move(base), std::move(head), std::move(pair));
}

Result<std::unique_ptr<regression::Pairing>> recipe_versions(std::shared_ptr<const Version> base,
                                                             std::shared_ptr<const Version> head,
                                                             const VersionRequest& request,
                                                             const RaceTools& tools,
                                                             const Progress& progress) {
  TRY(const regression::RecipeSide base_side, recipe_side(*base, request));
  TRY(const regression::RecipeSide head_side, recipe_side(*head, request));
  // Each pair has folders of its own: a search makes many.
  std::error_code failed;
  const fs::path folder = tools.folder / "recipes";
  fs::remove_all(folder, failed);
  TRY(auto pair, regression::RecipePair::make(
                     base_side, head_side, folder, bakeoff_home() / "proofs", progress,
                     [progress](const Happening& now) {
                       if (now.stage != "race") progress(fmt::format("{}: {}", now.stage, now.detail));
                     },
                     request.time));
  return owned(std::move(base), std::move(head), request, std::move(pair));
}

}  // namespace

Result<std::unique_ptr<regression::Pairing>> version_pair(std::shared_ptr<const Version> base,
                                                          std::shared_ptr<const Version> head,
                                                          const VersionRequest& request,
                                                          const RaceTools& tools, const Progress& progress) {
  if (is_recipe(base->file)) {
    if (!tools.metric) return recipe_versions(std::move(base), std::move(head), request, tools, progress);
    return Error{.message = "--metric is of scripts: a recipe's contenders print no figures of their own",
                 .remedy = "leave --metric out; a recipe is compared by the time of a sample"};
  }
  TRY(regression::ScriptSide base_side, script_side(*base, request, tools.runner));
  TRY(regression::ScriptSide head_side, script_side(*head, request, tools.runner));
  if (tools.metric) {
    TRY(auto pair, regression::MetricPair::make(std::move(base_side), std::move(head_side), *tools.metric));
    return owned(std::move(base), std::move(head), request, std::move(pair));
  }
  if (tools.observed != nullptr)
    if (const auto known = tools.observed->find(base); known != tools.observed->end())
      base_side = known->second;
  TRY(auto pair, regression::ScriptPair::make(std::move(base_side), std::move(head_side), tools.folder,
                                              tools.whole, request.time.left_s(), progress));
  if (tools.observed != nullptr) tools.observed->insert({base, pair->base()});
  return owned(std::move(base), std::move(head), request, std::move(pair));
}

std::string file_in_repository(const VersionRequest& request) {
  const auto repository = Repository::open(place_of(request));
  std::error_code failed;
  const fs::path file = fs::weakly_canonical(place_of(request) / request.target, failed);
  if (!repository || failed) return request.target;
  const fs::path inside = fs::relative(file, fs::canonical(repository->root()), failed);
  return failed || inside.empty() || *inside.begin() == ".." ? request.target : inside.string();
}

}  // namespace bakeoff::cli
