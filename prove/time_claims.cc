// V1 to V6, V9: seconds until a verdict, by what one race was recorded to cost and how noisy it was (a busy
// cloud machine with two processors). Who runs, how many rounds a heat has, what decides and when it is over
// are the product's own functions; only clocks and noise are simulated.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prove/parallel.h"
#include "prove/report.h"
#include "stats/burst_plan.h"
#include "stats/racing.h"
#include "stats/trimmed.h"

namespace bakeoff::prove {
namespace {

using stats::testing::Machine;
using stats::testing::NoiseModel;
using stats::testing::ProcessTimes;

constexpr double kRaceMargin = 0.03;
constexpr double kMostSeconds = 3600;
constexpr size_t kPromisedFrom = 2;  // as in races (evidence/promise.h)

// A burst takes 0.3 s, 3 steps. Its log has sd 4.8%, and 1.6 times the share of time that is stolen, which
// is 5% on average and follows the heat's regime; 3% of the bursts take 30% more. `restart`: sd of a process.
NoiseModel cloud(double restart) {
  return {.process = restart,
          .step = 0.048 * std::sqrt(3.0),
          .spike_share = 0.01,
          .spike = 0.9,
          .steal_slope = std::vector<double>(16, 1.6),
          .steps = 3};
}

// Seconds of a member of a heat: starting alone, and one burst. Two start at a time.
struct Costs {
  double start_s = 0, burst_s = 0;
};
constexpr double kTwoAtATime = 0.63;           // of the sum of the starts
constexpr double kWarmUp = 0.35, kEnd = 0.15;  // of each member
constexpr double kBurstOverhead = 1.04;

// One race, heat by heat.
class TimedRace {
 public:
  TimedRace(std::vector<double> effects, std::vector<Costs> costs, double restart, double ceiling,
            uint64_t seed)
      : costs_(std::move(costs)),
        machine_(cloud(restart), effects, seed),
        table_(effects.size(), std::log1p(kRaceMargin), stats::Backup::kOnSigns),
        states_(effects.size()) {
    options_.confirm_heats = 0;
    options_.ranking.alpha = kAlpha;
    options_.ranking.margin = kRaceMargin;
    options_.ranking.ceiling = ceiling;
    options_.ranking.ceiling_from = kPromisedFrom;
    look();
  }

  // Nothing is left to run: false.
  bool heat() {
    const stats::Heat next = next_heat(table_, race_, states_, 0, options_);
    if (next.phase != stats::Phase::kRace || seconds_ > kMostSeconds) return false;
    double start_s = 0, round_s = 0;
    for (const size_t i : next.members) {
      start_s += kTwoAtATime * costs_[i].start_s + kWarmUp + kEnd;
      round_s += kBurstOverhead * costs_[i].burst_s;
    }
    const int64_t rounds = rounds_ = rounds_of(next, {start_s, round_s});
    std::vector<ProcessTimes> times(costs_.size());
    machine_.start(next.members);
    for (int64_t round = 0; round < rounds; ++round) machine_.round(times);
    const stats::HeatResult result = Machine::result_of(times, next.members);
    if (!table_.add(result)) return false;
    remember(times, next.members, rounds);
    seconds_ += start_s + static_cast<double>(rounds) * round_s;
    look();
    return true;
  }

  const stats::Race& race() const { return race_; }
  double seconds() const { return seconds_; }
  // Of two contenders: d = log(0 / 1).
  stats::Interval pair() const { return stats::rank(table_, options_.ranking).pairs.front().interval; }
  const stats::PairTable& table() const { return table_; }
  const stats::RankingOptions& ranking() const { return options_.ranking; }

 private:
  void look() { race_ = race_state(table_, options_.ranking); }

  // By the past heats of the leader and the first of the others.
  int64_t rounds_of(const stats::Heat& next, const stats::HeatCost& cost) const {
    return stats::plan_rounds(stats::heat_variance(past_), cost,
                              stats::gap_to_decide(race_, next, kRaceMargin),
                              kAlpha / static_cast<double>(stats::comparisons(next.members.size())), rounds_);
  }

  void remember(const std::vector<ProcessTimes>& times, const std::vector<size_t>& members, int64_t rounds) {
    const auto a = stats::measure_heat(times[members[0]].burst_ms);
    const auto b = stats::measure_heat(times[members[1]].burst_ms);
    past_.push_back({a->log_ms - b->log_ms, *a->variance + *b->variance, rounds});
  }

  std::vector<Costs> costs_;
  Machine machine_;
  stats::RacingOptions options_;
  stats::PairTable table_;
  std::vector<stats::ContenderState> states_;
  stats::Race race_;
  std::vector<stats::PastHeat> past_;
  int64_t rounds_ = stats::kUsualRounds;  // of the latest heat
  double seconds_ = 0;
};

// Two contenders: start-up of both 4.6 s.
const std::vector<Costs> kTwo = {{4.6 / 2 / kTwoAtATime, 0.295 / kBurstOverhead},
                                 {4.6 / 2 / kTwoAtATime, 0.295 / kBurstOverhead}};

struct Ended {
  double seconds = 0;
  bool wrong = false;
};

// Contender 0 slower by `gap`, or identical to 1.
Ended race_of_two(double gap, double restart, double ceiling, uint64_t seed) {
  TimedRace race({std::log1p(gap), 0}, kTwo, restart, ceiling, seed);
  while (race.heat()) continue;
  const stats::Verdict verdict = stats::judge(race.pair(), kRaceMargin);
  if (!decided(verdict)) return {kMostSeconds, false};
  return {race.seconds(), gap > 0 ? race.pair().low <= 0 : names_a_winner(verdict)};
}

struct Times {
  double mean = 0, error = 0, late = 0;  // late: 95 of 100 end before
  int wrong = 0;
};

Times times_of(const std::vector<Ended>& ends) {
  Times times;
  std::vector<double> seconds;
  for (const Ended& end : ends) {
    seconds.push_back(end.seconds);
    times.wrong += end.wrong;
  }
  times.mean = stats::mean(seconds);
  times.error = std::sqrt(stats::variance(seconds) / static_cast<double>(seconds.size()));
  times.late = stats::quantile(seconds, 0.95);
  return times;
}

// The least seconds with known variances, a fixed number of heats of equal length and 95% power.
double oracle_s(double gap, double restart, double round_variance) {
  const double needed = gap * gap / 17.8;
  double least = kMostSeconds;
  for (double heats = 1; heats < 200; ++heats) {
    const double rest = needed - 2 * restart * restart / heats;
    if (rest <= 0) continue;
    const double rounds = std::max(heats, round_variance / rest);
    least = std::min(least, heats * (4.6 + 2 * (kWarmUp + kEnd)) + rounds * 2 * 0.295);
  }
  return least;
}

// Variance of d of one round, trimmed as heats are: that of heats of 64 rounds times 64.
double round_variance() {
  NoiseModel noise = cloud(0);
  noise.rounds = 64;
  Machine machine(noise, {0, 0}, 17);
  std::vector<double> d;
  for (int i = 0; i < 400; ++i) d.push_back(machine.pair());
  return 64 * stats::variance(d);
}

struct Row {
  const char* id;
  double gap, restart, promise;  // promise: sd of a process; 0: none
  double mean, late;             // bars in seconds; 0: none
  double over_oracle;            // bar; 0: none
};

void duels(const Options& options, Report& report) {
  // V1 is V4 with steal as a control variate, which is not built. V2 and V3 have the bars of a machine on
  // which it cannot be read.
  const Row kRows[] = {
      {"V4", 0.05, 0, 0, 160, 0, 0},       {"V4", 0.05, 0.01, 0, 175, 0, 2.2},
      {"V4", 0.05, 0.03, 0, 300, 0, 1.7},  {"V2", 0.05, 0, 0.01, 125, 0, 0},
      {"V2", 0.05, 0.01, 0.01, 125, 0, 0}, {"V3", 0, 0, 0, 380, 950, 0},
      {"V3", 0, 0.01, 0, 480, 1150, 0},
  };
  const double of_a_round = round_variance();
  for (const Row& row : kRows) {
    if (!wanted(options, row.id)) continue;
    const int n = tier(options, 300, 3000);
    const auto ends = for_each_seed(n, [&](int i) {
      return race_of_two(row.gap, row.restart, std::sqrt(2.0) * row.promise,
                         options.seed * 256203221 + static_cast<uint64_t>(i));
    });
    const Times times = times_of(ends);
    const std::string what = fmt::format(
        "{}, restart {:g}%{}", row.gap > 0 ? "5% behind" : "the same within 3%", 100 * row.restart,
        row.promise > 0 ? fmt::format(", promised {:g}%", 100 * row.promise) : "");
    report.add(figure_at_most(row.id, what + ": mean", times.mean, times.error, row.mean, "s"));
    if (row.late > 0)
      report.add(figure_at_most(row.id, what + ": 95 of 100", times.late, times.error * 2, row.late, "s"));
    if (row.over_oracle > 0) {
      const double oracle = oracle_s(std::log1p(row.gap), row.restart, of_a_round);
      report.add(figure_at_most("V6", what + fmt::format(": over {:.0f} s with known variances", oracle),
                                times.mean / oracle, times.error / oracle, row.over_oracle, "times"));
    }
    report.add(at_most(row.id, what + ": wrong", times.wrong, n, kAlpha));
  }
}

// The recorded race of eight: gap to the first, seconds to start, seconds of a burst.
constexpr struct {
  double effect, start_s, burst_s;
} kDemo[] = {{0, 4.4, 0.29},    {0.01, 5.4, 0.29}, {0.05, 3.7, 0.30}, {0.30, 4, 0.36},
             {0.40, 7.8, 0.29}, {0.43, 6, 0.29},   {0.62, 10, 0.37},  {1.76, 11, 0.57}};

struct Demo {
  double losers_s = kMostSeconds, rival_s = kMostSeconds, all_s = kMostSeconds;
  bool wrong = false;
};

Demo demo(double restart, double ceiling, uint64_t seed) {
  std::vector<double> effects;
  std::vector<Costs> costs;
  for (const auto& one : kDemo) {
    effects.push_back(one.effect);
    costs.push_back({one.start_s, one.burst_s});
  }
  TimedRace race(effects, costs, restart, ceiling, seed);
  Demo seen;
  while (race.heat()) {
    const stats::Race& now = race.race();
    size_t losers = 0;
    for (size_t i = 3; i < effects.size(); ++i) losers += now.standings[i].eliminated_by.has_value();
    if (losers == effects.size() - 3) seen.losers_s = std::min(seen.losers_s, race.seconds());
    if (now.standings[2].eliminated_by) seen.rival_s = std::min(seen.rival_s, race.seconds());
    if (now.still_undecided.empty()) seen.all_s = std::min(seen.all_s, race.seconds());
    seen.wrong = seen.wrong || now.standings[0].eliminated_by.has_value();
  }
  return seen;
}

void demos(const Options& options, Report& report) {
  const int n = tier(options, 100, 1000);
  const auto seen = for_each_seed(n, [&](int i) {
    return demo(0.01, std::sqrt(2.0) * 0.01, options.seed * 275604541 + static_cast<uint64_t>(i));
  });
  const auto row = [&](const std::string& what, auto member, double bar) {
    std::vector<Ended> ends;
    for (const Demo& one : seen) ends.push_back({one.*member, one.wrong});
    const Times times = times_of(ends);
    report.add(figure_at_most("V5", "eight contenders, restart 1% promised: " + what, times.mean, times.error,
                              bar, "s"));
    return times.wrong;
  };
  row("losers out", &Demo::losers_s, 120);
  row("5% rival out", &Demo::rival_s, 310);
  const int wrong = row("all decided", &Demo::all_s, 850);
  report.add(at_most("V5", "eight contenders: the fastest lost", wrong, n, kAlpha));
}

// Half-widths of nine contenders' intervals in percent, median of pairs and races.
void widths(const Options& options, Report& report) {
  const int n = tier(options, 40, 400);
  const auto width = [&](int heats, size_t from) {
    const auto seen = for_each_seed(n, [&](int i) {
      NoiseModel noise = cloud(0.01);
      noise.rounds = heats == 1 ? 6 : static_cast<int>(stats::kUsualRounds);
      Machine machine(noise, std::vector<double>(9, 0.0),
                      options.seed * 295075153 + static_cast<uint64_t>(i));
      stats::PairTable table(9, std::log1p(kRaceMargin), stats::Backup::kOnSigns);
      for (int heat = 0; heat < heats; ++heat) {
        if (!table.add(machine.heat())) return 1e9;
      }
      const stats::Ranking ranking = rank(
          table,
          {.alpha = kAlpha, .margin = kRaceMargin, .ceiling = std::sqrt(2.0) * 0.01, .ceiling_from = from});
      std::vector<double> halves;
      for (const stats::PairGap& pair : ranking.pairs) halves.push_back(50 * pair.interval.width());
      return stats::median(halves);
    });
    return std::pair(stats::median(seen), 1.25 * std::sqrt(stats::variance(seen) / n));
  };
  const auto [first, first_error] = width(1, 1);
  const auto [third, third_error] = width(3, kPromisedFrom);
  report.add(figure_at_most("V9", "K = 9, half-width after 1 heat of 6 bursts", first, first_error, 30, "%"));
  report.add(figure_at_most("V9", "K = 9, half-width after 3 heats", third, third_error, 10, "%"));
}

// A promise that is kept exactly, and ones that are broken: identical contenders called different.
void promises(const Options& options, Report& report) {
  const int n = tier(options, 1000, 20000);
  for (const double times : {0.0, 1.0, 1.5, 2.0, 3.0}) {
    const auto ends = for_each_seed(n, [&](int i) {
      return race_of_two(0, times * 0.01, std::sqrt(2.0) * 0.01,
                         options.seed * 314606869 + static_cast<uint64_t>(i));
    });
    const int wrong =
        static_cast<int>(std::count_if(ends.begin(), ends.end(), [](const Ended& e) { return e.wrong; }));
    Claim claim =
        at_most("V2", fmt::format("identical, restart {:g} times the promise: called different", times),
                wrong, n, kAlpha);
    claim.barred = times <= 1;
    claim.open = !claim.barred && !claim.held;
    report.add(claim);
  }
}

}  // namespace

void prove_times(const Options& options, Report& report) {
  duels(options, report);
  if (wanted(options, "V2")) promises(options, report);
  if (wanted(options, "V5")) demos(options, report);
  if (wanted(options, "V9")) widths(options, report);
}

}  // namespace bakeoff::prove
