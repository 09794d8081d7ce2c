#pragma once

// Commands that race a suite: `bakeoff suite` and `bakeoff reproduce` differ in what they race and in what they show.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/engine_options.h"
#include "suite/suite_run.h"

namespace bakeoff::cli {

struct SuiteOptions {
  std::string command = "suite";
  std::vector<std::filesystem::path> what = {};  // recipes, or one suite file
  std::filesystem::path out = {};                // empty: runs/<suite>-<date>
  std::filesystem::path resume = {};             // the suite to continue
  std::filesystem::path report = {};             // the suite whose table is computed again, offline
  double minutes = 0;                            // of all races together; 0: as the suite or the recipes say
  std::string baseline = {};                     // id of a contender, in place of the suite's
  std::string format = "text";
  std::filesystem::path html = {};  // empty: report.html in the suite's folder
  std::string profile = {};         // as add_profile() says
  EngineOptions engine = {};
  std::string engine_words = {};  // as engine_words() says
};

// --out, --resume, --report, --budget, --html, --profile. `what` is what the command line names instead of a
// folder.
void add_suite_options(CLI::App& sub, SuiteOptions& options, CLI::Option* what);

using NewRecord = std::function<Result<suite::Record>()>;
using Present =
    std::function<int(const suite::Record&, const std::filesystem::path& folder)>;  // the exit code
// Races a new suite, or goes on with one, and shows it; with --report shows it.
int race_or_report(const SuiteOptions& options, const std::filesystem::path& config, const NewRecord& made,
                   const Present& present);

// 0; 1 if a recipe failed (an older run of it may be in the table) or ranked nobody; 3 if a verdict is refused; 130 after
// Ctrl-C.
int code_of(const suite::Record& record, const suite::Table& table);

}  // namespace bakeoff::cli
