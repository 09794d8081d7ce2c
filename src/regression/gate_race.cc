#include "regression/gate_race.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "proc/interrupt.h"
#include "stats/trimmed.h"

namespace bakeoff::regression {
namespace {

constexpr int64_t kFirstRounds = 8;

// One contender while it races.
struct Contest {
  stats::RegressionTest test;
  std::vector<stats::PastHeat> past = {};
  std::vector<double> base_ms = {}, head_ms = {};
  stats::NextStep next = {};

  Status add(const PairHeats& seen) {
    for (size_t i = 0; i < seen.heats.size(); ++i) {
      const stats::HeatResult& heat = seen.heats[i];
      CHECK_OK(test.add(heat));
      past.push_back(seen.past[i]);
      base_ms.push_back(std::exp(*heat.log_ms[0]));
      head_ms.push_back(std::exp(*heat.log_ms[1]));
    }
    return Done{};
  }
};

// Where higher is better, what raced was one over the figure.
void as_rate(Row& row) {
  row.ratio = {1 / row.ratio.value, 1 / row.ratio.high, 1 / row.ratio.low};
  row.base_ms = 1 / row.base_ms;
  row.head_ms = 1 / row.head_ms;
}

void tell(Row& row, const Contest& contest, const Outcome& outcome) {
  row.change = contest.test.change();
  row.end = contest.next.what;
  row.outlook = contest.next.outlook;
  row.heats = contest.test.heats();
  row.alpha = outcome.settings.alpha / static_cast<double>(outcome.rows.size());
  if (row.heats == 0) return;
  const stats::Interval d = contest.test.interval();
  // The interval is what all looks have in common: the mean of the last look may lie just beyond it.
  row.ratio = {std::exp(std::clamp(contest.test.mean(), d.low, d.high)), std::exp(d.low), std::exp(d.high)};
  row.base_ms = stats::median(contest.base_ms);
  row.head_ms = stats::median(contest.head_ms);
  if (outcome.metric && outcome.metric->higher_is_better) as_rate(row);
  std::vector<double> all;
  for (const stats::PastHeat& heat : contest.past) all.push_back(heat.d);
  if (all.size() > 1) row.noise = std::sqrt(stats::variance(all));
}

// The length of the next heat, from those that are over.
int64_t rounds_of(const Contest& contest, const stats::GateTime& time, double round_s, double margin,
                  int64_t now) {
  const double start_s = std::max(0.5, time.heat_s - static_cast<double>(now) * round_s);
  return stats::plan_rounds(stats::heat_variance(contest.past), {.start_s = start_s, .round_s = round_s},
                            std::log1p(margin), contest.test.level(), now);
}

std::string standing(const Row& row) {
  if (row.heats == 0) return "";
  return fmt::format(", ratio so far {} {}", table::ratio(row.ratio.value),
                     table::interval(row.ratio, table::ratio));
}

}  // namespace

Status race(Pairing& pairing, Outcome& outcome, const Progress& progress, const TimeBudget& time) {
  outcome.rows = pairing.rows();
  const double alpha = outcome.settings.alpha / static_cast<double>(std::max<size_t>(1, outcome.rows.size()));
  std::vector<Contest> contests;
  std::vector<size_t> open;
  for (size_t i = 0; i < outcome.rows.size(); ++i) {
    contests.push_back({stats::RegressionTest({outcome.settings.margin, alpha})});
    open.push_back(i);
  }
  int64_t rounds = kFirstRounds;
  for (int number = 1; !open.empty() && !proc::interrupted(); ++number) {
    progress(fmt::format("heat {} ({:.0f} of {:.0f} s){}", number, time.spent_s(), time.seconds(),
                         standing(outcome.rows[open.front()])));
    const int64_t heat_begin = monotonic_clock().now_ns();
    TRY(const std::vector<PairHeats> seen, pairing.heat(open, rounds, time.left_s()));
    if (proc::interrupted() || seen.size() != open.size()) break;
    const stats::GateTime spent{time.spent_s(), seconds_since(heat_begin), time.seconds()};
    std::vector<size_t> left;
    for (size_t k = 0; k < open.size(); ++k) {
      Contest& contest = contests[open[k]];
      CHECK_OK(contest.add(seen[k]));
      contest.next = next_step(contest.test, contest.past, pairing.whole_runs() ? 1 : rounds, spent);
      // What a few whole runs say about noise is too little to give up a budget.
      if (pairing.whole_runs() && contest.next.what == stats::NextStep::What::kTooNoisy &&
          spent.spent_s + spent.heat_s <= spent.budget_s)
        contest.next.what = stats::NextStep::What::kRunHeat;
      tell(outcome.rows[open[k]], contest, outcome);
      if (contest.next.what == stats::NextStep::What::kRunHeat) left.push_back(open[k]);
    }
    open = left;
    if (!open.empty() && !pairing.whole_runs())
      rounds =
          rounds_of(contests[open.front()], spent, pairing.round_s(open), outcome.settings.margin, rounds);
  }
  outcome.per = pairing.per();
  outcome.notes = pairing.notes();
  outcome.interrupted = proc::interrupted();
  outcome.seconds = time.spent_s();
  return Done{};
}

}  // namespace bakeoff::regression
