#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>

#include "base/clock.h"
#include "base/files.h"
#include "base/version.h"
#include "cli/console.h"
#include "cli/options.h"
#include "lab/environments.h"
#include "lab/host.h"
#include "lab/host_watch.h"
#include "lab/machine_report.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "report/machine_page.h"

namespace bakeoff::cli {
namespace {

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

lab::MachineReport measure(const lab::Workshop& shop, const lab::Host& host, const lab::Progress& line) {
  lab::MachineReport report{.bakeoff_version = kVersion, .measured = utc_now(), .host = host};
  const lab::HostEye eye = lab::machine_eye(lab::allowed_cpus());
  const sample::HostSnapshot before = eye();
  const double own = own_cpu_s();
  report.limits = roofline::measure({.cpus = lab::allowed_cpus(),
                                     .gemms = lab::find_gemms("/", shop),
                                     .memory_bytes = lab::available_memory_bytes() / 4,
                                     .stop = [] { return proc::interrupted(); },
                                     .progress = line});
  if (proc::interrupted()) return report;
  report.disturbed = lab::host_round(before, eye(), own_cpu_s() - own, recipe::HostRule{}).busy;
  report.facts = lab::read_facts("/", [](const char* name) -> const char* { return std::getenv(name); });
  report.facts.merge(lab::read_framework_facts(shop, line));
  if (lab::find_gemms("/", shop).empty())
    report.limits.absent.push_back({"matrix product", "neither oneDNN, OpenBLAS nor MKL is installed"});
  return report;
}

// The record of this machine: the one that is kept, or a new one.
Result<lab::MachineReport> this_machine(bool again, const lab::Workshop& shop) {
  const lab::Host host = lab::read_host();
  const fs::path file = lab::machine_file(shop.home, host);
  Progress progress;
  const lab::Progress line = progress.lines();
  if (!again && fs::exists(file)) {
    const auto kept = lab::read_machine(file);
    const std::string why = kept ? lab::stale(*kept, host) : kept.error().message;
    if (why.empty()) return kept;
    line(fmt::format("{}: {}; measuring again", file.string(), why));
  }
  lab::MachineReport report = measure(shop, host, line);
  if (proc::interrupted()) return Error{"interrupted"};
  const auto kept = lab::better_kept(file, report);
  if (!report.disturbed.empty()) {
    line(fmt::format("measured beside other work, so that the limits are too low: {}; {}", report.disturbed,
                     kept ? fmt::format("{} of {} stays", file.string(), kept->measured)
                          : "`bakeoff machine --again` on a quiet machine measures anew"));
  }
  if (kept) return report;
  CHECK_OK(write_file(file, lab::to_json(report)));
  line(file.string());
  return report;
}

int compare(const MachineOptions& options) {
  const auto before = lab::read_machine(options.before);
  if (!before) return fail(before.error());
  const auto after = lab::read_machine(options.after);
  if (!after) return fail(after.error());
  const auto changes = lab::diff(*before, *after);
  print(
      report::render_machine_diff(changes, options.before.string(), options.after.string(), output_width()));
  return changes.empty() ? 0 : 1;
}

}  // namespace

int machine(const MachineOptions& options, const fs::path& config) {
  if (!options.before.empty()) return compare(options);
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  const fs::path home = bakeoff_home();
  const auto loaded = lab::load_config(config, home, lab::environment_names());
  if (!loaded) return fail(loaded.error());
  const auto report = this_machine(options.again, {.home = home, .config = *loaded});
  if (!report) return fail(report.error());
  print(options.json ? lab::to_json(*report) : report::render_machine(*report, output_width()));
  return 0;
}

}  // namespace bakeoff::cli
