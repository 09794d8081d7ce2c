// `bakeoff bisect`: which commit, or which version of a package, made a script or a recipe slower. The search
// itself and its statistics are regression/bisect.h; here stands what it needs from outside: the list of
// versions, a checkout or an environment for each that is probed, and the record, from which an interrupted
// search goes on. The good end's checkout is kept all along, since every probe but the last is raced against
// it.

#include "regression/bisect.h"

#include <fmt/format.h>

#include "base/file_lock.h"
#include "base/files.h"
#include "base/home.h"
#include "base/temporary_folder.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/shared_options.h"
#include "cli/surroundings.h"
#include "cli/usage.h"
#include "cli/versions.h"
#include "environments/runner_files.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "regression/package_versions.h"

namespace bakeoff::cli {
namespace {

struct BisectOptions {
  std::string good = {}, bad = {};  // commits
  std::string package = {};         // "numpy==1.26..2.1" or "numpy==1.26.4,2.0.0": package versions instead
  std::string target = {};          // script or recipe
  fs::path repo = {};               // empty: the current folder
  double margin = 0.02, alpha = 0.01;
  double budget_s = 3600;
  std::string build = {};      // shell command for a checkout
  std::string contender = {};  // empty: the one that regressed most
  bool whole = false;          // whole runs instead of steps
  std::string framework = {};  // of a script: as of ExplainOptions, like the next two
  fs::path python = {};
  std::vector<std::string> arguments = {};
  fs::path out = {};     // empty: runs/bisect-<date>
  fs::path resume = {};  // the search to continue
  fs::path json = {};    // file; empty: not written
};

namespace rg = bakeoff::regression;
using Header = nlohmann::json;

// What a search was asked for, as its record keeps it.
Header header_of(const BisectOptions& options) {
  return {{"target", options.target},
          {"repo", fs::absolute(options.repo.empty() ? fs::current_path() : options.repo).string()},
          {"margin", options.margin},
          {"alpha", options.alpha},
          {"build", options.build},
          {"contender", options.contender},
          {"whole", options.whole},
          {"framework", options.framework},
          {"python", options.python.string()},
          {"arguments", options.arguments},
          {"package", !options.package.empty()},
          {"versions", Header::array()}};
}

VersionRequest asked_for(const Header& header, const fs::path& config, const TimeBudget& time) {
  return {.target = header.at("target"),
          .repo = header.at("repo").get<std::string>(),
          .build = header.at("build"),
          .python = header.at("python").get<std::string>(),
          .framework = header.at("framework"),
          .arguments = header.at("arguments"),
          .config = config,
          .time = time};
}

Status add_commits(Header& header, const BisectOptions& options) {
  TRY(const auto repository, rg::Repository::open(options.repo.empty() ? fs::current_path() : options.repo));
  TRY(const rg::Commit good, repository.commit(options.good));
  TRY(const rg::Commit bad, repository.commit(options.bad));
  TRY(const std::vector<rg::Commit> all, repository.between(good, bad));
  header["versions"].push_back({{"name", good.brief()}, {"detail", good.subject}, {"id", good.id}});
  for (const rg::Commit& commit : all)
    header["versions"].push_back({{"name", commit.brief()}, {"detail", commit.subject}, {"id", commit.id}});
  return Done{};
}

Status add_packages(Header& header, const BisectOptions& options) {
  TRY(const regression::PackageRange range, regression::parse_range(options.package));
  std::vector<std::string> versions = range.listed;
  if (versions.empty()) {
    const fs::path python = options.python.empty() ? fs::path("python3") : options.python;
    TRY(const std::vector<std::string> indexed, regression::indexed_versions(python, range.name));
    versions = regression::within(indexed, range.first, range.last);
  }
  if (versions.size() < 2)
    return Error{.message = fmt::format("there are {} versions of {} from {} to {}", versions.size(),
                                        range.name, range.first, range.last),
                 .remedy = "name a range that holds at least two: numpy==1.26..2.1"};
  for (const std::string& version : versions) {
    const std::string spec = fmt::format("{}=={}", range.name, version);
    header["versions"].push_back({{"name", spec}, {"detail", ""}, {"id", spec}});
  }
  return Done{};
}

Result<rg::BisectFile> opened(const BisectOptions& options, const fs::path& folder) {
  if (!options.resume.empty()) return rg::BisectFile::open(folder);
  Header header = header_of(options);
  CHECK_OK(options.package.empty() ? add_commits(header, options) : add_packages(header, options));
  return rg::BisectFile::create(folder, header);
}

// The versions of a search, made ready when a probe needs them. The good end stays.
class Checkouts {
 public:
  Checkouts(const Header& header, VersionRequest request, RaceTools tools, const Progress& progress)
      : header_(header), request_(std::move(request)), tools_(std::move(tools)), progress_(progress) {
    tools_.observed = &observed_;
  }

  Result<std::unique_ptr<rg::Pairing>> pair(size_t base, size_t head) {
    if (base != 0) {
      TRY(auto parent, version("base", base));
      TRY(auto culprit, version("head", head));
      return version_pair(std::move(parent), std::move(culprit), request_, tools_, progress_);
    }
    if (!good_) {
      TRY(good_, version("good", 0));
    }
    TRY(auto other, version("probe", head));
    return version_pair(good_, std::move(other), request_, tools_, progress_);
  }

 private:
  Result<std::shared_ptr<const Version>> version(const std::string& what, size_t at) {
    const Header& one = header_.at("versions").at(at);
    const std::string name = one.at("name"), id = one.at("id");
    if (header_.at("package").get<bool>()) {
      TRY(Version made, package_version(what, id, request_, progress_));
      return std::shared_ptr<const Version>(new Version(std::move(made)));
    }
    TRY(const auto repository, rg::Repository::open(request_.repo));
    TRY(const rg::Commit commit, repository.commit(id));
    TRY(Version made, commit_version(what, name, commit, repository, request_, progress_));
    return std::shared_ptr<const Version>(new Version(std::move(made)));
  }

  const Header& header_;
  VersionRequest request_;
  RaceTools tools_;
  const Progress& progress_;
  std::map<std::shared_ptr<const Version>, rg::ScriptSide> observed_ = {};
  std::shared_ptr<const Version> good_ = {};
};

Result<rg::BisectOutcome> searched(const BisectOptions& options, const fs::path& config,
                                   const Progress& progress) {
  const TimeBudget time(options.budget_s);
  TRY(const fs::path runner, unpack_runner(bakeoff_home()));
  TRY(const TemporaryFolder scratch, TemporaryFolder::make("explain"));
  const fs::path named = options.resume.empty() ? options.out : options.resume;
  const fs::path folder = named.empty() ? dated_folder("bisect") : named;
  TRY(rg::BisectFile file, opened(options, folder));
  TRY(const FileLock lock, FileLock::attempt(folder / ".lock"));
  const Header header = file.header();
  try {
    rg::BisectOutcome outcome{.settings = {header.at("margin"), header.at("alpha"), options.budget_s},
                              .contender = header.at("contender")};
    for (const Header& one : header.at("versions"))
      outcome.versions.push_back({one.at("name"), one.at("detail")});
    Checkouts checkouts(header, asked_for(header, config, time),
                        {.runner = runner, .folder = scratch.path(), .whole = header.at("whole")}, progress);
    const auto make = [&](size_t base, size_t head) { return checkouts.pair(base, head); };
    CHECK_OK(rg::bisect(outcome, file, make, progress, time));
    return outcome;
  } catch (const Header::exception& wrong) {
    return Error{.message = fmt::format("the record of the search lacks something: {}", wrong.what()),
                 .where = (options.resume / "bisect.jsonl").string() + ":1",
                 .remedy = "start the search anew in another folder (--out DIR)"};
  }
}

int bisect(const BisectOptions& options, const fs::path& config) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  Result<rg::BisectOutcome> outcome = Error{};
  {
    ConsoleProgress progress;
    progress.lines()(longest_text(options.budget_s));
    outcome = searched(options, config, progress.lines());
  }
  if (!outcome) return fail(outcome.error());
  print(rg::to_text(*outcome, output_width()));
  if (!options.json.empty())
    if (const auto written = write_file(options.json, rg::to_json(*outcome)); !written)
      return fail(written.error());
  return rg::exit_code(*outcome);
}

constexpr const char* kBisectFooter =
    "Exit codes: 0 found and confirmed, 1 the bad end is not slower, 2 error, 3 undecided.\n\n"
    "Examples:\n  bakeoff bisect --good v1.0 --bad main train.py\n"
    "  bakeoff bisect --package numpy==1.26..2.1 train.py\n  bakeoff bisect --resume runs/bisect-20261124-101500";

void add_probe_options(CLI::App& sub, BisectOptions& options) {
  sub.add_option("target", options.target,
                 "script or recipe that the versions have; a script's arguments stand behind --");
  add_share(sub, "--margin", options.margin, 10, "slower by less than this is nothing to find; default 2%");
  add_share(sub, "--alpha", options.alpha, 0.5,
            "largest share of named commits that are not slower than their parent by the margin; default 1%");
  add_budget(
      sub, [&options](const Budget& budget) { options.budget_s = 60 * budget.minutes; }, kTime,
      "time of the whole command, checkouts and builds included; default 60m");
  sub.add_option("--contender", options.contender,
                 "of a recipe: id of the contender that is searched for; default the one that regressed most")
      ->type_name("ID");
  sub.add_option("--repo", options.repo, "folder in the repository; default the current folder");
  sub.add_option("--build", options.build,
                 "shell command that is run in each commit's checkout; where it fails the commit is skipped");
  sub.add_flag("--whole", options.whole,
               "of scripts: compare whole runs, from the start of Python to the end, not steps");
  add_interpreter(sub, options.framework, options.python);
}

void check_usage(const BisectOptions& options) {
  if (!options.resume.empty()) return;
  if (options.package.empty() && (options.good.empty() || options.bad.empty()))
    misuse("name both ends: --good and --bad",
           "for example `bakeoff bisect --good v1.0 --bad main train.py`; or --package numpy==1.26..2.1");
  if (options.target.empty())
    misuse("name a script or a recipe", "for example `bakeoff bisect --good v1.0 --bad main train.py`");
}

Action add_bisect(CLI::App& sub) {
  const auto options = std::make_shared<BisectOptions>();
  sub.footer(kBisectFooter);
  auto* good = sub.add_option("--good", options->good, "a commit that is fast")->type_name("COMMIT");
  sub.add_option("--bad", options->bad, "a later commit that is slow")->needs(good)->type_name("COMMIT");
  auto* package =
      sub.add_option(
             "--package", options->package,
             "versions of a package instead of commits, oldest first: numpy==1.26..2.1 for all that pip's "
             "index has between, or a list, numpy==1.26.4,2.0.2,2.1.3")
          ->type_name("SPEC");
  add_probe_options(sub, *options);
  sub.add_option("--out", options->out, "folder of the search's record; default runs/bisect-<date>");
  auto* resume = sub.add_option("--resume", options->resume, "continue a search in its folder");
  sub.add_option("--json", options->json, "write all figures to this file");
  good->excludes(package);
  resume->excludes(good)->excludes(package);
  sub.callback([options] { check_usage(*options); });
  return [options](const Invocation& line) {
    options->arguments = line.tail;
    return bisect(*options, line.config);
  };
}

}  // namespace

const Command kBisect = {
    "bisect",
    "Which commit or package version made a script slower? Each probe is a race against the good end",
    nullptr,
    add_bisect,
    Home::kNeeded,
    Tail::kBehindDashes};

}  // namespace bakeoff::cli
