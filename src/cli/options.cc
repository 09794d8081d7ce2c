#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "base/nearest.h"
#include "base/texts.h"
#include "base/version.h"
#include "cli/console.h"
#include "cli/gate_options.h"
#include "cli/help.h"
#include "cli/manual.h"
#include "cli/recipe_options.h"
#include "cli/usage.h"
#include "data/image_sets.h"
#include "emit/all/frameworks.h"
#include "environments/environments.h"
#include "selftest/selftest.h"

namespace bakeoff::cli {
namespace {

// The parser's targets: one of each command's options, filled by CLI11.
struct Targets {
  RunOptions run;
  SuiteOptions suite;
  TuneOptions tune;
  SelfTestCommand selftest;
  CalibrateCommand calibrate;
  ParityOptions parity;
  CheckOptions check;
  ExplainOptions explain;
  GateOptions gate;
  BisectOptions bisect;
  CompareOptions compare;
  EmitOptions emit;
  ExecOptions exec;
  InitOptions init;
  ShowOptions show;
  OpsOptions ops;
  RecipeOptions recipe;
  EnvOptions env;
  DataOptions data;
  ImportOptions import;
  TranslateOptions translate;
  MachineOptions machine;
  ReportOptions report;
  ExportOptions exported;
  StoreOptions store;
  HistoryOptions history;
  std::filesystem::path config;
};

CLI::App* command(CLI::App& app, const std::string& name, const std::string& what,
                  const std::string& example) {
  CLI::App* sub = app.add_subcommand(name, what);
  sub->footer("Example:\n  " + example);
  return sub;
}

void add_format(CLI::App* sub, std::string& format) {
  sub->add_option("--format", format, "text, json, markdown or csv")
      ->check(one_of({"text", "json", "markdown", "csv"}))
      ->capture_default_str();
}

// "6", "6min", "6m", "90s", "1h", "20pairs".
std::optional<Budget> parse_budget(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  if (end == text.c_str() || !(number > 0 && number < 1e9)) return std::nullopt;
  if (unit.empty() || unit == "min" || unit == "m") return Budget{.minutes = number};
  if (unit == "s") return Budget{.minutes = number / 60};
  if (unit == "h") return Budget{.minutes = number * 60};
  if (unit != "pairs" || number != std::floor(number)) return std::nullopt;
  return Budget{.pairs = static_cast<int64_t>(number)};
}

constexpr const char* kRecipe = "a file (TOML), or the name of one of `bakeoff recipes`";

void add_selftest(CLI::App& app, Targets& t) {
  CLI::App* sub = command(
      app, "selftest", "Race identical contenders and planted faults on this machine: is the verdict right?",
      "bakeoff selftest --minutes 8");
  sub->add_option("--minutes", t.selftest.minutes, "duration in minutes")
      ->check(number_from(0.1, 100000.0))
      ->capture_default_str();
  const SelfTestNames names = selftest_names();
  const auto plantable = std::span(names.all).first(names.plantable);
  sub->add_option("--framework", t.selftest.framework,
                  fmt::format("default: the first installed of {}", join(plantable, ", ")))
      ->check(one_of(names.all));
  sub->add_option(
      "--record", t.selftest.record,
      "append the step times of identical contenders, one line for each block: {\"a\":[ms],\"b\":[ms]}");
  sub->add_flag(
      "--identical-only", t.selftest.identical_only,
      "plant no faults and use shorter blocks: more races of identical contenders in the same time");
}

CLI::Validator above_zero() {
  return CLI::Validator(
      [](const std::string& text) {
        char* end = nullptr;
        const double minutes = std::strtod(text.c_str(), &end);
        return *end == '\0' && minutes > 0 && minutes < 1e6 ? std::string() : "must be a number above 0";
      },
      "");
}

std::vector<std::string> frameworks_that_train() {
  std::vector<std::string> names;
  for (const emit::Framework* framework : emit::frameworks()) {
    if (emit::can(*framework, ir::Scenario::kTrain)) names.push_back(framework->name);
  }
  return names;
}

void add_calibrate(CLI::App& app, Targets& t) {
  CLI::App* calibrate = command(
      app, "calibrate",
      "Measure how much identical workers differ on this machine, and which controls reduce the difference",
      "bakeoff calibrate --quick");
  calibrate->add_option("--minutes", t.calibrate.minutes, "duration in minutes; default 10, with --quick 2")
      ->check(above_zero());
  calibrate->add_flag("--quick", t.calibrate.quick, "two minutes and fewer controls");
  calibrate->add_option("--framework", t.calibrate.framework,
                        fmt::format("{}, or kernel for the built-in one; default: the first installed",
                                    join(frameworks_that_train(), ", ")));
  calibrate->add_option("--output", t.calibrate.output, "default: profile.json in the bakeoff home");
  calibrate->add_flag("--serve-kernel", t.calibrate.serve_kernel)->group("");
  calibrate->add_option("--ring", t.calibrate.ring)->group("");
}

// What the program says where nothing is asked of it.
constexpr const char* kStart =
    "Bakeoff races the same recipe in every framework and gives one honest verdict.\n\n"
    "  bakeoff env create       creates the environments of the frameworks\n"
    "  bakeoff run mnist_cnn    proves that they compute the same, races them\n"
    "  bakeoff init             writes a recipe to edit\n\n"
    "All commands: bakeoff --help. Recipes inside: bakeoff recipes.\n"
    "Words: bakeoff help WORD. Pages: bakeoff help docs.\n";

constexpr const char* kBaselineDoc =
    "contender that the others are compared with, by its id, as JSON has it (torch, or keras[backend=jax]): a further "
    "table says how many times as fast as it each of them is";

void add_suite_command(CLI::App& app, Targets& t) {
  CLI::App* suite = command(app, "suite",
                            "Race several recipes one after another: one table of models by contenders, with "
                            "their geometric mean",
                            "bakeoff suite quick --baseline torch");
  auto* what = suite->add_option("recipes", t.suite.what, "recipes (TOML), or one suite file");
  suite->add_option("--out", t.suite.out, "folder of the suite; default runs/<suite>-<date>");
  auto* resume = suite->add_option("--resume", t.suite.resume, "continue an interrupted suite in its folder");
  auto* report =
      suite->add_option("--report", t.suite.report, "compute the table again from a suite's folder, offline");
  suite
      ->add_option_function<std::string>(
          "--budget", [&t](const std::string& text) { t.suite.minutes = parse_budget(text)->minutes; },
          "time of all races together (90s, 20m, 1h; 6 is 6 minutes), shared out among the recipes; instead of "
          "the suite's minutes and the recipes' [budget]")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const auto budget = parse_budget(text);
            return budget && budget->minutes > 0 ? std::string() : "must be a time above 0: 90s, 20m, 1h";
          },
          "TIME"));
  suite->add_option("--baseline", t.suite.baseline, kBaselineDoc);
  add_format(suite, t.suite.format);
  suite->add_option("--html", t.suite.html,
                    "path of the HTML page; default report.html in the suite's folder");
  suite->add_option(
      "--profile", t.suite.profile,
      "machine profile of `bakeoff calibrate`, or none; default profile.json in the bakeoff home");
  what->excludes(resume)->excludes(report);
  resume->excludes(report);
}

void add_report_command(CLI::App& app, Targets& t) {
  CLI::App* report = command(app, "report", "Recompute table and HTML report from a run directory, offline",
                             "bakeoff report runs/mnist_cnn-20261121-080000 --format markdown");
  report->add_option("run", t.report.run, "run directory")->required();
  add_format(report, t.report.format);
  report->add_option("--html", t.report.html, "path of the HTML report; default RUN/report.html");
  report->add_option("--baseline", t.report.baseline, kBaselineDoc);
  report
      ->add_flag("--check", t.report.check,
                 "read text, JSON, Markdown, CSV and the page back, and say whether every figure agrees")
      ->excludes("--format");
}

void add_export_command(CLI::App& app, Targets& t) {
  const std::vector<std::string> tools = {"tensorboard", "wandb", "mlflow", "junit", "csv", "jsonl"};
  CLI::App* exported =
      command(app, "export", "Write a run for another tool: TensorBoard, W&B, MLflow, JUnit, tables",
              "bakeoff export runs/mnist_cnn-20261121-080000 --to tensorboard --out logs");
  exported->add_option("run", t.exported.run, "run directory")->required();
  exported->add_option("--to", t.exported.to, join(tools, ", "))->required()->check(one_of(tools));
  exported->add_option(
      "--out", t.exported.out,
      "file of junit, csv and jsonl, default standard output; folder of tensorboard, default "
      "RUN/tensorboard, and of wandb, default RUN; SQLite file of mlflow, default RUN/mlflow.db");
  exported->add_option(
      "--python", t.exported.python,
      "interpreter that has the package wandb or mlflow; default: the one beside this program, else "
      "python3 in PATH");
}

void add_run_commands(CLI::App& app, Targets& t) {
  CLI::App* run =
      command(app, "run", "Prove that the contenders of a recipe compute the same, race them and report",
              "bakeoff run mnist_cnn --budget 6m");
  auto* recipe = run->add_option("recipe", t.run.recipe, kRecipe);
  add_recipe_options(run, t.run.changes);
  run->add_option("--out", t.run.out, "run directory; default runs/<recipe>-<date>");
  auto* resume = run->add_option("--resume", t.run.resume, "continue an interrupted or undecided run");
  run->add_option_function<std::string>(
         "--budget",
         [&t](const std::string& text) {
           const bool until = t.run.budget.until_decided;
           t.run.budget = *parse_budget(text);
           t.run.budget.until_decided = until;
         },
         "time of the whole command, proofs included (90s, 3m, 1h; 6 is 6 minutes), or number of paired blocks "
         "(20pairs), instead of the recipe's [budget]")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return parse_budget(text) ? std::string()
                                      : "must be a time above 0, or whole pairs: 90s, 3m, 1h, 20pairs";
          },
          ""));
  run->add_option_function<std::string>(
         "--until", [&t](const std::string&) { t.run.budget.until_decided = true; },
         "decided: race until every contender is decided, without a limit; Ctrl-C ends it with what is known")
      ->check(one_of({"decided"}));
  add_format(run, t.run.format);
  run->add_flag(
      "--why", t.run.why,
      "afterwards race the runner-up with its settings changed one by one, and say which part of the gap "
      "each is");
  run->add_flag("--prove-again", t.run.prove_again,
                "do not reuse parity proofs of earlier runs with the same inputs");
  run->add_option(
      "--profile", t.run.profile,
      "machine profile of `bakeoff calibrate`, or none; default profile.json in the bakeoff home");
  run->add_option("--baseline", t.run.baseline, kBaselineDoc);
  recipe->excludes(resume);

  CLI::App* parity = command(app, "parity", "Run only the parity gate: do all contenders compute the same?",
                             "bakeoff parity mnist_cnn");
  parity->add_option("recipe", t.parity.recipe, kRecipe)->required();
  add_recipe_options(parity, t.parity.changes);
  parity->add_option("--out", t.parity.out, "keep scripts, logs and records here");

  CLI::App* check =
      command(app, "check", "Say what a script of your own lacks to be a contender, and the lines to add",
              "bakeoff check mine.py --recipe race.toml");
  check->add_option("script", t.check.script, "Python script")->required();
  check
      ->add_option("--framework", t.check.framework,
                   "torch, keras, keras2 or jax; default the one that it imports")
      ->check(one_of({"torch", "keras", "keras2", "jax"}));
  check->add_option("--recipe", t.check.recipe, "train two steps on this recipe's data, from its weights");
}

void add_source_commands(CLI::App& app, Targets& t) {
  CLI::App* emit =
      command(app, "emit", "Write the training scripts of a recipe, with data and weights; they run alone",
              "bakeoff emit mnist_cnn --out scripts && bakeoff exec scripts/train_torch.py");
  emit->add_option("recipe", t.emit.recipe, kRecipe)->required();
  add_recipe_options(emit, t.emit.changes);
  emit->add_option("--out", t.emit.out, "folder")->required();

  CLI::App* show =
      command(app, "show", "Show a workload: IR text, shapes, parameters, FLOPs and bytes of a step",
              "bakeoff show mnist_cnn");
  show->add_option("what", t.show.what, "shipped workload, .ir file, or recipe")->required();

  CLI::App* ops =
      command(app, "ops", "List the ops of the IR, or the shipped workloads", "bakeoff ops --workloads");
  ops->add_flag("--markdown", t.ops.markdown, "docs/ops.md");
  ops->add_flag("--workloads", t.ops.workloads, "list workloads instead");

  CLI::App* recipe =
      command(app, "recipe", "Check a recipe, or print the schema of recipes", "bakeoff recipe mnist_cnn");
  recipe->add_option("recipe", t.recipe.recipe, std::string(kRecipe) + ", to check");
  add_recipe_options(recipe, t.recipe.changes);
  recipe->add_flag("--schema", t.recipe.schema, "JSON Schema");
  recipe->add_flag("--markdown", t.recipe.markdown, "docs/recipe.md");
}

void add_first_commands(CLI::App& app, Targets& t) {
  command(app, "recipes", "List the recipes inside this program", "bakeoff recipes");
  CLI::App* init = command(app, "init", "Write a recipe into this folder, to edit", "bakeoff init mnist_cnn");
  init->add_option("name", t.init.name,
                   "one of `bakeoff recipes`; default: a first race with comments, race.toml");
  init->add_flag("--force", t.init.force, "replace what exists");
  CLI::App* exec = command(app, "exec", "Run a script with the Python of its framework's environment",
                           "bakeoff exec scripts/train_torch.py --steps 20");
  exec->add_option("script", t.exec.script, "Python script; what stands behind it are its arguments")
      ->required();
  exec->add_option("--framework", t.exec.framework,
                   "framework of the environment; default the one that it imports");
}

// What says which model, and how it is imported.
void add_model_options(CLI::App* sub, ImportOptions& options, const std::string& model) {
  sub->add_option("model", options.model, model)->required();
  sub->add_option("--input", options.inputs,
                  "type of an input, the batch first: 'f32[8,3,32,32]'; by the name of a parameter of the "
                  "forward function: 'ids=i32[16,128]'; once for each input. A Keras model may know its own")
      ->allow_extra_args(false);
  sub->add_option("--output", options.output,
                  "name or number of the output that the loss compares, where the model has several");
  sub->add_option("--framework", options.framework,
                  "framework that the model is of; where it is not named that which the file imports")
      ->check(one_of({"torch", "keras"}));
  sub->add_option(
      "--python", options.python,
      "interpreter that has the framework and what the model's file imports; default: that of the "
      "framework's environment");
  sub->add_option("--socket", options.socket)->group("");  // python/bakeoff
  sub->add_option("--seconds", options.seconds, "time limit of each step of the framework's process")
      ->check(number_from(1.0, 1e6))
      ->capture_default_str();
  sub->add_flag("--force", options.force, "replace what exists");
  sub->add_option(
      "--loss", options.loss,
      "loss of the training, an op of `bakeoff ops` with its attributes: mse, or "
      "softmax_cross_entropy,label_smoothing=0.1,ignore_index=-100; a Keras model may be compiled with its "
      "own");
}

constexpr const char* kModule =
    "FILE.py:NAME: a function without arguments that makes the model, its class, or the model";

void add_import_command(CLI::App& app, Targets& t) {
  CLI::App* sub = command(
      app, "import",
      "Import a model of your own: proven against its origin, written as IR, weights and a recipe",
      "bakeoff import model.py:make --input 'f32[8,3,32,32]' --loss softmax_cross_entropy --out my.ir");
  add_model_options(sub, t.import, std::string(kModule) + "; or an ONNX file");
  sub->add_option("--out", t.import.out, "IR file; weights and recipe are written next to it")->required();
}

void add_translate_command(CLI::App& app, Targets& t) {
  std::vector<std::string> names;
  for (const emit::Framework* framework : emit::frameworks()) names.push_back(framework->name);
  CLI::App* sub =
      command(app, "translate",
              "Write a model of your own in other frameworks, with its weights: proven equal, one "
              "folder for each, which runs alone",
              "bakeoff translate model.py:make --input 'f32[8,3,32,32]' --loss "
              "softmax_cross_entropy --to " +
                  names.back());
  add_model_options(
      sub, t.translate.model,
      std::string(kModule) + "; an ONNX file; a workload (.ir) with weights; or a recipe (.toml)");
  sub->add_option("--to", t.translate.to,
                  fmt::format("names, with commas between them: {}", join(names, ", ")))
      ->required();
  sub->add_option("--weights", t.translate.weights,
                  "weights of a workload; default: the .safetensors file of its name next to it");
  sub->add_option("--out", t.translate.out, "folder; default MODEL_translated");
  sub->add_option("--format", t.translate.format, "text or json")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
}

void add_setup_commands(CLI::App& app, Targets& t) {
  const std::vector<std::string> environments = environment_names();
  CLI::App* env = command(app, "env", "Create, list and check the Python environments",
                          "bakeoff env create " + environments.front());
  env->require_subcommand(1);
  CLI::App* create =
      command(*env, "create", "Create environments (all if none is named)", "bakeoff env create");
  create->add_option("names", t.env.names, join(environments, ", "));
  create->callback([&t] { t.env.action = EnvAction::kCreate; });
  CLI::App* list = command(*env, "list", "List environments and their packages", "bakeoff env list");
  list->callback([&t] { t.env.action = EnvAction::kList; });
  CLI::App* check =
      command(*env, "doctor", "Check machine and environments, with remedies", "bakeoff env doctor");
  check->callback([&t] { t.env.action = EnvAction::kDoctor; });
  command(app, "doctor", "The same as `bakeoff env doctor`", "bakeoff doctor");
  CLI::App* data = command(app, "data", "Download a data set and check it", "bakeoff data mnist");
  std::vector<std::string> names;
  for (const ImageSet* set : image_sets()) names.push_back(set->name);
  data->add_option("name", t.data.name, join(names, ", "))->required()->check(one_of(names));
}

void add_machine_command(CLI::App& app, Targets& t) {
  CLI::App* machine =
      command(app, "machine", "Measure this machine's limits (once, in under a minute) and show them",
              "bakeoff machine --json > before.json");
  machine->add_flag("--json", t.machine.json, "print the record as JSON");
  machine->add_flag("--again", t.machine.again, "measure even if there is a record of this machine");
  CLI::App* diff =
      command(*machine, "diff", "Compare two records: what changed, and which changes are known to matter",
              "bakeoff machine diff before.json after.json");
  diff->add_option("before", t.machine.before, "record, from `bakeoff machine --json`")->required();
  diff->add_option("after", t.machine.after, "the record to compare with")->required();
}

// Time that gives answers worth having. Tests, whose answers are obvious, take less.
double at_least(double time) { return std::getenv("BAKEOFF_BRIEF") != nullptr ? 0.1 : time; }

void add_explain_command(CLI::App& app, Targets& t) {
  CLI::App* explain = command(
      app, "explain", "Say why a training script is slower than another, or what would make it faster",
      "bakeoff explain slow.py fast.py -- --epochs 3");
  explain
      ->add_option("scripts", t.explain.scripts,
                   "one Python script, or the slow one and the fast one; their "
                   "arguments stand behind --, those of the second one behind another -- if they differ")
      ->expected(1, 2);
  explain->add_flag("-m,--module", t.explain.modules, "the names are modules, as of python -m");
  explain->add_option("--framework", t.explain.framework,
                      "framework whose environment runs them; default the one that they import");
  explain->add_option("--python", t.explain.python,
                      "interpreter that runs them, in place of an environment's");
  explain->add_option("--seconds", t.explain.seconds, "time of all runs together, about")
      ->check(number_from(at_least(30.0), 36000.0))
      ->capture_default_str();
  explain->add_option("--out", t.explain.out,
                      "folder for logs of the scripts, explain.json and explain.html");
  explain->add_option("--html", t.explain.html, "path of the HTML report");
  explain->add_flag("--all", t.explain.all, "show what was tried and not confirmed, too");
  explain->add_option("--rule", t.explain.rule, "print what a rule is about (R13), or all: their table");
  explain->add_option("--format", t.explain.format, "text or json")->check(one_of({"text", "json"}));
}

void add_tune_command(CLI::App& app, Targets& t) {
  CLI::App* tune =
      command(app, "tune", "Find the best setting of every framework of a recipe, or of a training script",
              "bakeoff tune mnist_cnn --minutes 30");
  tune->add_option("recipe", t.tune.recipe,
                   std::string(kRecipe) + ", or a training script (.py) whose arguments stand behind --")
      ->required();
  add_recipe_options(tune, t.tune.changes);
  tune->add_option("--minutes", t.tune.minutes, "time of all races together, about")
      ->check(number_from(at_least(1.0), 10000.0))
      ->capture_default_str();
  tune->add_flag(
      "--half-precision", t.tune.half_precision,
      "of a recipe: tune and race bfloat16 as well, as a group of its own, since it changes numbers");
  tune->add_option("--out", t.tune.out,
                   "folder of its races; default runs/tune-<recipe>-<date>. Races that it has are continued");
  tune->add_option("--format", t.tune.format, "text or json")->check(one_of({"text", "json"}));
  tune->add_option("--framework", t.tune.framework,
                   "of a script: framework whose environment runs it; default the one that it imports");
  tune->add_option("--python", t.tune.python,
                   "of a script: interpreter that runs it, in place of an environment's");
  tune->add_option(
      "--profile", t.tune.profile,
      "machine profile of `bakeoff calibrate`, or none; default profile.json in the bakeoff home");
}

void add_store_command(CLI::App& app, Targets& t) {
  CLI::App* store =
      command(app, "store", "Keep an index of all runs: import, list, rebuild", "bakeoff store import runs");
  store->require_subcommand(1);
  CLI::App* import = command(
      *store, "import", "Add the runs in and below folders; what is known and unchanged is not read again",
      "bakeoff store import runs /srv/ci/bakeoff");
  import->add_option("folders", t.store.folders, "run directories, or folders that hold some")->required();
  import->add_flag("--again", t.store.again, "read runs whose files have not changed, too");
  import->callback([&t] { t.store.action = StoreAction::kImport;
});
CLI::App* list = command(*store, "list", "List the latest runs", "bakeoff store list --last 50");
list->add_option("--last", t.store.most, "number of runs")->check(number_from(1, 1e9))->capture_default_str();
list->add_flag("--skipped", t.store.skipped, "list folders that could not be read instead, with the reason");
list->add_option("--format", t.store.format, "text or json")
    ->check(one_of({"text", "json"}))
    ->capture_default_str();
list->callback([&t] { t.store.action = StoreAction::kList; });
CLI::App* rebuild =
    command(*store, "rebuild", "Make the index again from the run directories; a damaged file is moved aside",
            "bakeoff store rebuild");
rebuild->add_option("folders", t.store.folders,
                    "further folders that hold runs; those imported before are known");
rebuild->add_flag("--forget", t.store.forget, "drop runs whose directories are gone");
rebuild->callback([&t] { t.store.action = StoreAction::kRebuild; });
CLI::App* path = command(*store, "path", "Print where the index is, for SQL of your own",
                         "sqlite3 \"$(bakeoff store path)\" 'SELECT COUNT(*) FROM runs'");
path->callback([&t] { t.store.action = StoreAction::kPath; });
}  // namespace

void add_history_command(CLI::App& app, Targets& t) {
  CLI::App* history =
      command(app, "history", "Show how step times developed over all runs, and where their level shifted",
              "bakeoff history \"mnist_cnn torch\"");
  history->add_option("series", t.history.series, "id, name or part of a name; default: a list of all");
  history
      ->add_option("--last", t.history.last,
                   "number of runs of each series; default 1000, of a page as many as it has room for")
      ->check(number_from(1, 1e9));
  history->add_flag_function(
      "--json", [&t](int64_t) { t.history.format = "json"; }, "print JSON");
  history->add_flag_function(
      "--csv", [&t](int64_t) { t.history.format = "csv"; }, "print CSV, a line for each run");
  history->add_option("--html", t.history.html, "write a page with all of it into this file");
  history
      ->add_option("--read", t.history.read,
                   "take the series from this CSV file instead of the index: times that another program "
                   "measured, with a header ('time,commit,seconds')")
      ->check(CLI::ExistingFile);
  history->add_option("--unit", t.history.unit, "unit of the times in the file of --read; default: s")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, double>{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}));
  history->add_option(
      "--time", t.history.time,
      "column of that file that holds the times, or a rate; default: by its name and its cells");
  history
      ->add_option(
          "--by", t.history.by,
          "columns of that file whose texts tell series apart (benchmark,host); default: those whose texts "
          "come again and again")
      ->delimiter(',');
  CLI::App* accept =
      command(*history, "accept",
              "Mark a step in a history as accepted: no alert, and later runs are judged from there",
              "bakeoff history accept 3f2a91bc --note \"float64 is meant\"");
  accept->add_option("series", t.history.series, "id, or name, of the series")->required();
  accept->add_option("--run", t.history.run,
                     "id of the run that the step begins with; default: the latest nominated shift");
  accept->add_option("--note", t.history.note, "why, for those who look at it later");
  accept->add_flag("--withdraw", t.history.withdraw, "take the mark of --run back");
  accept->callback([&t] { t.history.accept = true; });
}

// The first word of the command line, where it is neither an option nor a command.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--config") ++i;  // and its value
    if (word.starts_with("-")) continue;
    const auto commands = app.get_subcommands([&](const CLI::App* sub) { return sub->check_name(word); });
    return commands.empty() ? word : "";
  }
  return "";
}

Command chosen(const CLI::App& app, const Targets& t) {
  const std::string name = app.get_subcommands().at(0)->get_name();
  if (name == "run") return t.run;
  if (name == "suite") return t.suite;
  if (name == "tune") return t.tune;
  if (name == "selftest") return t.selftest;
  if (name == "calibrate") return t.calibrate;
  if (name == "parity") return t.parity;
  if (name == "check") return t.check;
  if (name == "explain") return t.explain;
  if (name == "gate") return t.gate;
  if (name == "bisect") return t.bisect;
  if (name == "compare") return t.compare;
  if (name == "emit") return t.emit;
  if (name == "exec") return t.exec;
  if (name == "init") return t.init;
  if (name == "recipes") return RecipesOptions{};
  if (name == "show") return t.show;
  if (name == "ops") return t.ops;
  if (name == "recipe") return t.recipe;
  if (name == "env") return t.env;
  if (name == "data") return t.data;
  if (name == "import") return t.import;
  if (name == "translate") return t.translate;
  if (name == "machine") return t.machine;
  if (name == "report") return t.report;
  if (name == "export") return t.exported;
  if (name == "store") return t.store;
  if (name == "history") return t.history;
  return EnvOptions{.action = EnvAction::kDoctor};
}

// What no option alone shows, with the remedy; empty: nothing.
std::string misuse(const SuiteOptions& suite) {
  if (suite.what.empty() && suite.resume.empty() && suite.report.empty())
    return "bakeoff: suite: name recipes, or a suite\n  for example `bakeoff suite quick`; or --resume DIR, or --report DIR\n";
  return "";
}
std::string misuse(const RunOptions& run) {
  if (run.recipe.empty() && run.resume.empty())
    return "bakeoff: run: name a recipe\n  for example `bakeoff run mnist_cnn` (`bakeoff recipes` lists those inside this "
           "program), or --resume DIR\n";
  if (!run.changes.empty() && !run.resume.empty())
    return fmt::format(
        "bakeoff: run: {} changes a recipe, and --resume goes on with the run's own\n  leave out one of the two\n",
        run.changes[0].option);
  if (run.budget.until_decided && (run.budget.minutes > 0 || run.budget.pairs > 0))
    return "bakeoff: run: --until decided races without a limit, and --budget states one\n  leave out one of the two\n";
  return "";
}

// What stands behind the script's name belongs to it.
int take_exec_arguments(int argc, char** argv, Targets& targets) {
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--framework") ++i;
    if (word.starts_with("-")) continue;
    targets.exec.arguments.assign(argv + i + 1, argv + argc);
    return i + 1;
  }
  return argc;
}

// What stands behind "--" belongs to the scripts. Returns the number of arguments before it.
int take_script_arguments(int argc, char** argv, Targets& targets) {
  const auto tail = std::find(argv, argv + argc, std::string_view("--"));
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "exec") return take_exec_arguments(argc, argv, targets);
  if (tail == argv + argc) return argc;
  if (first == "gate" || first == "bisect") {
    (first == "gate" ? targets.gate.arguments : targets.bisect.arguments).assign(tail + 1, argv + argc);
    return static_cast<int>(tail - argv);
  }
  if (first != "explain" && first != "tune") return argc;
  // Behind a second "--" are those of the second script.
  const auto second = std::find(tail + 1, argv + argc, std::string_view("--"));
  (first == "tune" ? targets.tune.arguments : targets.explain.arguments).assign(tail + 1, second);
  if (second != argv + argc) targets.explain.second_arguments.emplace(second + 1, argv + argc);
  return static_cast<int>(tail - argv);
}

// What a value is, as --help shows it; a command's own comes first.
struct ValueName {
  const char* command;  // empty: of every command
  const char* option;
  const char* name;
};
constexpr ValueName kValueNames[] = {
    {"import", "--out", "FILE"},
    {"export", "--out", "PATH"},
    {"check", "--recipe", "RECIPE"},
    {"report", "run", "DIR"},
    {"export", "run", "DIR"},
    {"export", "--to", "TOOL"},
    {"gate", "--base", "VERSION"},
    {"gate", "--head", "VERSION"},
    {"bisect", "--good", "COMMIT"},
    {"bisect", "--bad", "COMMIT"},
    {"bisect", "--package", "SPEC"},
    {"gate", "--json", "FILE"},
    {"bisect", "--json", "FILE"},
    {"gate", "--init", "SERVICE"},
    {"compare", "first", "DIR"},
    {"compare", "second", "DIR"},
    {"", "--out", "DIR"},
    {"", "--resume", "DIR"},
    {"", "--html", "FILE"},
    {"", "--profile", "FILE"},
    {"", "--config", "FILE"},
    {"", "--python", "FILE"},
    {"", "--output", "FILE"},
    {"", "--record", "FILE"},
    {"", "--weights", "FILE"},
    {"", "--framework", "NAME"},
    {"", "--minutes", "NUMBER"},
    {"", "--seconds", "NUMBER"},
    {"", "--format", "FORMAT"},
    {"", "recipe", "RECIPE"},
    {"", "script", "SCRIPT"},
    {"", "scripts", "SCRIPT"},
    {"", "before", "FILE"},
    {"", "after", "FILE"},
    {"", "--until", "WHEN"},
    {"", "--budget", "TIME|PAIRS"},
    {"", "folders", "DIR"},
    {"", "series", "SERIES"},
    {"", "--last", "NUMBER"},
    {"", "--run", "RUN"},
    {"", "--note", "TEXT"},
    {"", "--repo", "DIR"},
    {"", "--junit", "FILE"},
    {"", "--gitlab", "FILE"},
    {"", "--build", "COMMAND"},
    {"", "--contender", "ID"},
    {"", "target", "RECIPE|SCRIPT"},
};

void name_values(CLI::App& app) {
  std::set<const CLI::Option*> named;
  for (const ValueName& value : kValueNames) {
    CLI::Option* option = app.get_option_no_throw(value.option);
    if (option != nullptr && (*value.command == 0 || app.get_name() == value.command) &&
        option->get_type_size() > 0 && named.insert(option).second)
      option->type_name(value.name);
  }
  for (CLI::App* sub : app.get_subcommands({})) name_values(*sub);
}

// What is said about the program, without doing anything.
struct Pages {
  std::string shell = {};
  std::vector<std::string> words = {};
};

void add_pages(CLI::App& app, Pages& pages) {
  command(app, "completion", "Print a shell's completion of these commands",
          "bakeoff completion bash > /etc/bash_completion.d/bakeoff")
      ->add_option("shell", pages.shell, "bash, zsh or fish")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}));
  command(app, "man", "Print the manual page", "bakeoff man | man -l -");
  command(app, "help", "Explain a command, or a word of tables and reports", "bakeoff help heat")
      ->add_option("words", pages.words, "a command, a word, or terms: all words");
  command(app, "explain-terms", "Explain all words of tables and reports", "bakeoff explain-terms");
}

// The exit code, if the command is one of them.
std::optional<int> show_page(const CLI::App& app, const std::string& name, const Pages& pages) {
  if (name == "man") print(man_page(app));
  if (name == "completion") print(*completion(app, pages.shell));
  if (name == "help") return finish(help(app, pages.words));
  if (name == "explain-terms") return finish(help(app, {"terms"}));
  return name == "man" || name == "completion" ? std::optional(finish(0)) : std::nullopt;
}

void add_commands(CLI::App& app, Targets& targets) {
  add_run_commands(app, targets);
  add_report_command(app, targets);
  add_export_command(app, targets);
  add_suite_command(app, targets);
  add_history_command(app, targets);
  add_store_command(app, targets);
  add_tune_command(app, targets);
  add_selftest(app, targets);
  add_calibrate(app, targets);
  add_source_commands(app, targets);
  add_first_commands(app, targets);
  add_explain_command(app, targets);
  add_gate_command(app, targets.gate);
  add_bisect_command(app, targets.bisect);
  add_compare_command(app, targets.compare);
  add_import_command(app, targets);
  add_translate_command(app, targets);
  add_setup_commands(app, targets);
  add_machine_command(app, targets);
}

}  // namespace bakeoff::cli

std::variant<CommandLine, int> parse_command_line(int argc, char** argv) {
  CLI::App app{"Same recipe, every framework, one honest verdict.", "bakeoff"};
  app.set_version_flag("--version", std::string("bakeoff ") + kVersion);
  app.footer(
      "Start with:\n  bakeoff env create\n  bakeoff run mnist_cnn\n\n"
      "Exit codes: 0 done, 1 the answer is no (nothing ranked, a bar missed), 2 bad input, "
      "3 no verdict because the host was busy or its state is unknown, 130 Ctrl-C, "
      "143 SIGTERM.");
  app.require_subcommand(1);
  Targets targets;
  app.add_option("--config", targets.config,
                 "configuration file; default $BAKEOFF_CONFIG or $BAKEOFF_HOME/config.toml");
  add_commands(app, targets);
  Pages pages;
  add_pages(app, pages);
  name_values(app);
  argc = take_script_arguments(argc, argv, targets);
  if (argc < 2) {
    print(kStart);
    return 2;
  }
  if (const std::string word = unknown_command(app, argc, argv); !word.empty()) {
    std::vector<std::string> known;
    for (const CLI::App* sub : app.get_subcommands({})) known.push_back(sub->get_name());
    note(fmt::format("bakeoff: unknown command '{}'\n  {}", word, suggest(word, known)));
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const CLI::App* asked = &app;
    while (!asked->get_subcommands().empty()) asked = asked->get_subcommands().back();
    print(help_text(*asked, output_width()));
    return finish(0);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    note(trimmed(usage_error(app, argc, argv, e)));
    return 2;
  }
  const std::string chosen_one = app.get_subcommands().at(0)->get_name();
  if (const auto code = show_page(app, chosen_one, pages)) return *code;
  if (const std::string wrong = chosen_one == "run"      ? misuse(targets.run)
                                : chosen_one == "suite"  ? misuse(targets.suite)
                                : chosen_one == "gate"   ? misuse(targets.gate)
                                : chosen_one == "bisect" ? misuse(targets.bisect)
                                                         : "";
      !wrong.empty()) {
    note(trimmed(wrong));
    return 2;
  }
  return CommandLine{chosen(app, targets), targets.config};
}

}  // namespace bakeoff::cli
