// Trying every combination of settings would take days, so settings are raced alone first, against the
// framework as the recipe states it; what gains is raced together, as gains rarely add up; and the best of
// each framework meet in a last race. Each race gets a share of the time, and one that is not needed leaves
// its share to the others. Where nothing distinguishes several winners, the one with the fewest changes is
// named: a setting without a proven gain is a burden to its user.

#include "tune/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "emit/all/frameworks.h"
#include "proc/interrupt.h"
#include "summary/limits.h"
#include "table/numbers.h"

namespace bakeoff::tune {
namespace {

constexpr double kWorthCombining = 1.01;  // gain of a change, by its estimate, from which on it is combined
constexpr double kAloneShare = 0.5, kTogetherShare = 0.2, kBestShare = 0.3;  // of the time
constexpr double kLeastMinutes = 0.05;  // of a race: what it says of a budget needs one
// Of the longest search so far: another one and the race of the best need about as long.
constexpr double kSearchAndLast = 1.5;
// Minutes of all races from which on the limit is raced, too, if the recipe does not name it.
constexpr double kLeastForLimit = 5;
constexpr double kLeastSearch = 0.5;  // minutes, of one framework: proofs and a heat of some settings

// The time of all races. Each has its share of what those before it left, so that they end together when it does.
class Time : public TimeBudget {
 public:
  Time(double minutes, double shares) : TimeBudget(60 * minutes), shares_(shares) {}
  // Minutes of the race that comes next.
  double take(double share) {
    const double mine = left_s() / 60 * share / std::max(shares_, share);
    shares_ -= share;
    return std::max(kLeastMinutes, mine);
  }
  // A race that is not run leaves its share to the others.
  void leave(double share) { shares_ -= share; }

 private:
  double shares_;
};

// Of the contenders that nothing distinguishes from the leader, the one with the fewest changes.
size_t simplest_best(const Summary& summary, const std::vector<recipe::Contender>& contenders,
                     const std::vector<std::vector<Change>>& changes) {
  size_t best = contenders.size();
  for (size_t i = 0; i < contenders.size(); ++i) {
    const Row* row = row_of(summary, contenders[i].id);
    if (!timed(row) || surely_slower(row->verdict)) continue;
    if (row->verdict != RowVerdict::kLeader && row->verdict != RowVerdict::kSame) continue;
    if (best == contenders.size() || changes[i].size() < changes[best].size()) best = i;
  }
  return best == contenders.size() ? 0 : best;
}

// One framework's search.
class Search {
 public:
  Search(const recipe::Recipe& recipe, const Machine& machine, Time& time, run::Races& races,
         const std::filesystem::path& folder, const Progress& progress)
      : recipe_(recipe),
        machine_(machine),
        time_(time),
        races_(races),
        folder_(folder),
        progress_(progress) {}

  Result<Tuned> run(const recipe::Contender& base) {
    Tuned tuned{.base = base, .best = base};
    const auto tried = changes(base, recipe_.training.scenario, machine_);
    if (tried.empty() || !base.script.empty()) {
      time_.leave(kAloneShare + kTogetherShare);
      return tuned;
    }
    CHECK_OK(try_alone(tried, tuned));
    const auto good = worth_combining(tuned);
    if (proc::interrupted() || !tuned.failure.empty() || good.empty()) {
      time_.leave(kTogetherShare);
      return tuned;
    }
    CHECK_OK(try_together(good, tuned));
    return tuned;
  }

 private:
  recipe::Contender contender(const Tuned& tuned, const std::vector<Change>& all) const {
    return with(tuned.base, recipe_.training.scenario, all);
  }

  Result<Summary> race(const Tuned& tuned, const std::vector<recipe::Contender>& contenders,
                       const std::string& stage, double share) {
    recipe::Recipe one = recipe_;
    one.contenders = contenders;
    one.budget.minutes = time_.take(share);
    progress_(fmt::format("{}: {}, {}", spoken(tuned.base),
                          table::counted(std::ssize(contenders), "contender"), stage));
    return races_.race(one, folder_ / (tuned.base.file + "_" + stage));
  }

  Status try_alone(const std::vector<Change>& tried, Tuned& tuned) {
    std::vector<recipe::Contender> contenders = {tuned.base};
    for (const Change& change : tried) contenders.push_back(contender(tuned, {change}));
    TRY(const Summary summary, race(tuned, contenders, "alone", kAloneShare));
    for (size_t i = 0; i < tried.size(); ++i)
      tuned.alone.push_back(alone_of(summary, tuned.base, contenders[i + 1], tried[i]));
    std::ranges::stable_sort(tuned.alone, std::greater<>{},
                             [](const Alone& a) { return a.gain.value_or(0); });
    const Row* row = row_of(summary, tuned.base.id);
    if (timed(row)) return Done{};
    if (row != nullptr && row->waits)
      tuned.untried = "the time ended before it was raced";
    else
      tuned.failure = row != nullptr && row->failure ? row->failure->reason : "it could not be timed";
    return Done{};
  }

  // What gains alone, the best value of each setting.
  static std::vector<Change> worth_combining(const Tuned& tuned) {
    std::vector<Change> good;
    std::set<std::string> settings;
    for (const Alone& alone : tuned.alone)
      if (alone.gain.value_or(0) > kWorthCombining && settings.insert(alone.change.setting).second)
        good.push_back(alone.change);
    return good;
  }

  // All of it is raced together, and the best alone.
  Status try_together(const std::vector<Change>& good, Tuned& tuned) {
    std::vector<std::vector<Change>> all = {{}, {good[0]}};
    if (good.size() > 2) all.push_back({good[0], good[1]});
    if (good.size() > 1) all.push_back(good);
    std::vector<recipe::Contender> contenders;
    for (const auto& some : all) contenders.push_back(contender(tuned, some));
    TRY(const Summary summary, race(tuned, contenders, "together", kTogetherShare));
    const size_t best = simplest_best(summary, contenders, all);
    tuned.changes = all[best];
    tuned.best = contenders[best];
    const Row *as_is = row_of(summary, tuned.base.id), *row = row_of(summary, tuned.best.id);
    if (best > 0 && timed(as_is) && timed(row)) {
      const double by = row->ratio.value;
      tuned.gain = {as_is->ratio.value / by, as_is->ratio.low / by, as_is->ratio.high / by};
    }
    return Done{};
  }

  const recipe::Recipe& recipe_;
  const Machine& machine_;
  Time& time_;
  run::Races& races_;
  const std::filesystem::path& folder_;
  const Progress& progress_;
};

// One contender of each framework and each of its named settings (a backend), as the recipe states it first.
std::vector<recipe::Contender> bases_of(const recipe::Recipe& recipe) {
  std::vector<recipe::Contender> bases;
  std::set<std::string> seen;
  for (const recipe::Contender& c : recipe.contenders) {
    std::string kind = c.framework + "\n" + c.script.string() + "\n" + emit::precision_group(c.settings);
    for (const emit::Setting& s : framework_of(c).settings)
      if (s.always_named) kind += "\n" + value_of(c, s.name);
    if (seen.insert(kind).second) bases.push_back(c);
  }
  return bases;
}

// The workload as one plain program, where the recipe does not name it and it can be one.
std::optional<recipe::Contender> limit_of(const recipe::Recipe& recipe, double minutes) {
  if (minutes < kLeastForLimit || !recipe.training.equalised()) return {};
  const ir::Scenario scenario = recipe.training.scenario;
  for (const emit::Framework* framework : emit::frameworks())
    if (framework->limit && emit::can(*framework, scenario) &&
        emit::check_supported(*framework, recipe.workload) &&
        std::ranges::count(recipe.contenders, framework->name, &recipe::Contender::framework) == 0)
      return recipe::emitted_contender(scenario, *framework, {}, {});
  return {};
}

}  // namespace

const Row* winner(const Summary& best) {
  for (const Row& row : best.ranked)
    if (!is_native(row.contender.framework)) return &row;
  return best.ranked.empty() ? nullptr : &best.ranked[0];
}

Result<Outcome> tune(const recipe::Recipe& recipe, const Machine& machine, double minutes, run::Races& races,
                     const std::filesystem::path& folder, const Progress& progress) {
  Outcome outcome;
  const std::vector<recipe::Contender> bases = bases_of(recipe);
  const auto searched = static_cast<size_t>(
      std::ranges::count_if(bases, [](const recipe::Contender& base) { return !is_native(base.framework); }));
  // Of no framework is the search begun that has too little time for anything: it races as the recipe states it.
  const size_t most =
      std::clamp<size_t>(static_cast<size_t>(minutes / kLeastSearch), 1, std::max<size_t>(1, searched));
  const std::string short_of = fmt::format(
      "in {:g} min {} of {} frameworks can be searched, all of them in about {:g} min (--minutes)", minutes,
      most, searched, kLeastSearch * static_cast<double>(searched));
  if (most < searched) progress(short_of);
  const auto count = static_cast<double>(most);
  const double last = count * (searched > 1 ? kBestShare : kBestShare / 2);
  Time time(minutes, count * (kAloneShare + kTogetherShare) + last);
  Search search(recipe, machine, time, races, folder, progress);
  double longest_s = 0;  // search so far
  size_t begun = 0;
  for (const recipe::Contender& base : bases) {
    if (is_native(base.framework)) {
      outcome.tuned.push_back({.base = base, .best = base, .untried = "it is the limit, which is not tuned"});
      continue;
    }
    std::string untried = begun++ >= most ? short_of : "";
    if (untried.empty() && time.left_s() < kSearchAndLast * longest_s)
      untried = fmt::format("a search takes up to {} here, {} were left (--minutes)",
                            table::duration(1e3 * longest_s), table::duration(1e3 * time.left_s()));
    if (!untried.empty()) {
      outcome.tuned.push_back({.base = base, .best = base, .untried = untried});
      continue;
    }
    const int64_t begin = monotonic_clock().now_ns();
    TRY(Tuned tuned, search.run(base));
    longest_s = std::max(longest_s, seconds_since(begin));
    outcome.tuned.push_back(std::move(tuned));
    if (proc::interrupted()) return outcome;
  }
  recipe::Recipe best = recipe;
  best.contenders.clear();
  for (const Tuned& tuned : outcome.tuned)
    if (tuned.failure.empty()) best.contenders.push_back(tuned.best);
  if (auto limit = limit_of(recipe, minutes); limit && !best.contenders.empty())
    best.contenders.push_back(std::move(*limit));
  if (best.contenders.empty())
    return Error{.message = "no contender could be raced: " + outcome.tuned[0].failure};
  best.budget.minutes = time.take(last);
  progress(fmt::format("best against best: {}", table::counted(std::ssize(best.contenders), "contender")));
  TRY(outcome.best, races.race(best, folder / "best"));
  return outcome;
}

}  // namespace bakeoff::tune
