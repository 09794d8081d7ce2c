#include "calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "base/files.h"
#include "base/texts.h"
#include "base/version.h"
#include "calibrate/calibrate_work.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/output.h"
#include "emit/all/frameworks.h"
#include "machine/host.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "records/controls.h"
#include "stats/planning.h"
#include "worker/grants.h"

namespace bakeoff::cli {
namespace {

struct CalibrateCommand {
  double minutes = 0;  // 0: 10, or 2 with `quick`
  bool quick = false;
  std::string framework = {};  // empty: the first whose environment is ready
  fs::path output = {};        // empty: profile.json in the bakeoff home
  bool serve_kernel = false;   // be the built-in worker
  std::string ring = {};       // every worker gets this option; the built-in worker ignores it
};

constexpr double kQuickMinutes = 2, kFullMinutes = 10;

std::string percent(double fraction) { return fmt::format("{:.2f}%", 100 * fraction); }

std::string row(const Measured& m) {
  const stats::Spread spread = m.spread();
  std::string text = fmt::format("{} {:<28}", m.kept ? '*' : ' ', m.name);
  if (spread.n == 0) return text + "  " + m.why + "\n";
  text += fmt::format("{:>7}  {:>6}-{:<7}{:>5} ", percent(spread.sd), percent(spread.interval.low),
                      percent(spread.interval.high), spread.n);
  for (const double margin : {0.01, 0.02, 0.03, 0.05})
    text += fmt::format("{:>6}", stats::pairs_needed(spread.sd, margin).value_or(0));
  return text + fmt::format("\n  {:<28}  {}\n", "", m.why);
}

std::string table(const Profile& p) {
  std::string text = fmt::format("{} on {}: difference between identical workers, sd(d) of a block\n\n",
                                 p.framework, p.host.cpu.empty() ? p.host.name : p.host.cpu);
  text += fmt::format("  {:<28}{:>7}  {:<14}{:>5} {:>6}{:>6}{:>6}{:>6}\n", "", "sd(d)", "95% interval", "n",
                      "1%", "2%", "3%", "5%");
  for (const Measured& m : p.entries) text += row(m);
  text += "\n  1% ... 5%: number of pairs that decide a gap of that size (alpha 1%, power 95%)\n";
  text += fmt::format("  * kept for equalised races: {}\n", describe(p.kept));
  if (p.processes_sd && p.bursts_sd) {
    text += fmt::format("  restarting a process changes a result by {}, repeating a burst by {}\n",
                        percent(*p.processes_sd), percent(*p.bursts_sd));
  }
  if (p.cheapest_bursts)
    text += fmt::format("  number of bursts per process that costs least: {}\n", *p.cheapest_bursts);
  if (!p.complete) text += "  interrupted: decided from the measurements made so far\n";
  return text;
}

Result<Profile> measure(const CalibrateCommand& options, const fs::path& config) {
  TRY(const auto interpreters, find_interpreters(config));
  ConsoleProgress progress;
  const fs::path home = bakeoff_home();
  TRY(auto work, CalibrationWork::create(options.framework, home, interpreters, progress.lines()));
  const Machine machine = this_machine();
  const double minutes = options.minutes > 0 ? options.minutes : options.quick ? kQuickMinutes : kFullMinutes;
  progress.lines()(fmt::format("calibrating with {} ({}), {:g} minutes; run nothing else during this time",
                               work.framework(), work.description(), minutes));
  const Watch watch = progress.race();
  const RunBlock run_block = [&](const Controls& controls, int block, const Happening& now) {
    return work.run(controls, block, machine, watch, now);
  };
  TRY(Profile profile,
      calibrate({.minutes = minutes, .quick = options.quick}, machine, run_block, monotonic_clock(), watch));
  profile.bakeoff_version = kVersion;
  profile.measured = utc_now();
  profile.host = read_host();
  profile.framework = work.framework();
  profile.work = work.description();
  return profile;
}

int calibrate(const CalibrateCommand& options, const fs::path& config) {
  if (options.serve_kernel) return serve_kernel();
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  const fs::path file = options.output.empty() ? profile_file(bakeoff_home()) : options.output;
  const auto profile = measure(options, config);
  if (!profile) return fail(profile.error());
  const bool nothing = std::all_of(profile->entries.begin(), profile->entries.end(),
                                   [](const Measured& m) { return m.d.empty(); });
  if (nothing) return fail({.message = "no block was measured", .remedy = "allow more --minutes"});
  if (const auto written = write_file(file, to_json(*profile)); !written) return fail(written.error());
  print(table(*profile) + "\n" + file.string() + "\n");
  return proc::interrupted() ? kInterrupted : 0;
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
  for (const emit::Framework* framework : emit::frameworks())
    if (emit::can(*framework, ir::Scenario::kTrain)) names.push_back(framework->name);
  return names;
}

Action add_calibrate(CLI::App& sub) {
  const auto options = std::make_shared<CalibrateCommand>();
  sub.add_option("--minutes", options->minutes, "duration in minutes; default 10, with --quick 2")
      ->check(above_zero());
  sub.add_flag("--quick", options->quick, "two minutes and fewer controls");
  sub.add_option("--framework", options->framework,
                 fmt::format("{}, or kernel for the built-in one; default: the first installed",
                             join(frameworks_that_train(), ", ")));
  sub.add_option("--output", options->output, "default: profile.json in the bakeoff home")->type_name("FILE");
  sub.add_flag("--serve-kernel", options->serve_kernel)->group("");
  sub.add_option("--ring", options->ring)->group("");
  return [options](const Invocation& line) { return calibrate(*options, line.config); };
}

}  // namespace

const Command kCalibrate = {
    "calibrate",
    "Measure how much identical workers differ on this machine, and which controls reduce the difference",
    "bakeoff calibrate --quick", add_calibrate};

}  // namespace bakeoff::cli
