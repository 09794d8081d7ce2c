// Each verb starts from the folder of the run and from nothing else, so that they can be called from other
// shells, days apart (fleet/fleet.h). What they share is with_run(): open the folder, check that its commands
// are ours if the engine will run any, and find the environments. The last matters because a run directory is
// data, and its settings name commands: a folder that somebody sent must not run them.
//
// `block` and `work` are what an engine starts on a node. They are commands of this program, hidden, so that
// a node needs nothing but the program and the folder.

#include "fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/texts.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/engine_options.h"
#include "cli/index_run.h"
#include "cli/output.h"
#include "cli/recipe_options.h"
#include "cli/shared_options.h"
#include "cli/surroundings.h"
#include "fleet/block.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "summary/summarise.h"
#include "table/numbers.h"

namespace bakeoff::cli {

struct FleetOptions {
  fs::path recipe = {}, run = {};
  RecipeChanges changes = {};
  EngineOptions engine = {};
  std::string format = "text";
  bool wait = false;
  int job = 0, task = -1, block = 0;  // of the hidden commands
};

namespace {

// The line that goes on with a run.
std::string next_line(const char* verb, const fleet::Board& board) {
  return fmt::format("`bakeoff fleet {} {}`", verb, board.run().string());
}

Result<fleet::Board> plan_fleet(const FleetOptions& options, const fs::path& config) {
  TRY(const fleet::Spread spread, spread_of(options.engine, config));
  TRY(const recipe::Recipe recipe, chosen_recipe(options.recipe, options.changes));
  const fs::path folder = fs::absolute(options.run.empty() ? dated_folder(recipe.name) : options.run);
  CHECK_OK(fleet::check_spread(spread, folder));
  ConsoleProgress progress;
  TRY(run::Surroundings with, surroundings(config, progress));
  if (const std::string how = environments_to_make(recipe, with.interpreters); !how.empty())
    with.tell.line(how);
  TRY(run::Session session, run::Session::make(recipe, folder, with));
  const Status planned = fleet::make_fleets(std::move(session), spread);
  if (!planned || proc::interrupted()) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  CHECK_OK(planned);
  if (proc::interrupted()) return Error{.message = "interrupted"};
  return fleet::Board::open(folder);
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
  if (proc::interrupted()) return kInterrupted;
  if (!board) return fail(board.error());
  print(fmt::format("run directory: {}\n{}planned for engine {}; next: {}\n", board->run().string(),
                    proven_text(*board), board->settings().engine, next_line("submit", *board)));
  return 0;
}

// What a submission did, one line for each fact, and the command that shows more.
std::string text_of(const fleet::Submitted& done, const fleet::Board& board) {
  const std::string text = join(fleet::told(done), "\n");
  if (!done.jobs.empty()) return text + fmt::format("; {} shows where they are", next_line("status", board));
  return text + (text.empty() ? "" : "\n") +
         (done.finished
              ? fmt::format("nothing is left to submit; {} shows the verdict", next_line("collect", board))
              : fmt::format("blocks are under way; {} shows where they are", next_line("status", board)));
}

int do_submit(const fleet::Board& board, const fleet::Engine& engine, const Interpreters& interpreters) {
  const auto lock = board.lock();
  if (!lock) return fail(lock.error());
  const auto done = fleet::submit(board, engine, interpreters, *lock);
  if (!done) return fail(done.error());
  print(text_of(*done, board) + "\n");
  return 0;
}

std::string nodes_text(const std::map<std::string, fleet::NodeState>& nodes) {
  std::string text;
  for (const auto& [name, node] : nodes) {
    text += fmt::format("  {}: {} block{}, ", name, node.blocks, node.blocks == 1 ? "" : "s");
    text += node.blocks == 0 ? "processor and clock unknown"
                             : fmt::format("{} with {} CPUs, {:.2f} GHz, equal work differs by {:.1f}%{}",
                                           node.cpu, node.cpus, node.clock_ghz, 100 * node.noise,
                                           node.shared ? ", perhaps shared with other jobs" : "");
    text += (node.apart.empty() ? "" : "; KEPT APART: " + node.apart) + "\n";
  }
  return text;
}

int do_status(const fleet::Board& board, const fleet::Engine& engine, const Interpreters& interpreters) {
  const auto merged = fleet::collect(board, interpreters);  // before overview(): damaged blocks are lost
  if (!merged) return fail(merged.error());
  const auto seen = fleet::overview(board, engine);
  if (!seen) return fail(seen.error());
  const auto given_up = static_cast<int>(merged->given_up.size());
  std::string text = fmt::format("{}: {} settled, {} running, {} waiting, {} lost, {} given up\n",
                                 table::counted(seen->blocks, "block"), seen->settled - given_up,
                                 seen->running, seen->waiting, seen->lost, given_up);
  for (const std::string& line : fleet::told(*merged)) text += "  " + line + "\n";
  for (const std::string& note : seen->notes) text += "  " + note + "\n";
  if (!merged->nodes.empty()) text += "nodes:\n" + nodes_text(merged->nodes);
  if (seen->lost > 0 || (seen->over() && seen->blocks > 0))
    text += "next: " + next_line("submit", board) + ", which goes on, or collect for the verdict so far";
  else if (seen->blocks == 0)
    text += "next: " + next_line("submit", board);
  print(std::string(trimmed(text)) + "\n");
  return 0;
}

int do_collect(const FleetOptions& options, const fleet::Board& board, const fleet::Engine& engine,
               const Interpreters& interpreters) {
  if (options.wait) {
    ConsoleProgress progress;
    const Status done =
        fleet::see_through(board, engine, interpreters, {.say = progress.lines(), .poll_s = poll_seconds()});
    if (!done && !proc::interrupted()) return fail(done.error());
    if (proc::interrupted())
      note("bakeoff: the blocks go on without us; " + next_line("collect", board) + " --wait waits again, " +
           next_line("cancel", board) + " ends them");
  }
  const auto merged = fleet::collect(board, interpreters);
  if (!merged) return fail(merged.error());
  for (const std::string& line : fleet::told(*merged)) note("bakeoff: " + line);
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
  sub.add_option("recipe", options->recipe, kRecipeDoc)->required();
  add_recipe_options(sub, options->changes);
  sub.add_option("--out", options->run, "run directory, in the shared folder; default runs/<recipe>-<date>");
  add_engine_options(sub, options->engine)->required();
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
