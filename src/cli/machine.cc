#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>

#include "base/clock.h"
#include "base/files.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/console.h"
#include "environments/environments.h"
#include "evidence/host_rounds.h"
#include "machine/host.h"
#include "machine/machine_facts.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "records/machine_report.h"
#include "report/machine_page.h"
#include "sample/host_probe.h"
#include "sample/machine_limits.h"
#include "worker/grants.h"

namespace bakeoff::cli {
namespace {

struct MachineOptions {
  bool json = false;
  bool again = false;                // measure even if there is a record
  fs::path before = {}, after = {};  // two records to compare
};

// Processor seconds of this process and of the children that have ended.
double own_cpu_s() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used = {};
    ::getrusage(who, &used);
    for (const timeval& t : {used.ru_utime, used.ru_stime})
      sum += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  }
  return sum;
}

MachineReport measure(const EnvironmentStore& store, const Host& host, const Progress& line) {
  MachineReport report{.bakeoff_version = kVersion, .measured = utc_now(), .host = host};
  const sample::HostProbe probe = sample::host_probe(sample::allowed_cpus());
  const sample::HostSnapshot before = probe();
  const double own = own_cpu_s();
  report.limits = roofline::measure({.cpus = sample::allowed_cpus(),
                                     .gemms = find_gemms("/", store),
                                     .memory_bytes = sample::available_memory_bytes() / 4,
                                     .stop = [] { return proc::interrupted(); },
                                     .progress = line});
  if (proc::interrupted()) return report;
  report.disturbed = host_round(before, probe(), own_cpu_s() - own, recipe::HostRule{}).busy;
  report.facts = read_facts("/", [](const char* name) -> const char* { return std::getenv(name); });
  report.facts.merge(read_framework_facts(store, line));
  if (find_gemms("/", store).empty())
    report.limits.absent.push_back({"matrix product", "neither oneDNN, OpenBLAS nor MKL is installed"});
  return report;
}

// The record of this machine: the one that is kept, or a new one.
Result<MachineReport> this_machine(bool again, const EnvironmentStore& store) {
  const Host host = read_host();
  const fs::path file = machine_file(store.home, host);
  ConsoleProgress progress;
  const Progress line = progress.lines();
  if (!again && fs::exists(file)) {
    const auto kept = read_machine(file);
    const std::string why = kept ? stale(*kept, host) : kept.error().message;
    if (why.empty()) return kept;
    line(fmt::format("{}: {}; measuring again", file.string(), why));
  }
  CHECK_OK(make_folder(file.parent_path()));  // before a minute of measuring
  MachineReport report = measure(store, host, line);
  if (proc::interrupted()) return Error{"interrupted"};
  const auto kept = better_kept(file, report);
  if (!report.disturbed.empty()) {
    line(fmt::format("other work ran during the measurement, so the limits are too low: {}; {}",
                     report.disturbed,
                     kept ? fmt::format("{} of {} stays", file.string(), kept->measured)
                          : "`bakeoff machine --again` on a quiet machine measures again"));
  }
  if (kept) return report;
  CHECK_OK(write_file(file, to_json(report)));
  line(file.string());
  return report;
}

int compare(const MachineOptions& options) {
  const auto before = read_machine(options.before);
  if (!before) return fail(before.error());
  const auto after = read_machine(options.after);
  if (!after) return fail(after.error());
  const auto changes = diff(*before, *after);
  print(
      report::render_machine_diff(changes, options.before.string(), options.after.string(), output_width()));
  return changes.empty() ? 0 : 1;
}

int machine(const MachineOptions& options, const fs::path& config) {
  if (!options.before.empty()) return compare(options);
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  const fs::path home = bakeoff_home();
  const auto loaded = load_config(config, home, environment_names());
  if (!loaded) return fail(loaded.error());
  const auto report = this_machine(options.again, {.home = home, .config = *loaded});
  if (!report) return fail(report.error());
  print(options.json ? to_json(*report) : report::render_machine(*report, output_width()));
  return 0;
}

Action add_machine(CLI::App& sub) {
  const auto options = std::make_shared<MachineOptions>();
  sub.add_flag("--json", options->json, "print the record as JSON");
  sub.add_flag("--again", options->again, "measure even if there is a record of this machine");
  CLI::App* diff =
      add_subcommand(sub, "diff", "Compare two records: what changed, and which changes are known to matter",
                     "bakeoff machine diff before.json after.json");
  diff->add_option("before", options->before, "record, from `bakeoff machine --json`")
      ->required()
      ->type_name("FILE");
  diff->add_option("after", options->after, "the record to compare with")->required()->type_name("FILE");
  return [options](const Invocation& line) { return machine(*options, line.config); };
}

}  // namespace

const Command kMachine = {"machine", "Measure this machine's limits (once, in under a minute) and show them",
                          "bakeoff machine --json > before.json", add_machine};

}  // namespace bakeoff::cli
