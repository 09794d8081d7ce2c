#pragma once

// What a command line asks for, as plain values. options.cc parses it; one file for each command carries it
// out.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "cli/version_commands.h"
#include "recipe/changes.h"

namespace bakeoff::cli {

// Limits that replace the recipe's [budget]; 0: as the recipe says.
struct Budget {
  double minutes = 0;
  int64_t pairs = 0;  // number of heats; each heat gives one pair for every two of its members
  bool until_decided = false;
};
using RecipeChanges = std::vector<recipe::Change>;  // --batch 64 and the like (cli/recipe_options.h)
struct RunOptions {
  std::filesystem::path recipe = {};
  RecipeChanges changes = {};
  std::filesystem::path out = {};     // empty: runs/<recipe>-<date>
  std::filesystem::path resume = {};  // the run to continue
  Budget budget = {};
  std::string format = "text";
  bool why = false;           // race the runner-up's settings afterwards
  bool prove_again = false;   // do not reuse proofs of earlier runs
  std::string baseline = {};  // id of a contender, in place of the recipe's baseline
  std::string profile = {};   // file of `bakeoff calibrate`; empty: that of the bakeoff home, if any; "none"
};
struct SuiteOptions {
  std::vector<std::filesystem::path> what = {};  // recipes, or one suite file
  std::filesystem::path out = {};                // empty: runs/<suite>-<date>
  std::filesystem::path resume = {};             // the suite to continue
  std::filesystem::path report = {};             // the suite whose table is computed again, offline
  double minutes = 0;                            // of all races together; 0: as the suite or the recipes say
  std::string baseline = {};                     // id of a contender, in place of the suite's
  std::string format = "text";
  std::filesystem::path html = {};  // empty: report.html in the suite's folder
  std::string profile = {};         // as of RunOptions
};
struct TuneOptions {
  std::filesystem::path recipe = {};  // or a script
  RecipeChanges changes = {};
  std::filesystem::path out = {};  // empty: runs/tune-<recipe>-<date>; races that it has are not run again
  double minutes = 20;             // of all races together
  bool half_precision = false;     // of a recipe: try bfloat16, too
  std::string format = "text";
  std::string profile = {};    // as of RunOptions
  std::string framework = {};  // of a script: as of ExplainOptions, like the next two
  std::filesystem::path python = {};
  std::vector<std::string> arguments = {};
};
struct CalibrateCommand {
  double minutes = 0;  // 0: 10, or 2 with `quick`
  bool quick = false;
  std::string framework = {};         // empty: the first whose environment is ready
  std::filesystem::path output = {};  // empty: profile.json in the bakeoff home
  bool serve_kernel = false;          // be the built-in worker
  std::string ring = {};              // every worker gets this option; the built-in worker ignores it
};
struct SelfTestCommand {
  double minutes = 8;
  std::string framework = {};         // empty: the first that is installed
  std::filesystem::path record = {};  // file for step times of identical contenders, one line for each block
  bool identical_only = false;
};
struct ParityOptions {
  std::filesystem::path recipe = {};
  RecipeChanges changes = {};
  std::filesystem::path out = {};  // empty: a temporary folder
};
struct CheckOptions {
  std::filesystem::path script = {};
  std::string framework = {};         // empty: the one that the script imports
  std::filesystem::path recipe = {};  // trained for two steps on its data; empty: not trained
};
struct ExplainOptions {
  std::vector<std::string> scripts = {};                          // one or two
  std::vector<std::string> arguments = {};                        // of both scripts: what stands behind "--"
  std::optional<std::vector<std::string>> second_arguments = {};  // of the second one: behind a second "--"
  bool modules = false;                                           // the names are modules, as of python -m
  bool tuning = false;                // try every switch, not only what is suspect
  std::string framework = {};         // empty: the one that the script imports
  std::filesystem::path python = {};  // empty: that of the framework's environment
  std::filesystem::path out = {};     // logs and explain.json; empty: none are kept
  double seconds = 150;               // the answer comes within a quarter more
  bool all = false;
  std::filesystem::path html = {};  // of the report; empty: in `out`, or none
  std::string rule = {};            // print its page, and nothing else
  std::string format = "text";
};
struct EmitOptions {
  std::filesystem::path recipe = {};
  RecipeChanges changes = {};
  std::filesystem::path out = {};
};
struct ShowOptions {
  std::string what = {};  // workload, .ir file or recipe
};
struct OpsOptions {
  bool markdown = false;
  bool workloads = false;
};
struct RecipeOptions {
  std::filesystem::path recipe = {};  // checked if given
  RecipeChanges changes = {};
  bool schema = false;
  bool markdown = false;
};
struct RecipesOptions {};
struct InitOptions {
  std::string name = {};  // of a recipe inside the program; empty: a first one, to edit
  bool force = false;     // replace what exists
};
struct ExecOptions {
  std::filesystem::path script = {};
  std::vector<std::string> arguments = {};  // of the script: all that stands behind its name
  std::string framework = {};               // empty: the one that the script imports
};
enum class EnvAction { kCreate, kList, kDoctor };
struct EnvOptions {
  EnvAction action = EnvAction::kList;
  std::vector<std::string> names = {};
};
struct DataOptions {
  std::string name = {};
};
struct ImportOptions {
  std::string model = {};  // FILE.py:NAME
  std::vector<std::string> inputs = {};
  std::string loss = {};
  std::string output = {};
  std::string framework = {};         // empty: what the file imports
  std::filesystem::path python = {};  // empty: that of the framework's environment
  std::filesystem::path socket = {};  // of a process that has the model; `model` is then but its name
  std::filesystem::path out = {};
  double seconds = 600;
  bool force = false;
};
struct TranslateOptions {
  ImportOptions model = {};  // FILE.py:NAME, an ONNX file, a workload or a recipe; without `out`
  std::string to = {};       // "keras,jax"
  std::filesystem::path weights = {};
  std::filesystem::path out = {};  // empty: <model>_translated
  std::string format = "text";
};
struct MachineOptions {
  bool json = false;
  bool again = false;                             // measure even if there is a record
  std::filesystem::path before = {}, after = {};  // two records to compare
};
struct ReportOptions {
  std::filesystem::path run = {};
  std::string format = "text";
  std::filesystem::path html = {};  // empty: RUN/report.html
  std::string baseline = {};        // id of a contender, in place of the run's
  bool check = false;               // hold the formats against each other instead of printing one
};
struct ExportOptions {
  std::filesystem::path run = {};
  std::string to = {};             // "tensorboard", "jsonl", ...
  std::filesystem::path out = {};  // empty: standard output, or a place in the run directory
  std::filesystem::path python =
      {};  // that has the client of W&B or MLflow; empty: the one beside the program
};

enum class StoreAction { kImport, kList, kRebuild, kPath };
struct StoreOptions {
  StoreAction action = StoreAction::kList;
  std::vector<std::filesystem::path> folders = {};
  bool again = false;    // import what has not changed, too
  bool forget = false;   // rebuild: drop runs whose directories are gone
  bool skipped = false;  // list what could not be read
  int64_t most = 20;     // rows of the list
  std::string format = "text";
};
struct HistoryOptions {
  std::string series = {};           // an id, a name or a part of one; empty: all
  int64_t last = 0;                  // points of each series; 0: 1,000, or as many as a page has room for
  std::filesystem::path read = {};   // a CSV file with series of other programs; empty: the index
  double unit = 1;                   // of its times, in seconds
  std::string time = {};             // its column of times; empty: guessed
  std::vector<std::string> by = {};  // its columns that tell series apart; empty: guessed
  std::string format = "text";
  std::filesystem::path html = {};
  bool accept = false;
  bool withdraw = false;  // take back what was accepted
  std::string run = {};   // where the step begins; empty: the latest nominated shift
  std::string note = {};
};

using Command =
    std::variant<RunOptions, SuiteOptions, TuneOptions, CalibrateCommand, SelfTestCommand, ParityOptions,
                 CheckOptions, ExplainOptions, GateOptions, BisectOptions, CompareOptions, EmitOptions,
                 ExecOptions, InitOptions, ShowOptions, OpsOptions, RecipeOptions, RecipesOptions, EnvOptions,
                 DataOptions, ImportOptions, TranslateOptions, MachineOptions, ReportOptions, ExportOptions,
                 StoreOptions, HistoryOptions>;

struct CommandLine {
  Command command = {};
  std::filesystem::path config = {};  // --config
};

// A command; or an exit code, after help, version or an error was printed.
std::variant<CommandLine, int> parse_command_line(int argc, char** argv);

// Each carries out one command and returns the exit code: 0 done, 1 the answer is no, 2 bad input, 3 no
// verdict (the host was busy), 130 Ctrl-C.
int run(const RunOptions&, const std::filesystem::path& config);
int suite(const SuiteOptions&, const std::filesystem::path& config);
int tune(const TuneOptions&, const std::filesystem::path& config);
int selftest(const SelfTestCommand&, const std::filesystem::path& config);
int calibrate(const CalibrateCommand&, const std::filesystem::path& config);
int parity(const ParityOptions&, const std::filesystem::path& config);
int check(const CheckOptions&, const std::filesystem::path& config);
int explain(const ExplainOptions&, const std::filesystem::path& config);
int gate(const GateOptions&, const std::filesystem::path& config);
int compare(const CompareOptions&);
int bisect(const BisectOptions&, const std::filesystem::path& config);
int emit(const EmitOptions&);
int exec(const ExecOptions&, const std::filesystem::path& config);
int init(const InitOptions&);
int recipes(const RecipesOptions&);
int show(const ShowOptions&);
int ops(const OpsOptions&);
int recipe(const RecipeOptions&);
int env(const EnvOptions&, const std::filesystem::path& config);
int data(const DataOptions&);
int import(const ImportOptions&, const std::filesystem::path& config);
int translate(const TranslateOptions&, const std::filesystem::path& config);
int machine(const MachineOptions&, const std::filesystem::path& config);
int report(const ReportOptions&);
int export_run(const ExportOptions&);
int store(const StoreOptions&);
int history(const HistoryOptions&);

}  // namespace bakeoff::cli
