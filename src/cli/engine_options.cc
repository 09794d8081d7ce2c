#include "cli/engine_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/texts.h"
#include "cli/shared_options.h"
#include "cli/usage.h"
#include "report/phrases.h"
#include "table/numbers.h"

namespace bakeoff::cli {
namespace {

std::vector<std::string> words(const std::string& text, const char* between) {
  std::vector<std::string> all = split_trimmed(text, between);
  std::erase(all, "");
  return all;
}

Status check_engine(const EngineOptions& options) {
  const std::string& engine = options.spread.settings.engine;
  if (engine == "ssh" && options.hosts.empty())
    return Error{.message = "engine ssh needs hosts", .where = "--hosts", .remedy = "--hosts node1,node2"};
  if (engine != "ssh" && !options.hosts.empty())
    return Error{.message = fmt::format("engine {} takes no hosts", engine),
                 .where = "--hosts",
                 .remedy = "leave it out, or choose --engine ssh"};
  if (engine != "local" && options.spread.shared.empty())
    return Error{
        .message = "it is not known which folder all nodes see",
        .where = "--shared",
        .remedy = "name it: --shared /home; the program, $BAKEOFF_HOME and the run have to lie in it"};
  return Done{};
}

}  // namespace

double poll_seconds() { return std::max(0.5, at_least(10)); }

fs::path this_program() {
  std::error_code code;
  return fs::read_symlink("/proc/self/exe", code);
}

CLI::Option* add_engine_options(CLI::App& sub, EngineOptions& options) {
  fleet::Settings& settings = options.spread.settings;
  CLI::Option* engine =
      sub.add_option("--engine", settings.engine,
                     "race on many machines: what hands blocks to nodes: slurm, ssh or local")
          ->check(one_of({std::begin(fleet::kEngines), std::end(fleet::kEngines)}));
  const auto goes_with = [&](CLI::Option* option) { return option->needs(engine); };
  goes_with(sub.add_option("--shared", options.spread.shared,
                           "folder that all nodes see; engines slurm and ssh need it"))
      ->type_name("DIR");
  goes_with(sub.add_option("--hosts", options.hosts, "engine ssh: the hosts, with commas between them"))
      ->type_name("HOSTS");
  goes_with(sub.add_option("--ssh", options.ssh, "engine ssh: the command and its options; default ssh"))
      ->type_name("COMMAND");
  goes_with(
      sub.add_option("--partition", settings.partition, "engine slurm: the partition; default: the site's"))
      ->type_name("NAME");
  goes_with(sub.add_option("--account", settings.account, "engine slurm: the account; default: the site's"))
      ->type_name("NAME");
  goes_with(sub.add_option("--sbatch", options.sbatch,
                           "engine slurm: further options of sbatch, such as --gres=gpu:1"))
      ->type_name("OPTIONS");
  goes_with(
      sub.add_flag("!--share-nodes", settings.exclusive, "engine slurm: let other jobs run beside a block"));
  goes_with(sub.add_option("--wave", settings.wave,
                           "blocks that are planned at once; default: by contenders and alpha"))
      ->check(CLI::Range(1, 100000));
  goes_with(sub.add_option("--most", settings.most, "blocks of a race; default 1000"))
      ->check(CLI::Range(1, 1000000));
  goes_with(sub.add_option("--block-minutes", settings.block_minutes, "time limit of a block; default 30"))
      ->check(CLI::Range(0.001, 10080.0));
  add_share(sub, "--out-of-line", settings.out_of_line, 1000,
            "a node that is slower or faster than the others by more is kept apart; default 15%");
  goes_with(sub.get_option("--out-of-line"));
  goes_with(sub.add_option("--tries", settings.tries, "attempts at a block until it is given up; default 3"))
      ->check(CLI::Range(1, 100));
  return engine;
}

Result<fleet::Spread> spread_of(const EngineOptions& options, const fs::path& config) {
  CHECK_OK(check_engine(options));
  fleet::Spread spread = options.spread;
  fleet::Settings& settings = spread.settings;
  settings.hosts = words(options.hosts, ",");
  if (!options.ssh.empty()) settings.ssh = words(options.ssh, " ");
  settings.sbatch = words(options.sbatch, " ");
  settings.program = this_program().string();
  settings.home = fs::absolute(bakeoff_home()).string();
  settings.config = config.empty() ? "" : fs::absolute(config).string();
  spread.poll_s = poll_seconds();
  return spread;
}

Result<std::unique_ptr<run::Races>> fleet_of(const EngineOptions& options, const fs::path& config,
                                             const fs::path& runs, const std::string& profile,
                                             const run::Surroundings& with) {
  if (!options.chosen()) return std::unique_ptr<run::Races>();
  if (!profile.empty() && profile != "none")
    return Error{.message = "a profile is of one machine, and a fleet races on others",
                 .where = "--profile",
                 .remedy = "leave it out: nodes are probed before each block"};
  TRY(fleet::Spread spread, spread_of(options, config));
  CHECK_OK(fleet::check_spread(spread, fs::absolute(runs)));
  return std::unique_ptr<run::Races>(std::make_unique<fleet::Races>(with, std::move(spread)));
}

std::string engine_words(const CLI::App& sub) {
  std::string all;
  const CLI::Option* engine = sub.get_option("--engine");
  for (const CLI::Option* option : sub.get_options()) {
    const auto& needs = option->get_needs();
    const bool goes_with = std::ranges::find(needs, engine) != needs.end();
    if (option->count() == 0 || (option != engine && !goes_with)) continue;
    all += " " + option->get_name();
    if (option->get_items_expected_max() > 0) all += " " + report::quoted(option->results().front());
  }
  return all;
}

std::string planned_for(double seconds) {
  return fmt::format("waves of blocks are planned for {}; the last one is waited for",
                     table::duration(1e3 * seconds));
}

}  // namespace bakeoff::cli
