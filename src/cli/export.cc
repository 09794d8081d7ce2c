#include <fmt/format.h>

#include "base/files.h"
#include "base/texts.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/usage.h"
#include "exports/event_file.h"
#include "exports/json_lines.h"
#include "exports/recorded.h"
#include "exports/run_junit.h"
#include "exports/series.h"
#include "exports/trackers.h"
#include "report/csv.h"

namespace bakeoff::cli {
namespace {

struct ExportOptions {
  fs::path run = {};
  std::string to = {};   // "tensorboard", "jsonl", ...
  fs::path out = {};     // empty: standard output, or a place in the run directory
  fs::path python = {};  // that has the client of W&B or MLflow; empty: the one beside the program
};

// To standard output, or into a file.
int text_out(const std::string& text, const fs::path& out) {
  if (out.empty()) {
    print(text);
    return 0;
  }
  if (const auto written = write_file(out, text); !written) return fail(written.error());
  print(out.string() + "\n");
  return 0;
}

int tensorboard_out(const exports::Experiment& experiment, const fs::path& out) {
  for (const exports::EventFile& file : exports::event_files(experiment)) {
    if (const auto written = write_file(out / file.folder / file.name, file.bytes); !written)
      return fail(written.error());
  }
  print(fmt::format("{}\n", out.string()));
  note("bakeoff: look at it with: tensorboard --logdir " + out.string());
  return 0;
}

int tracker_out(const exports::Experiment& experiment, const ExportOptions& options,
                exports::Tracker tracker) {
  const fs::path usual = tracker == exports::Tracker::kWandb ? options.run : options.run / "mlflow.db";
  const auto made = exports::export_to_tracker(
      experiment, {tracker, options.python, options.out.empty() ? usual : options.out});
  if (!made) return fail(made.error());
  for (const std::string& line : *made) print(line + "\n");
  return 0;
}

int export_run(const ExportOptions& options) {
  const auto directory = RunDirectory::open(options.run);
  if (!directory) return fail(directory.error());
  const auto run = exports::read_recorded(*directory);
  if (!run) return fail(run.error());
  for (const std::string& lack : exports::unfinished(*run))
    note("bakeoff: the run is not complete: " + lack + "; what is there is exported");
  if (options.to == "csv") return text_out(report::render_csv(run->summary), options.out);
  if (options.to == "jsonl") return text_out(exports::json_lines(*run), options.out);
  if (options.to == "junit") return text_out(table::render_junit(exports::junit_suite(*run)), options.out);
  const exports::Experiment experiment = exports::experiment_of(*run);
  if (options.to == "tensorboard")
    return tensorboard_out(experiment, options.out.empty() ? options.run / "tensorboard" : options.out);
  return tracker_out(experiment, options,
                     options.to == "wandb" ? exports::Tracker::kWandb : exports::Tracker::kMlflow);
}

Action add_export(CLI::App& sub) {
  const auto options = std::make_shared<ExportOptions>();
  const std::vector<std::string> tools = {"tensorboard", "wandb", "mlflow", "junit", "csv", "jsonl"};
  sub.add_option("run", options->run, "run directory")->required()->type_name("DIR");
  sub.add_option("--to", options->to, join(tools, ", "))->required()->check(one_of(tools))->type_name("TOOL");
  sub.add_option("--out", options->out,
                 "file of junit, csv and jsonl, default standard output; folder of tensorboard, default "
                 "RUN/tensorboard, and of wandb, default RUN; SQLite file of mlflow, default RUN/mlflow.db")
      ->type_name("PATH");
  sub.add_option(
      "--python", options->python,
      "interpreter that has the package wandb or mlflow; default: the one beside this program, else "
      "python3 in PATH");
  return [options](const Invocation&) { return export_run(*options); };
}

}  // namespace

const Command kExport = {"export", "Write a run for another tool: TensorBoard, W&B, MLflow, JUnit, tables",
                         "bakeoff export runs/mnist_cnn-20261121-080000 --to tensorboard --out logs",
                         add_export, Home::kUnused};

}  // namespace bakeoff::cli
