// A command that waits for a fleet is not the fleet: it may be killed, another one may wait for the same run,
// and blocks go on without either. So it keeps no state of its own. It submits if it gets the lock, asks
// where the blocks are until none waits or runs, and submits again; all that it needs is in the folder.
//
// An engine that does not answer is the usual case on a cluster whose controller restarts, and ends nothing
// until 30 questions in a row were left open. Ctrl-C ends the waiting of `collect`, but cancels the jobs of a
// suite or search, whose next race would never come; as commands end at once while a signal is pending, it is
// set aside until they have run.

#include "fleet/races.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "base/texts.h"
#include "fleet/shared_folder.h"
#include "proc/interrupt.h"
#include "study/all/studies.h"
#include "summary/summarise.h"

namespace bakeoff::fleet {

namespace fs = std::filesystem;

namespace {

// Questions in a row that an engine may leave unanswered: a controller that is started again is away for minutes.
constexpr int kUnanswered = 30;

class Waiting {
 public:
  Waiting(const Board& board, const Engine& engine, const Interpreters& interpreters, const Wait& wait)
      : board_(board), engine_(engine), interpreters_(interpreters), wait_(wait) {}

  Status run() {
    while (!proc::interrupted()) {
      TRY(const std::optional<Submitted> done, submitted());
      if (done && done->finished) break;
      if (!done) pause();
      for (const std::string& line : told(done.value_or(Submitted{}))) wait_.say(line);
      CHECK_OK(wait_for_wave());
    }
    return Done{};
  }

 private:
  // Null: another process is about to submit.
  Result<std::optional<Submitted>> submitted() {
    const auto lock = board_.lock();
    if (!lock) return std::optional<Submitted>();
    TRY(Submitted done,
        submit(board_, engine_, interpreters_, *lock, wait_.over() ? Time::kOver : Time::kLeft));
    return std::optional(std::move(done));
  }

  // Until no block of it waits or runs.
  Status wait_for_wave() {
    for (int unanswered = 0; !proc::interrupted(); pause()) {
      const auto seen = overview(board_, engine_);
      if (!seen) {
        say_once(seen.error().message);
        if (++unanswered >= kUnanswered) return seen.error();
        continue;
      }
      unanswered = 0;
      say_once(fmt::format("{} of {} blocks settled, {} running, {} waiting", seen->settled, seen->blocks,
                           seen->running, seen->waiting));
      if (seen->over()) break;
    }
    return Done{};
  }

  void pause() const {
    pollfd interrupt = {.fd = proc::interrupt_fd(), .events = POLLIN, .revents = 0};
    ::poll(&interrupt, 1, static_cast<int>(1e3 * wait_.poll_s));
  }

  void say_once(const std::string& text) {
    if (text != last_) wait_.say(last_ = text);
  }

  const Board& board_;
  const Engine& engine_;
  const Interpreters& interpreters_;
  const Wait& wait_;
  std::string last_;
};

// Commands end at once while a signal is pending, and cancelling takes some: it is forgotten, and sent again.
class SignalSetAside {
 public:
  SignalSetAside() { proc::clear_interrupt(); }
  SignalSetAside(const SignalSetAside&) = delete;
  SignalSetAside& operator=(const SignalSetAside&) = delete;
  ~SignalSetAside() {
    if (signal_ != 0 && !proc::interrupted()) ::raise(signal_);
  }
  bool came() const { return signal_ != 0; }

 private:
  int signal_ = proc::interrupt_signal();
};

}  // namespace

Status see_through(const Board& board, const Engine& engine, const Interpreters& interpreters,
                   const Wait& wait) {
  return Waiting(board, engine, interpreters, wait).run();
}

std::vector<std::string> told(const Submitted& submitted) {
  std::vector<std::string> lines;
  for (const std::string& block : submitted.given_up) lines.push_back("given up: " + block);
  if (submitted.again > 0) lines.push_back(fmt::format("submitted again: {} blocks", submitted.again));
  if (submitted.fresh > 0) lines.push_back(fmt::format("submitted: {} new blocks", submitted.fresh));
  if (!submitted.jobs.empty()) lines.push_back("jobs: " + join(submitted.jobs, ", "));
  return lines;
}

std::vector<std::string> told(const Merged& merged) {
  std::vector<std::string> lines;
  for (const std::string& block : merged.damaged) lines.push_back("damaged, to run again: " + block);
  for (const std::string& block : merged.given_up) lines.push_back("given up: " + block);
  for (const auto& [name, node] : merged.nodes)
    if (!node.apart.empty())
      lines.push_back(fmt::format("node {} is kept apart, its {} blocks do not count: {}", name, node.blocks,
                                  node.apart));
  return lines;
}

Status check_spread(const Spread& spread, const fs::path& folder) {
  if (!spread.shared.empty()) CHECK_OK(check_places(spread.shared, spread.settings, folder));
  const Board asked(spread.shared.empty() ? fs::current_path() : spread.shared, spread.settings);
  return make_engine(asked)->check();
}

Status make_fleets(run::Session session, const Spread& spread) {
  const fs::path& folder = session.plan().directory.path();
  TRY(const std::vector<Trial> trials, session.plan().directory.read<Trial>());
  if (!trials.empty())
    return Error{.message = "its heats were run on one machine",
                 .where = folder.string(),
                 .remedy = "go on without --engine, or race in a new folder"};
  if (!spread.shared.empty()) CHECK_OK(check_shared(spread.shared, spread.settings, session.plan()));
  CHECK_OK(make_engine(Board(folder, spread.settings))->check());
  session.limit({.minutes = recipe::Budget::kNoLimit});
  CHECK_OK(session.prove());
  if (proc::interrupted()) return Done{};
  CHECK_OK(Board(folder, spread.settings).note_ours());
  TRY(const Board made, Board::create(folder, spread.settings));
  (void)made;
  return Done{};
}

Result<Summary> Races::race(const recipe::Recipe& recipe, const fs::path& folder) {
  const TimeBudget time = recipe.budget.time(monotonic_clock().now_ns());
  if (const auto studies = wanted_studies(recipe); !studies.empty())
    with_.tell.line("a fleet races alone; not measured: " + join(studies, ", "));
  if (!fs::exists(folder / kFleetFolder)) {
    TRY(run::Session session,
        fs::exists(folder) ? run::Session::reopen(folder, with_) : run::Session::make(recipe, folder, with_));
    CHECK_OK(make_fleets(std::move(session), spread_));
  }
  if (!proc::interrupted()) CHECK_OK(go_on(folder, time));
  TRY(const RunDirectory directory, RunDirectory::open(folder));
  return summarise(directory);
}

Status Races::go_on(const fs::path& folder, const TimeBudget& time) {
  TRY(const Board board, Board::open(folder));
  CHECK_OK(board.check_ours());
  if (board.settings() != spread_.settings)
    with_.tell.line("it goes on with the settings that it was begun with, by engine " +
                    board.settings().engine);
  const auto engine = make_engine(board);
  const Status done = see_through(
      board, *engine, with_.interpreters,
      {.say = with_.tell.line, .poll_s = spread_.poll_s, .over = [&] { return time.left_s() <= 0; }});
  const SignalSetAside signal;
  CHECK_OK(signal.came() ? cancel(board, *engine) : done);
  TRY(const Merged merged, collect(board, with_.interpreters));
  for (const std::string& line : told(merged)) with_.tell.line(line);
  return Done{};
}

}  // namespace bakeoff::fleet
