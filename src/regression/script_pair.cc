#include "regression/script_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "explain/explain.h"
#include "explain/folders.h"
#include "explain/heats.h"
#include "explain/observation.h"
#include "proc/interrupt.h"
#include "stats/heat_value.h"

namespace bakeoff::regression {
namespace {

namespace ex = bakeoff::explain;

constexpr int64_t kFewSteps = 40;     // of a script that ends, too few for bursts
constexpr int64_t kRunsOfHeat = 4;    // of whole runs
constexpr int64_t kStepsOfRound = 8;  // at least, of a script that ends
constexpr double kBusy = 0.1;         // of the processors' time, from which on it is told
constexpr double kBurst = 0.12;       // seconds

double whole_seconds(const ex::Report& seen) {
  return 1e-9 * static_cast<double>(seen.begun + seen.ns - seen.started);
}

// Observes it; true: it has no steps or too few, so whole runs are compared.
Result<bool> seen_whole(ScriptSide& side, const std::filesystem::path& folder, double budget_s) {
  const ex::Report& seen = side.subject.seen;
  const auto silent = [](const std::string&) {};
  const Status observed =
      seen.started == 0 ? ex::observe({&side.subject, 1}, folder, budget_s, silent) : Status(Done{});
  if (observed) return seen.ended && side.subject.profile.steps < kFewSteps;
  if (seen.ended && seen.error.empty()) return true;
  const Error& why = observed.error();
  return Error{
      .message = fmt::format("{}: {}", side.what, why.message), .where = why.where, .remedy = why.remedy};
}

ex::Lane lane_of(const ScriptSide& side, bool by_step) {
  const ex::Subject& of = side.subject;
  ex::Lane lane{.name = side.what, .spec = of.spec, .step_s = of.profile.step_s, .by_step = by_step};
  if (of.seen.ended) lane.steps_at_most = of.seen.steps();
  lane.whole_s = whole_seconds(of.seen);
  return lane;
}

std::vector<double> exponentials(const std::vector<double>& logs) {
  std::vector<double> all;
  for (const double value : logs)
    if (std::isfinite(value)) all.push_back(std::exp(value));
  return all;
}

// A heat of bursts: one pair.
Result<PairHeats> pair_of_bursts(const ex::Heat& heat) {
  const auto base = stats::measure_heat(exponentials(heat.lanes[0].bursts));
  const auto head = stats::measure_heat(exponentials(heat.lanes[1].bursts));
  if (!base || !head || !base->variance || !head->variance)
    return Error{.message = "a heat gave too few bursts to compare",
                 .remedy = "let the scripts make more steps, or compare whole runs: --whole"};
  PairHeats pair;
  pair.heats.push_back({.log_ms = {base->log_ms, head->log_ms},
                        .log_mean_ms = {base->log_mean_ms, head->log_mean_ms},
                        .variance = {base->variance_high(), head->variance_high()}});
  pair.past.push_back({.d = head->log_ms - base->log_ms,
                       .within = *base->variance + *head->variance,
                       .rounds = static_cast<int64_t>(std::min(base->bursts, head->bursts))});
  return pair;
}

// Whole runs: each round is a pair of fresh processes.
PairHeats pairs_of_runs(const ex::Heat& heat) {
  PairHeats pairs;
  const auto& base = heat.lanes[0].bursts;
  const auto& head = heat.lanes[1].bursts;
  for (size_t i = 0; i < std::min(base.size(), head.size()); ++i) {
    if (!std::isfinite(base[i]) || !std::isfinite(head[i])) continue;
    pairs.heats.push_back({.log_ms = {base[i], head[i]}});
    pairs.past.push_back({.d = head[i] - base[i], .within = 1e-9, .rounds = 1});
  }
  return pairs;
}

}  // namespace

Result<std::unique_ptr<ScriptPair>> ScriptPair::make(ScriptSide base, ScriptSide head,
                                                     const std::filesystem::path& folder, bool whole,
                                                     double budget_s, const Progress& progress) {
  auto pair = std::unique_ptr<ScriptPair>(new ScriptPair);
  pair->sides_[0] = std::move(base);
  pair->sides_[1] = std::move(head);
  pair->folder_ = folder;
  pair->whole_ = whole;
  for (ScriptSide& side : pair->sides_) {
    progress(fmt::format("observing {}: {}", side.what, side.subject.name));
    // Log files are named by it.
    const std::string name = side.subject.name;
    side.subject.name = side.what;
    const auto few = seen_whole(side, folder, budget_s);
    side.subject.name = name;
    if (!few) return few.error();
    pair->whole_ = pair->whole_ || *few;
    if (proc::interrupted()) return Error{.message = "interrupted"};
  }
  const auto unknown = [](const ScriptSide& side) { return side.subject.number("batch") <= 0; };
  if (!pair->whole_ && std::ranges::any_of(pair->sides_, unknown))
    for (ScriptSide& side : pair->sides_) side.subject.by_step = true;
  return pair;
}

std::vector<Row> ScriptPair::rows() const {
  const std::string& name = sides_[1].subject.name;
  return {{.contender = name, .name = name, .file = file}};
}

std::string ScriptPair::per() const { return whole_ ? "run" : sides_[0].subject.by_step ? "step" : "sample"; }

std::vector<std::string> ScriptPair::notes() const {
  std::vector<std::string> all;
  for (const ex::WorkDifference& row : ex::work_differences(sides_[0].subject, sides_[1].subject))
    all.push_back(fmt::format("not the same work: {}: {} before, {} now", row.what, row.first, row.second));
  for (const ex::WorkDifference& row : ex::environment_differences(sides_[0].subject, sides_[1].subject))
    all.push_back(fmt::format("{}: {} before, {} now", row.what, row.first, row.second));
  if (fresh_steps_ > 0)
    all.push_back(fmt::format(
        "a run ends after {} steps, so the first {} steps of fresh processes are compared, without those that warm up",
        ends_after_, fresh_steps_));
  if (others_ >= kBusy)
    all.push_back(fmt::format("other processes took up to {:.0f}% of the processors' time during a heat",
                              100 * others_));
  return all;
}

// Whether a script ended too soon for bursts: each burst of later heats is of a fresh process.
bool ScriptPair::starts_anew(const explain::Heat& heat) {
  if (whole_runs()) return false;
  ends_after_ = ex::ended_after(heat);
  if (ends_after_ == 0) return false;
  double step_s = 0;
  for (const ScriptSide& side : sides_) step_s = std::max(step_s, side.subject.step_with_waits_s());
  fresh_steps_ = ex::fresh_steps_of(ends_after_, step_s);
  return true;
}

double ScriptPair::round_s(const std::vector<size_t>&) const {
  double all = 0;
  for (const ScriptSide& side : sides_)
    all += whole_runs() ? whole_seconds(side.subject.seen) + 0.5
                        : std::max(kBurst + side.subject.profile.step_s, 2 * side.subject.profile.step_s);
  return all;
}

Result<std::vector<PairHeats>> ScriptPair::heat(const std::vector<size_t>&, int64_t rounds, double left_s) {
  const bool by_step = sides_[0].subject.by_step;
  const std::vector<ex::Lane> lanes = {lane_of(sides_[0], by_step), lane_of(sides_[1], by_step)};
  const int64_t until_ns = monotonic_clock().now_ns() + std::llround(std::min(left_s, 1e8) * 1e9);
  ex::HeatOptions options{.folder = folder_,
                          .rounds = whole_runs() ? kRunsOfHeat : rounds,
                          .burst_s = kBurst,
                          .whole = whole_,
                          .fresh_steps = fresh_steps_,
                          .until_short = !whole_runs(),
                          .until_ns = until_ns,
                          .seed = seed_++};
  for (const ex::Lane& lane : lanes)
    if (lane.steps_at_most && !whole_runs())
      options.rounds =
          std::min(options.rounds, std::max(options.fewest_rounds, *lane.steps_at_most / kStepsOfRound));
  const ex::Heat heat = ex::run_heat(lanes, options);
  if (proc::interrupted()) return std::vector<PairHeats>{};
  others_ = std::max(others_, heat.others);
  if (starts_anew(heat)) return this->heat({}, rounds, left_s);
  for (size_t i : {0, 1})
    if (!heat.lanes[i].ok())
      return Error{.message = fmt::format("{}: {}", sides_[i].what, heat.lanes[i].failure),
                   .remedy = "both versions must run; nothing is said about their times"};
  if (whole_runs()) return std::vector<PairHeats>{pairs_of_runs(heat)};
  TRY(PairHeats pair, pair_of_bursts(heat));
  return std::vector<PairHeats>{std::move(pair)};
}

}  // namespace bakeoff::regression
