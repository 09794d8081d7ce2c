#include <fmt/format.h>

#include "base/files.h"
#include "cli/console.h"
#include "cli/options.h"
#include "exports/event_file.h"
#include "exports/json_lines.h"
#include "exports/recorded.h"
#include "exports/run_junit.h"
#include "exports/series.h"
#include "exports/trackers.h"
#include "report/csv.h"

namespace bakeoff::cli {
namespace {

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

}  // namespace

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

}  // namespace bakeoff::cli
