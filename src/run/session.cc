#include "run/session.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "machine/clock_keeper.h"
#include "proc/interrupt.h"
#include "records/names.h"
#include "run/commit.h"
#include "study/all/studies.h"
#include "summary/summarise.h"
#include "table/numbers.h"

// How the time of a budget is shared out, and why so. Proofs come first, since nothing may race unproven, but a budget
// that proofs alone use up decides nothing: so heats keep a share that proofs cannot take, and where the budget is
// that of the whole command, studies keep a share that heats cannot take. What a step leaves goes to the next one.
// The first heat comes as soon as two contenders are proven: a first standing within a minute is worth more to who
// waits than an order of steps that is easier to describe.

namespace bakeoff::run {
namespace {

// Of a budget that includes them; a race that ends earlier leaves them more.
constexpr double kShareOfStudies = 0.5;
// Of the rest, kept for heats: what is proven by then is raced.
constexpr double kShareOfHeats = 0.4;

}  // namespace

Session::Session(Plan plan, Surroundings with)
    : plan_(std::make_unique<Plan>(std::move(plan))),
      with_(std::move(with)),
      time_(plan_->recipe.budget.time(with_.begin_ns)),
      watch_(with_names(plan_->manifest.contenders, with_.tell.watch)) {}

Result<Session> Session::make(const recipe::Recipe& recipe, const std::filesystem::path& folder,
                              Surroundings with, const Texts& calibration) {
  TRY(Plan plan, make_plan(recipe, folder, with.interpreters, with.tell.line, calibration));
  return Session(std::move(plan), std::move(with));
}

Result<Session> Session::reopen(const std::filesystem::path& folder, Surroundings with) {
  if (std::filesystem::exists(folder / kFleetFolder))
    return Error{.message = "its heats are run by a fleet",
                 .where = folder.string(),
                 .remedy =
                     "go on by `bakeoff fleet submit` and `bakeoff fleet collect`, or by the suite or the "
                     "search that began it, again with --engine"};
  TRY(Plan plan, reopen_plan(folder, with.interpreters));
  return Session(std::move(plan), std::move(with));
}

void Session::limit(const recipe::Budget& budget) {
  plan_->recipe.budget = budget;
  time_ = budget.time(with_.begin_ns);
}

RaceContext Session::context() const {
  return {.time = time_, .sensed = with_.sensed, .watch = watch_, .heats = with_.heats};
}

Status Session::open_gate() {
  if (gate_) return Done{};
  TRY(std::vector<Parity> known, plan_->directory.read<Parity>());
  TRY(Gate gate, Gate::open(*plan_, std::move(known), with_.proofs));
  gate_.emplace(std::move(gate));
  return Done{};
}

Status Session::prove(size_t enough) {
  CHECK_OK(open_gate());
  if (enough != Gate::kAll) {  // studies keep no share of what nothing can be said without
    return gate_->prove(watch_, enough, [&] { return time_.seconds() - time_.spent_s(); });
  }
  const double kept =
      plan_->recipe.budget.unlimited_time() ? 0 : kShareOfHeats * (left_s() + time_.spent_s());
  CHECK_OK(gate_->prove(watch_, enough, [&] { return left_s() - kept; }));
  if (!proc::interrupted() && !gate_->finished())
    with_.tell.line(fmt::format(
        "the budget of {} left no time to prove every contender; `bakeoff run --resume {} --budget TIME` "
        "proves the others",
        table::duration(60e3 * plan_->recipe.budget.minutes), plan_->directory.path().string()));
  return Done{};
}

Status Session::first_heat() {
  CHECK_OK(open_gate());
  TRY(const std::vector<Trial> trials, plan_->directory.read<Trial>());
  if (!trials.empty() || gate_->finished() || left_s() <= 0) return Done{};
  return bakeoff::first_heat(*plan_, gate_->parities(), context());
}

Status Session::race() {
  CHECK_OK(open_gate());
  TRY(std::vector<Trial> trials, plan_->directory.read<Trial>());
  if (trials.empty() && left_s() <= 0) return Done{};  // proofs took it all: a heat would exceed it
  return bakeoff::race(*plan_, gate_->parities(), std::move(trials), context());
}

// One after another; where the budget includes them, each has its share of what is left.
Status Session::study() {
  CHECK_OK(open_gate());
  TRY(const std::vector<Trial> trials, plan_->directory.read<Trial>());
  const recipe::Budget& budget = plan_->recipe.budget;
  size_t left = wanted_studies(plan_->recipe).size();
  std::vector<std::string> unfinished;
  for (const Study& study : studies()) {
    if (proc::interrupted()) break;
    if (!study.wanted(plan_->recipe)) continue;
    const TimeBudget share(left_s() / static_cast<double>(budget.includes_studies ? left-- : 1));
    bool spent = false;
    const auto over = [&] {
      if (proc::interrupted()) return true;
      spent = spent || (budget.includes_studies && share.left_s() <= 0);
      return spent;
    };
    CHECK_OK(study.run({.plan = *plan_,
                        .parities = gate_->parities(),
                        .trials = trials,
                        .sensed = with_.sensed,
                        .left_s = budget.unlimited_time() ? std::nullopt : std::optional(share.seconds()),
                        .over = over,
                        .progress = with_.tell.line,
                        .watch = watch_}));
    if (spent) unfinished.push_back(fmt::format("[{}]", study.name));
  }
  if (!unfinished.empty()) {
    with_.tell.line(
        fmt::format("the budget of {:g} min is spent before the end of {}; `bakeoff run --resume {} "
                    "--budget TIME` goes on",
                    budget.minutes, join(unfinished, ", "), plan_->directory.path().string()));
  }
  return Done{};
}

Status Session::carry_out() {
  note_commit(plan_->directory, with_.tell.line);
  const recipe::Budget& budget = plan_->recipe.budget;
  with_.tell.time(budget.until_decided ? TimeBudget(TimeBudget::kNoLimit, with_.begin_ns) : time_);
  if (budget.includes_studies && !budget.unlimited_time() && !wanted_studies(plan_->recipe).empty())
    time_.keep(kShareOfStudies * time_.seconds());
  std::optional<ClockKeeper> clocks;
  if (const int64_t mhz = plan_->recipe.race.gpu_clock_mhz; mhz > 0) {
    clocks.emplace(mhz, with_.sensed.gpu_library);
    with_.sensed.gpu_clock = clocks->status();
    with_.tell.line(fmt::format("GPUs' clocks: {}", with_.sensed.gpu_clock));
  }
  TRY(const std::vector<Trial> before, plan_->directory.read<Trial>());
  if (before.empty()) CHECK_OK(prove(2));  // two can be compared
  if (!proc::interrupted()) CHECK_OK(first_heat());
  if (!proc::interrupted()) CHECK_OK(prove());
  if (proc::interrupted()) return Done{};
  CHECK_OK(race());
  time_.keep(0);
  return study();
}

std::vector<Parity> Session::parities() const { return gate_ ? gate_->parities() : std::vector<Parity>{}; }

Result<Summary> Session::summary() const { return summarise(plan_->directory); }

}  // namespace bakeoff::run
