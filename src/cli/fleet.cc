#include "fleet/fleet.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/texts.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/index_run.h"
#include "cli/output.h"
#include "cli/recipe_options.h"
#include "cli/shared_options.h"
#include "cli/surroundings.h"
#include "cli/usage.h"
#include "fleet/block.h"
#include "fleet/shared_folder.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "summary/summarise.h"

namespace bakeoff::cli {

struct FleetOptions {
  fs::path recipe = {}, run = {}, shared = {};
  RecipeChanges changes = {};
  fleet::Settings settings = {};
  std::string hosts = {}, ssh = {}, sbatch = {};
  std::string format = "text";
  bool wait = false;
  int job = 0, task = -1, block = 0;  // of the hidden commands
};

namespace {

constexpr double kPollSeconds = 10;

fs::path this_program() {
  std::error_code code;
  return fs::read_symlink("/proc/self/exe", code);
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> all = split_trimmed(text, " ");
  std::erase(all, "");
  return all;
}

// The line that goes on with a run.
std::string next_line(const char* verb, const fleet::Board& board) {
  return fmt::format("`bakeoff fleet {} {}`", verb, board.run().string());
}

Status check_engine(const FleetOptions& options) {
  const std::string& engine = options.settings.engine;
  if (engine == "ssh" && options.settings.hosts.empty())
    return Error{.message = "engine ssh needs hosts", .where = "--hosts", .remedy = "--hosts node1,node2"};
  if (engine != "ssh" && !options.hosts.empty())
    return Error{.message = fmt::format("engine {} takes no hosts", engine),
                 .where = "--hosts",
                 .remedy = "leave it out, or choose --engine ssh"};
  if (engine != "local" && options.shared.empty())
    return Error{
        .message = "it is not known which folder all nodes see",
        .where = "--shared",
        .remedy = "name it: --shared /home; the program, $BAKEOFF_HOME and the run have to lie in it"};
  return Done{};
}

Result<fleet::Board> plan_fleet(FleetOptions& options, const fs::path& config) {
  fleet::Settings& settings = options.settings;
  settings.hosts = split_trimmed(options.hosts, ",");
  std::erase(settings.hosts, "");
  if (!options.ssh.empty()) settings.ssh = words(options.ssh);
  settings.sbatch = words(options.sbatch);
  settings.program = this_program().string();
  settings.home = fs::absolute(bakeoff_home()).string();
  settings.config = config.empty() ? "" : fs::absolute(config).string();
  CHECK_OK(check_engine(options));
  TRY(const recipe::Recipe recipe, chosen_recipe(options.recipe, options.changes));
  ConsoleProgress progress;
  TRY(run::Surroundings with, surroundings(config, progress));
  if (const std::string how = environments_to_make(recipe, with.interpreters); !how.empty())
    with.tell.line(how);
  const fs::path folder = fs::absolute(options.run.empty() ? dated_folder(recipe.name) : options.run);
  TRY(run::Session session, run::Session::make(recipe, folder, with));
  const auto planned = [&]() -> Result<fleet::Board> {
    if (!options.shared.empty()) CHECK_OK(fleet::check_shared(options.shared, settings, session.plan()));
    TRY(fleet::Board board, fleet::Board::create(folder, settings));
    CHECK_OK(board.note_ours());
    CHECK_OK(fleet::make_engine(board)->check());
    session.limit({.minutes = recipe::Budget::kNoLimit});
    CHECK_OK(session.prove());
    return board;
  }();
  if (!planned || proc::interrupted()) {  // half a proof would leave contenders out without a word
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  return planned;
}

// Who takes part: a contender that is not proven never runs on a node.
std::string proven_text(const fleet::Board& board) {
  const auto directory = RunDirectory::open(board.run());
  if (!directory) return "";
  const auto parities = directory->read<Parity>();
  const auto manifest = directory->manifest();
  if (!parities || !manifest) return "";
  const auto passed = std::ranges::count_if(*parities, [](const Parity& one) { return one.passed(); });
  return fmt::format("{} of {} contenders are proven\n", passed, manifest->contenders.size());
}

int plan(FleetOptions& options, const fs::path& config) {
  const auto board = plan_fleet(options, config);
  if (!board) return fail(board.error());
  if (proc::interrupted()) return kInterrupted;
  print(fmt::format("run directory: {}\n{}planned for engine {}; next: {}\n", board->run().string(),
                    proven_text(*board), board->settings().engine, next_line("submit", *board)));
  return 0;
}

// What a submission did, in a line each.
std::string text_of(const fleet::Submitted& done, const fleet::Board& board) {
  std::string text;
  for (const std::string& block : done.given_up) text += "given up: " + block + "\n";
  if (done.again > 0) text += fmt::format("submitted again: {} blocks\n", done.again);
  if (done.fresh > 0) text += fmt::format("submitted: {} new blocks\n", done.fresh);
  if (!done.jobs.empty())
    text +=
        fmt::format("jobs: {}; {} shows where they are", join(done.jobs, ", "), next_line("status", board));
  else if (done.finished)
    text += fmt::format("nothing is left to submit; {} shows the verdict", next_line("collect", board));
  else
    text += fmt::format("blocks are under way; {} shows where they are", next_line("status", board));
  return text;
}

int do_submit(const fleet::Board& board, const fleet::Engine& engine, const Interpreters& interpreters) {
  const auto done = fleet::submit(board, engine, interpreters);
  if (!done) return fail(done.error());
  print(text_of(*done, board) + "\n");
  return 0;
}

std::string nodes_text(const std::map<std::string, fleet::NodeState>& nodes) {
  std::string text;
  for (const auto& [name, node] : nodes) {
    text += fmt::format("  {}: {} block{}, {} with {} CPUs, {:.2f} GHz, equal work differs by {:.1f}%{}{}\n",
                        name, node.blocks, node.blocks == 1 ? "" : "s", node.cpu, node.cpus, node.clock_ghz,
                        100 * node.noise, node.shared ? ", perhaps shared with other jobs" : "",
                        node.apart.empty() ? "" : "; KEPT APART: " + node.apart);
  }
  return text;
}

int do_status(const fleet::Board& board, const fleet::Engine& engine, const Interpreters& interpreters) {
  const auto seen = fleet::overview(board, engine);
  if (!seen) return fail(seen.error());
  const auto merged = fleet::collect(board, interpreters);
  if (!merged) return fail(merged.error());
  std::string text =
      fmt::format("{} blocks: {} settled, {} running, {} waiting, {} lost, {} given up\n", seen->blocks,
                  seen->settled, seen->running, seen->waiting, seen->lost, seen->given_up);
  for (const std::string& note : seen->notes) text += "  " + note + "\n";
  for (const std::string& damaged : merged->damaged) text += "  damaged, to run again: " + damaged + "\n";
  if (!merged->nodes.empty()) text += "nodes:\n" + nodes_text(merged->nodes);
  if (seen->lost > 0 || (seen->over() && seen->blocks > 0))
    text += "next: " + next_line("submit", board) + ", which goes on, or collect for the verdict so far";
  else if (seen->blocks == 0)
    text += "next: " + next_line("submit", board);
  print(std::string(trimmed(text)) + "\n");
  return 0;
}

// Submits and waits, until nothing is left to submit or Ctrl-C comes: the blocks go on without us.
Status wait_for_all(const fleet::Board& board, const fleet::Engine& engine,
                    const Interpreters& interpreters) {
  ConsoleProgress progress;
  const Progress say = progress.lines();
  std::string last;
  while (!proc::interrupted()) {
    TRY(const fleet::Submitted done, fleet::submit(board, engine, interpreters));
    if (done.finished) break;
    if (!done.jobs.empty() || !done.given_up.empty()) say(text_of(done, board));
    for (;;) {
      TRY(const fleet::Overview seen, fleet::overview(board, engine));
      const std::string now = fmt::format("{} of {} blocks settled, {} running, {} waiting", seen.settled,
                                          seen.blocks, seen.running, seen.waiting);
      if (now != last) say(last = now);
      if (seen.over() || proc::interrupted()) break;
      pollfd interrupt = {.fd = proc::interrupt_fd(), .events = POLLIN, .revents = 0};
      ::poll(&interrupt, 1, static_cast<int>(1e3 * std::max(0.5, at_least(kPollSeconds))));
    }
  }
  return Done{};
}

int do_collect(const FleetOptions& options, const fleet::Board& board, const fleet::Engine& engine,
               const Interpreters& interpreters) {
  if (options.wait) {
    if (const Status done = wait_for_all(board, engine, interpreters); !done && !proc::interrupted())
      return fail(done.error());
    if (proc::interrupted())
      note("bakeoff: the blocks go on without us; " + next_line("collect", board) + " --wait waits again, " +
           next_line("cancel", board) + " ends them");
  }
  const auto merged = fleet::collect(board, interpreters);
  if (!merged) return fail(merged.error());
  for (const std::string& damaged : merged->damaged) note("bakeoff: damaged, to run again: " + damaged);
  for (const std::string& block : merged->given_up) note("bakeoff: given up: " + block);
  for (const auto& [name, node] : merged->nodes)
    if (!node.apart.empty())
      note(fmt::format("bakeoff: node {} is kept apart, its {} blocks do not count: {}", name, node.blocks,
                       node.apart));
  const auto directory = RunDirectory::open(board.run());
  if (!directory) return fail(directory.error());
  auto summary = summarise(*directory);
  if (!summary) return fail(summary.error());
  summary->interrupted = proc::interrupted();
  index_run(board.run());
  return present(*summary, options.format, board.run() / "report.html");
}

int do_cancel(const fleet::Board& board, const fleet::Engine& engine) {
  if (const Status done = fleet::cancel(board, engine); !done) return fail(done.error());
  print("nothing of this run waits or runs any more; " + next_line("submit", board) + " goes on\n");
  return 0;
}

// What runs on a node.
int on_node(const FleetOptions& options, const fleet::Board& board, const run::Surroundings& with,
            const fs::path& config) {
  if (options.block == 0 && options.task < 0) {
    std::vector<std::string> command = {this_program().string()};
    if (!config.empty()) command.insert(command.end(), {"--config", config.string()});
    command.insert(command.end(),
                   {"fleet", "block", board.run().string(), "--job", std::to_string(options.job)});
    const Status done = fleet::work_on(board, options.job, command);
    return done ? finish(proc::interrupted() ? kInterrupted : 0) : fail(done.error());
  }
  int block = options.block;
  if (options.task >= 0) {
    const auto jobs = board.jobs();
    if (!jobs) return fail(jobs.error());
    const auto job = std::ranges::find(*jobs, options.job, &fleet::Job::number);
    if (job == jobs->end() || static_cast<size_t>(options.task) >= job->blocks.size())
      return fail({.message = fmt::format("the run has no task {} of job {}", options.task, options.job),
                   .where = board.run().string()});
    block = job->blocks[static_cast<size_t>(options.task)];
  }
  const Status done = fleet::run_block(board, options.job, block, with.interpreters, with.sensed);
  if (!done) return fail(done.error());
  return proc::interrupted() ? kInterrupted : 0;
}

using Verb = int (*)(FleetOptions&, const fs::path& config);

// A verb that goes on with a run; one that asks the engine runs commands.
enum class Asks { kNobody, kEngine };
template <typename Act>
int with_run(const FleetOptions& options, const fs::path& config, Asks whom, const Act& act) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  const auto board = fleet::Board::open(options.run);
  if (!board) return fail(board.error());
  if (whom == Asks::kEngine)
    if (const Status ours = board->check_ours(); !ours) return fail(ours.error());
  const auto engine = fleet::make_engine(*board);
  ConsoleProgress progress;
  const auto with = surroundings(config, progress);
  if (!with) return fail(with.error());
  return act(*board, *engine, *with);
}

int plan_verb(FleetOptions& options, const fs::path& config) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  return plan(options, config);
}
int submit_verb(FleetOptions& options, const fs::path& config) {
  return with_run(options, config, Asks::kEngine,
                  [](const auto& board, const auto& engine, const auto& with) {
                    return do_submit(board, engine, with.interpreters);
                  });
}
int status_verb(FleetOptions& options, const fs::path& config) {
  return with_run(options, config, Asks::kEngine,
                  [](const auto& board, const auto& engine, const auto& with) {
                    return do_status(board, engine, with.interpreters);
                  });
}
int collect_verb(FleetOptions& options, const fs::path& config) {
  return with_run(options, config, options.wait ? Asks::kEngine : Asks::kNobody,
                  [&](const auto& board, const auto& engine, const auto& with) {
                    return do_collect(options, board, engine, with.interpreters);
                  });
}
int cancel_verb(FleetOptions& options, const fs::path& config) {
  return with_run(options, config, Asks::kEngine, [](const auto& board, const auto& engine, const auto&) {
    return do_cancel(board, engine);
  });
}
int node_verb(FleetOptions& options, const fs::path& config) {
  return with_run(options, config, Asks::kNobody, [&](const auto& board, const auto&, const auto& with) {
    return on_node(options, board, with, config);
  });
}

void add_plan_options(CLI::App& sub, const std::shared_ptr<FleetOptions>& options) {
  fleet::Settings& settings = options->settings;
  sub.add_option("recipe", options->recipe, kRecipeDoc)->required();
  add_recipe_options(sub, options->changes);
  sub.add_option("--engine", settings.engine, "what hands blocks to nodes: slurm, ssh or local")
      ->required()
      ->check(one_of({std::begin(fleet::kEngines), std::end(fleet::kEngines)}));
  sub.add_option("--out", options->run, "run directory, in the shared folder; default runs/<recipe>-<date>");
  sub.add_option("--shared", options->shared, "folder that all nodes see; engines slurm and ssh need it")
      ->type_name("DIR");
  sub.add_option("--hosts", options->hosts, "engine ssh: the hosts, with commas between them")
      ->type_name("HOSTS");
  sub.add_option("--ssh", options->ssh, "engine ssh: the command and its options; default ssh")
      ->type_name("COMMAND");
  sub.add_option("--partition", settings.partition, "engine slurm: the partition; default: the site's")
      ->type_name("NAME");
  sub.add_option("--account", settings.account, "engine slurm: the account; default: the site's")
      ->type_name("NAME");
  sub.add_option("--sbatch", options->sbatch, "engine slurm: further options of sbatch, such as --gres=gpu:1")
      ->type_name("OPTIONS");
  sub.add_flag("!--share-nodes", settings.exclusive, "engine slurm: let other jobs run beside a block");
  sub.add_option("--wave", settings.wave, "blocks that are planned at once; default: by contenders and alpha")
      ->check(CLI::Range(1, 100000));
  sub.add_option("--most", settings.most, "blocks in all; default 1000")->check(CLI::Range(1, 1000000));
  sub.add_option("--block-minutes", settings.block_minutes, "time limit of a block; default 30")
      ->check(CLI::Range(0.001, 10080.0));
  add_share(sub, "--out-of-line", settings.out_of_line, 1000,
            "a node that is slower or faster than the others by more is kept apart; default 15%");
  sub.add_option("--tries", settings.tries, "attempts at a block until it is given up; default 3")
      ->check(CLI::Range(1, 100));
}

Action add_fleet(CLI::App& sub) {
  const auto options = std::make_shared<FleetOptions>();
  const auto chosen = std::make_shared<Verb>(nullptr);
  sub.footer(
      "Example:\n  bakeoff fleet plan mnist_cnn --engine slurm --shared /home --out runs/mnist\n"
      "  bakeoff fleet submit runs/mnist\n  bakeoff fleet collect runs/mnist --wait");
  sub.require_subcommand(1);
  const auto add = [&](const char* name, const char* summary, const std::string& example, Verb verb) {
    CLI::App* made = add_subcommand(sub, name, summary, example);
    made->callback([chosen, verb] { *chosen = verb; });
    return made;
  };
  add_plan_options(
      *add("plan", "Make the run directory, prove the contenders, and note how blocks reach nodes",
           "bakeoff fleet plan mnist_cnn --engine slurm --shared /home --out runs/mnist", plan_verb),
      options);
  const auto of_run = [&](CLI::App* made) {
    made->add_option("run", options->run, "run directory of a fleet")->required()->type_name("DIR");
    return made;
  };
  of_run(add("submit", "Hand lost blocks, else the next wave of blocks, to the engine",
             "bakeoff fleet submit runs/mnist", submit_verb));
  of_run(add("status", "Where the blocks are, and which nodes count", "bakeoff fleet status runs/mnist",
             status_verb));
  CLI::App* collects = of_run(add("collect", "Merge what the blocks measured and report",
                                  "bakeoff fleet collect runs/mnist --wait", collect_verb));
  collects->add_flag("--wait", options->wait, "submit wave after wave until everything is decided");
  add_format(*collects, options->format);
  of_run(add("cancel", "End all blocks that wait or run", "bakeoff fleet cancel runs/mnist", cancel_verb));
  for (const char* hidden : {"block", "work"}) {
    CLI::App* made =
        of_run(add(hidden, "What an engine starts on a node", "bakeoff fleet block runs/mnist", node_verb));
    made->group("");
    made->add_option("--job", options->job)->required();
    made->add_option("--task", options->task);
    made->add_option("--block", options->block);
  }
  return [options, chosen](const Invocation& line) { return (*chosen)(*options, line.config); };
}

}  // namespace

const Command kFleet = {"fleet", "Race on many machines: by Slurm, over ssh, or in the background here",
                        nullptr, add_fleet};

}  // namespace bakeoff::cli
