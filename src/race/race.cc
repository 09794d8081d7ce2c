#include "race/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "evidence/groups.h"
#include "evidence/host_rounds.h"
#include "evidence/machine_use.h"
#include "machine/host.h"
#include "plan/lane.h"
#include "proc/interrupt.h"
#include "race/outlook.h"
#include "records/machine_report.h"
#include "roofline/measure.h"
#include "sample/machine_limits.h"
#include "stats/burst_plan.h"
#include "stats/racing.h"
#include "stats/trimmed.h"
#include "table/numbers.h"

namespace bakeoff {
namespace {

constexpr size_t kLoneHeats = 3;
constexpr int64_t kHeatsAudited = 2;  // of a contender in any case
constexpr int kMostLooks =
    4;  // at a contender that looks hopeless on a noisy host; then it is timed like the others
constexpr int64_t kBytesPerWorker = int64_t{3} << 29;  // 1.5 GiB, which a worker may need

// Whether no process of this run had compiled the contender's step before: neither the gate's nor a heat's.
bool first_of_its_kind(const Trial& trial, const std::vector<Trial>& before,
                       const std::vector<Parity>& parities) {
  const auto same = [&](const auto& record) { return record.contender == trial.contender; };
  const auto proof = std::find_if(parities.begin(), parities.end(), same);
  return std::none_of(before.begin(), before.end(), same) &&
         (proof == parities.end() || proof->first_step_cold_ns == 0);
}

}  // namespace

std::vector<size_t> eligible(const Plan& plan, const std::vector<Parity>& parities) {
  std::vector<size_t> lanes;
  for (size_t i = 0; i < plan.lanes.size(); ++i) {
    if (plan.lanes[i].failure) continue;
    const auto proof = std::find_if(parities.begin(), parities.end(), [&](const Parity& p) {
      return p.contender == plan.manifest.contenders[i].id;
    });
    if (proof == parities.end() || proof->failure) continue;
    if (plan.recipe.training.track == ir::Track::kAsIs || proof->passed()) lanes.push_back(i);
  }
  return lanes;
}

std::vector<size_t> left_after_the_race(const Plan& plan, const std::vector<Parity>& parities,
                                        const std::vector<Trial>& trials) {
  std::vector<size_t> lanes = eligible(plan, parities);
  const std::set<std::string> out = failed_in(trials);
  std::erase_if(lanes, [&](size_t lane) { return out.contains(plan.manifest.contenders[lane].id); });
  return lanes;
}

Status check_budget(const recipe::Recipe& recipe) {
  const size_t k = recipe.contenders.size();
  if (k < 2) return Done{};
  const int64_t least = least_heats(recipe.alpha, k);
  if (recipe.budget.heats < least) {
    return Error{.message = fmt::format(
                     "a budget of {} heats cannot decide anything between {} contenders at alpha = {:g}",
                     recipe.budget.heats, k, recipe.alpha),
                 .where = recipe::where(recipe, "budget", "heats"),
                 .remedy = fmt::format("allow at least {} heats, or race fewer contenders", least)};
  }
  // Only the bursts; starting the workers takes more time.
  const int64_t bursts = recipe.race.bursts > 0 ? recipe.race.bursts : stats::kFewestRounds;
  const double burst_s = recipe.race.burst_seconds > 0 ? recipe.race.burst_seconds : kShortestAudited;
  const double minutes =
      static_cast<double>(least) * static_cast<double>(bursts) * burst_s * static_cast<double>(k) / 60;
  if (recipe.budget.minutes < minutes) {
    return Error{
        .message = fmt::format("a budget of {} cannot decide: {} heats of {} contenders time bursts for {}",
                               table::duration(60e3 * recipe.budget.minutes), least, k,
                               table::duration(60e3 * minutes)),
        .where = recipe::where(recipe, "budget", "minutes"),
        .remedy = fmt::format("allow more than {}, or shorten race.bursts or race.burst_seconds",
                              table::duration(60e3 * minutes))};
  }
  return Done{};
}

namespace {

// The bounds of this run's trials: a trial that breaks one is stored as invalid, and its contender is out.
std::map<std::string, TrialBounds> bounds_in(const Plan& plan, const std::vector<Parity>& parities) {
  std::string ignored;  // why limits are not used; the report shows that
  const auto machine = machine_of_run(plan.directory.path(), plan.manifest.host, ignored);
  const auto peak = run_peak(plan.directory.path(), plan.manifest.host);
  return bounds_of(plan.manifest, parities, plan.recipe.workload, plan.recipe.training,
                   machine ? &*machine : nullptr, peak ? &*peak : nullptr);
}

// FLOP/s always have a limit: a run without a usable machine report measures the peak of the CPUs that it
// races on.
Status measure_peak_of_run(const Plan& plan, const Sensed& sensed) {
  std::string ignored;
  const std::filesystem::path& run = plan.directory.path();
  const auto machine = machine_of_run(run, plan.manifest.host, ignored);
  if ((machine && machine->disturbed.empty()) || run_peak(run, plan.manifest.host)) return Done{};
  std::set<int> cpus;
  for (const Lane& lane : plan.lanes)
    cpus.insert(lane.entry.worker.cpus.begin(), lane.entry.worker.cpus.end());
  const bool everywhere = std::any_of(plan.lanes.begin(), plan.lanes.end(),
                                      [](const Lane& lane) { return lane.entry.worker.cpus.empty(); });
  if (cpus.empty() || everywhere) {
    for (const int cpu : sample::allowed_cpus()) cpus.insert(cpu);
  }
  const std::vector<int> over(cpus.begin(), cpus.end());
  const roofline::Limits limits = sensed.measure_peak
                                      ? sensed.measure_peak(over)
                                      : roofline::measure_bounds({.cpus = over, .stop = proc::interrupted});
  // Only a whole measurement bounds a contender: of one that was cut short, the peak may be the scalar loop's.
  if (proc::interrupted()) return Done{};
  return keep_run_peak(run, plan.manifest.host, limits);
}

// Contenders that cannot race.
size_t refused_in(const Plan& plan, const std::vector<Parity>& parities) {
  const auto failed =
      std::ranges::count_if(plan.lanes, [](const Lane& lane) { return lane.failure.has_value(); });
  return static_cast<size_t>(failed) + parities.size() - eligible(plan, parities).size();
}

// The race of one group of contenders (evidence/groups.h), between two heats.
class GroupRace {
 public:
  // `trials`: of the whole run; heats are numbered over the run. `seconds`: time of this group; `left_s`:
  // time of this group and of those after it.
  GroupRace(const Plan& plan, const std::vector<Parity>& parities, const Group& group, double seconds,
            double left_s, const std::vector<Trial>& trials, Heats* heats)
      : plan_(plan),
        heats_(heats),
        parities_(parities),
        bounds_(bounds_in(plan, parities)),
        lanes_(group.members),
        alpha_(group.alpha),
        time_(seconds),
        all_time_(left_s),
        refused_(refused_in(plan, parities)) {
    for (const size_t lane : lanes_) contenders_.push_back(plan.manifest.contenders[lane].id);
    std::set<int> numbers;
    for (const Trial& trial : mark_broken(trials, bounds_)) {
      last_number_ = std::max(last_number_, trial.heat);
      if (std::find(contenders_.begin(), contenders_.end(), trial.contender) == contenders_.end()) continue;
      numbers.insert(trial.heat);
      trials_.push_back(trial);
    }
    heat_ = static_cast<int>(numbers.size());
    if (!trials_.empty()) last_heat_s_ = static_cast<double>(trials_.back().heat_ns) / 1e9;
  }

  // Trials of heats that were run.
  std::vector<Trial> take_fresh() { return std::move(fresh_); }

  // A short heat: others wait for their proofs.
  Status run_first(const Watch& watch) {
    TRY(stats::Heat next, decide());
    if (next.members.empty()) return Done{};
    CHECK_OK(run_one(next, watch, HeatPlan{.rounds = stats::kFewestRounds}));
    TRY(next, decide());
    tell_standing(next, watch);
    return Done{};
  }

  // The next wave, as orders; none: everything is decided and confirmed, or the budget's heats are run.
  Result<std::vector<HeatOrder>> wave(size_t most) {
    TRY(const stats::Heat first, decide());
    std::vector<stats::Heat> heats =
        next_wave(table_, state_, known_, confirmed_heats(trials_), options_, most);
    if (heats.empty() && !first.members.empty()) heats = {first};
    const int64_t left = plan_.recipe.budget.heats - heat_;
    if (left < static_cast<int64_t>(heats.size()))
      heats.resize(static_cast<size_t>(std::max<int64_t>(0, left)));
    std::vector<HeatOrder> orders;
    for (const stats::Heat& heat : heats) orders.push_back(order_of(heat, plan_of(heat)));
    return orders;
  }

  Status run(const Watch& watch) {
    while (!proc::interrupted()) {
      TRY(stats::Heat next, decide());
      tell_standing(next, watch);
      if (heat_ >= plan_.recipe.budget.heats || next.members.empty()) break;
      if (heat_ > 0) next.members = those_that_fit(next.members, watch);  // the first heat is run in any case
      if (next.members.empty()) break;
      if (plan_.recipe.budget.until_decided && hardly_decides()) break;
      CHECK_OK(run_one(next, watch, plan_of(next)));
    }
    return Done{};
  }

 private:
  // The policy's decision from the current records.
  Result<stats::Heat> decide() {
    TRY(table_, tabulate(trials_, contenders_, plan_.recipe.margin));
    stats::RacingOptions& options = options_;
    options = racing_options(plan_.recipe, trials_, contenders_);
    options.ranking.alpha = alpha_;
    if (const int64_t memory = sample::available_memory_bytes(); memory > 0)
      options.live = std::clamp<size_t>(static_cast<size_t>(memory / kBytesPerWorker), 2, options.live);
    state_ = stats::race_state(table_, options.ranking);
    if (options.ranking.about == stats::About::kTheirKind) CHECK_OK(leave_what_only_other_nodes_decide());
    known_ = contender_states(trials_, parities_, contenders_, plan_.recipe.margin);
    stats::Heat next = next_heat(table_, state_, known_, confirmed_heats(trials_), options);
    if (next.members.empty() && tally(trials_).needs_more(plan_.recipe.race.host)) {
      // Everything is decided, but too few rounds were judged to know whether the host was quiet.
      options.confirm_heats = confirmed_heats(trials_) + 1;
      next = next_heat(table_, state_, known_, confirmed_heats(trials_), options);
    }
    if (next.members.empty()) next.members = lone_member();
    return next;
  }

  // See stats::leave_to_these_nodes.
  Status leave_what_only_other_nodes_decide() {
    std::map<int, int> node_of_heat;
    std::map<std::string, int> nodes;
    for (const Trial& trial : trials_)
      node_of_heat[trial.heat] = nodes.emplace(trial.node, static_cast<int>(nodes.size())).first->second;
    std::vector<int> numbers, ran_on;
    for (const auto& [heat, node] : node_of_heat) numbers.push_back(heat), ran_on.push_back(node);
    const size_t first = stats::earliest_of(ran_on);
    if (first == 0) return Done{};
    std::vector<Trial> trials = trials_;
    std::erase_if(trials, [&](const Trial& trial) { return trial.heat >= numbers[first]; });
    TRY(const stats::PairTable table, tabulate(trials, contenders_, plan_.recipe.margin));
    stats::RankingOptions options = options_.ranking;
    options.about = stats::About::kTheseNodes;
    stats::leave_to_these_nodes(state_, stats::race_state(table, options));
    return Done{};
  }

  double expected_s(const std::vector<size_t>& members) const {
    return expected_heat_s(trials_, ids(members));
  }

  // The members of another heat that ends within the budget. If it does not hold all: the leader and those that had
  // no heat yet, contenders without settings first; none if it holds no two.
  std::vector<size_t> those_that_fit(const std::vector<size_t>& members, const Watch& watch) const {
    const double left_s = time_.left_s();
    if (expected_s(members) <= left_s) return members;
    std::vector<size_t> waiting, chosen;
    for (const size_t m : members) {
      if (m == state_.leader)
        chosen.push_back(m);
      else if (times_of(contenders_[m]).empty())
        waiting.push_back(m);
    }
    std::ranges::stable_partition(
        waiting, [&](size_t m) { return plan_.manifest.contenders[lanes_[m]].settings.empty(); });
    for (const size_t m : waiting) {
      chosen.push_back(m);
      if (expected_s(chosen) > left_s) chosen.pop_back();
    }
    if (chosen.size() >= 2) {
      std::ranges::sort(chosen);
      return chosen;
    }
    if (fresh_.empty()) {
      Happening said;
      said.remark = fmt::format("no further heat: one takes about {}; the budget has {}",
                                table::duration(1e3 * expected_s(members)),
                                left_s < 1 ? "ended" : table::duration(1e3 * left_s) + " left");
      watch(said);
    }
    return {};
  }

  std::vector<std::string> ids(const std::vector<size_t>& members) const {
    std::vector<std::string> all;
    for (const size_t m : members) all.push_back(contenders_[m]);
    return all;
  }

  // After every heat, for the display.
  void tell_standing(const stats::Heat& next, const Watch& watch) {
    if (fresh_.empty() || !state_.leader) return;
    outlook_ = outlook(plan_.recipe, trials_, contenders_, alpha_);
    Happening now = happening(next);
    Standing& standing = now.standing.emplace();
    standing.decided = next.phase != stats::Phase::kRace;
    if (fresh_.back().confirms) now.stage = "confirmation";
    if (outlook_) {
      const Rival& rival = outlook_->rivals.front();
      standing = {rival.contender, rival.ratio.value, rival.ratio.low, rival.ratio.high, rival.slower};
      standing.to_go_at_least = outlook_->rest && outlook_->rest->more;
    }
    if (!next.members.empty()) standing.to_go_s = expected_rest_s(next);
    const HostTally host = tally(trials_);
    standing.busy = host.busy;
    standing.judged = host.judged;
    standing.refused = host.busy_throughout(plan_.recipe.race.host);
    watch(now);
  }

  // Whether the race is planned to take longer than the whole budget, by enough heats to say so.
  bool hardly_decides() const {
    constexpr size_t kTellingHeats = 6;
    if (!outlook_ || !outlook_->rest) return false;
    const auto telling = [](const Rival& rival) { return rival.heats >= kTellingHeats; };
    return (outlook_->rest->more || outlook_->rest->seconds > 60 * plan_.recipe.budget.minutes) &&
           std::all_of(outlook_->rivals.begin(), outlook_->rivals.end(), telling);
  }

  // One contender is left without a rival, and has not run often enough to have a reported time.
  std::vector<size_t> lone_member() const {
    std::vector<size_t> left;
    for (size_t i = 0; i < known_.size(); ++i) {
      if (!known_[i].out) left.push_back(i);
    }
    if (left.size() != 1) return {};
    return times_of(contenders_[left[0]]).size() < kLoneHeats ? left : std::vector<size_t>{};
  }

  std::vector<double> times_of(const std::string& id) const { return heat_times_ms(trials_, id); }

  double leader_step_s() const {
    return state_.leader ? stats::median(times_of(contenders_[*state_.leader])) / 1e3 : 0;
  }

  // Heats that ended at a contender's first steps.
  int looks_at(const std::string& id) const {
    return static_cast<int>(std::count_if(trials_.begin(), trials_.end(), [&](const Trial& trial) {
      return trial.contender == id && !trial.dropped.empty();
    }));
  }

  // Latest end of the last group's race, in seconds from now. Nothing if only heats are limited and none
  // has run yet.
  std::optional<double> time_left() const {
    const recipe::Budget& budget = plan_.recipe.budget;
    if (budget.until_decided) return std::nullopt;
    if (!budget.unlimited_time()) return all_time_.left_s();
    if (last_heat_s_ == 0) return std::nullopt;
    return last_heat_s_ * static_cast<double>(budget.heats - heat_ + 1);
  }

  // Seconds until this group and those after it are decided and confirmed, as expected: with two heats of the pairs
  // their outlook says it, before that the fewest heats that decide. Nothing before the first heat.
  std::optional<double> expected_rest_s(const stats::Heat& next) const {
    if (last_heat_s_ == 0) return std::nullopt;
    const auto confirmed = static_cast<double>(confirmed_heats(trials_));
    double heats = std::max(0.0, static_cast<double>(options_.confirm_heats) - confirmed), seconds = 0;
    if (next.phase == stats::Phase::kRace && outlook_ && outlook_->rest)
      seconds = outlook_->rest->seconds;
    else if (next.phase == stats::Phase::kRace)
      heats += static_cast<double>(std::max<int64_t>(1, least_heats(alpha_, contenders_.size()) - heat_));
    const double groups = plan_.recipe.budget.unlimited_time() ? 1 : all_time_.seconds() / time_.seconds();
    return groups * (seconds + heats * last_heat_s_);
  }

  Happening happening(const stats::Heat& next) const {
    const auto out = static_cast<int>(
        std::count_if(known_.begin(), known_.end(), [](const stats::ContenderState& e) { return e.out; }));
    Happening now{.stage = next.phase == stats::Phase::kConfirm ? "confirmation" : "race",
                  .heat = heat_,
                  .survivors = static_cast<int>(contenders_.size() - state_.eliminated.size()) - out,
                  .contenders = static_cast<int>(plan_.lanes.size()),
                  .failed = static_cast<int>(refused_) + out};
    now.left_s = time_left();
    const auto proven = [&](const Lane& lane) {
      return lane.failure || std::ranges::any_of(parities_, [&](const Parity& parity) {
               return parity.contender == lane.entry.contender.id;
             });
    };
    now.unproven = static_cast<int>(plan_.lanes.size() - std::ranges::count_if(plan_.lanes, proven));
    if (state_.leader) {
      now.leader = contenders_[*state_.leader];
      now.leader_ms = stats::median(times_of(now.leader));
    }
    return now;
  }

  // A heat that begins.
  Happening about(const stats::Heat& next) const {
    Happening now = happening(next);
    if (last_heat_s_ > 0) now.heat_left_s = last_heat_s_;
    return now;
  }

  // Seconds from starting a lane to its first step, in the last heat that it had.
  std::map<size_t, double> starts(const std::vector<size_t>& lanes) const {
    std::map<size_t, double> all;
    for (const Trial& trial : trials_) {
      for (const size_t lane : lanes) {
        if (plan_.manifest.contenders[lane].id == trial.contender && trial.start_up_ns > 0)
          all[lane] = static_cast<double>(trial.start_up_ns) / 1e9;
      }
    }
    return all;
  }

  // Of one comparison, among the contenders that are still open.
  double pair_alpha() const {
    size_t open = 0;
    for (size_t i = 0; i < known_.size(); ++i) open += !known_[i].out && !state_.standings[i].eliminated_by;
    return alpha_ / static_cast<double>(stats::comparisons(open));
  }

  // The next heat as an order.
  HeatOrder order_of(const stats::Heat& next, const HeatPlan& heat_plan) {
    HeatOrder order{.number = ++last_number_, .plan = heat_plan, .left_s = time_.left_s()};
    for (const size_t m : next.members) {
      order.members.push_back(lanes_[m]);
      const auto seen = std::count_if(trials_.begin(), trials_.end(), [&](const Trial& t) {
        return t.contender == contenders_[m] && !t.audits.empty();
      });
      if (seen >= kHeatsAudited) order.audited.insert(lanes_[m]);
      if (!times_of(contenders_[m]).empty() || looks_at(contenders_[m]) >= kMostLooks)
        order.timed.insert(lanes_[m]);
    }
    // Starting is mostly importing and compiling on one core, so members start two at a time; one at a time in
    // the heats that measure the winner again: start-up times without contention, held against our clock.
    order.confirms = next.phase == stats::Phase::kConfirm;
    order.at_once = order.confirms ? 1 : 2;
    order.start_s = starts(order.members);
    order.bases_first = heat_ == 0;
    order.leader_step_s = leader_step_s();
    order.race_s = heats_s_;
    order.audits_s = audits_s_;
    return order;
  }

  HeatPlan plan_of(const stats::Heat& next) const {
    return plan_heat(plan_.recipe, trials_, contenders_, state_, next, pair_alpha());
  }

  Status run_one(const stats::Heat& next, const Watch& watch, const HeatPlan& heat_plan) {
    const HeatOrder order = order_of(next, heat_plan);
    ++heat_;
    const int64_t begin = monotonic_clock().now_ns();
    TRY(HeatResult fresh, heats_->run(plan_, order, watch, about(next)));
    last_heat_s_ = seconds_since(begin);
    heats_s_ += last_heat_s_;
    audits_s_ += fresh.audits_s;
    if (proc::interrupted()) return Done{};  // a heat cut short is void
    for (Trial& trial : mark_broken(std::move(fresh.trials), bounds_)) {
      trial.cold = first_of_its_kind(trial, trials_, parities_);
      CHECK_OK(plan_.directory.append(trial));
      fresh_.push_back(trial);
      trials_.push_back(std::move(trial));
    }
    return Done{};
  }

  const Plan& plan_;
  Heats* heats_;  // null: only orders are asked for
  const std::vector<Parity>& parities_;
  std::map<std::string, TrialBounds> bounds_;
  std::vector<size_t> lanes_;
  std::vector<std::string> contenders_;  // ids; the policy's indices are positions in these two
  std::vector<Trial> trials_;
  stats::PairTable table_ = stats::PairTable(0);
  stats::RacingOptions options_ = {};
  stats::Race state_;
  std::optional<Outlook> outlook_;
  std::vector<stats::ContenderState> known_;
  double alpha_ = 0;
  TimeBudget time_, all_time_;  // of this group; of this group and of those after it
  size_t refused_ =
      0;  // in all groups: not installed, or not proven; contenders without a proof yet are none
  std::vector<Trial> fresh_;
  int heat_ = 0;         // of this group
  int last_number_ = 0;  // of the run's last heat
  double last_heat_s_ = 0;
  double heats_s_ = 0, audits_s_ = 0;  // all heats; of them the audits
};

}  // namespace

HeatsHere::HeatsHere(const Sensed& sensed, std::optional<AuditGround> audit)
    : sensed_(sensed), audit_(std::move(audit)) {}

Result<std::unique_ptr<HeatsHere>> HeatsHere::open(const Plan& plan, const Sensed& sensed) {
  std::optional<AuditGround> audit;
  if (can_audit(plan.gate.workload, plan.gate.training)) {
    TRY(audit, make_audit_ground(plan.gate.workload, plan.gate.training, plan.gate.data, plan.gate.rows,
                                 initial_weights(plan)));
  }
  return std::unique_ptr<HeatsHere>(new HeatsHere(sensed, std::move(audit)));
}

Result<HeatResult> HeatsHere::run(const Plan& plan, const HeatOrder& order, const Watch& watch,
                                  const Happening& happening) {
  return run_heat(plan, order, sensed_, watch, happening, audit_ ? &*audit_ : nullptr);
}

namespace {

// Who runs the heats: the one that the context names, else this process, for which `here` is opened.
Result<Heats*> heats_of(const Plan& plan, const RaceContext& with, std::unique_ptr<HeatsHere>& here) {
  if (with.heats != nullptr) return with.heats;
  TRY(here, HeatsHere::open(plan, with.sensed));
  return static_cast<Heats*>(here.get());
}

}  // namespace

Status race(const Plan& plan, const std::vector<Parity>& parities, std::vector<Trial> trials,
            const RaceContext& with) {
  CHECK_OK(measure_peak_of_run(plan, with.sensed));
  std::vector<Group> groups =
      groups_of(plan.manifest.contenders, eligible(plan, parities), plan.recipe.alpha);
  double left_s = with.time.left_s();
  size_t left = 0;
  for (const Group& group : groups) left += group.members.size();
  std::unique_ptr<HeatsHere> here;
  TRY(Heats* const heats, heats_of(plan, with, here));
  for (const Group& group : groups) {
    // Time is divided by the number of contenders; later groups get what a group leaves.
    const double seconds =
        left_s * static_cast<double>(group.members.size()) / static_cast<double>(std::max<size_t>(1, left));
    const int64_t begin = monotonic_clock().now_ns();
    GroupRace group_race(plan, parities, group, seconds, left_s, trials, heats);
    CHECK_OK(group_race.run(with.watch));
    if (proc::interrupted()) break;
    for (Trial& trial : group_race.take_fresh()) trials.push_back(std::move(trial));
    left_s = std::max(0.0, left_s - seconds_since(begin));
    left -= group.members.size();
  }
  return Done{};
}

Status first_heat(const Plan& plan, const std::vector<Parity>& parities, const RaceContext& with) {
  std::vector<Group> groups =
      groups_of(plan.manifest.contenders, eligible(plan, parities), plan.recipe.alpha);
  std::erase_if(groups, [](const Group& group) { return group.members.size() < 2; });
  if (groups.empty()) return Done{};
  CHECK_OK(measure_peak_of_run(plan, with.sensed));
  std::unique_ptr<HeatsHere> here;
  TRY(Heats* const heats, heats_of(plan, with, here));
  const double seconds = with.time.left_s();
  for (const Group& group : groups) {
    GroupRace race(plan, parities, group, seconds, seconds, {}, heats);
    CHECK_OK(race.run_first(with.watch));
  }
  return Done{};
}

Result<std::vector<HeatOrder>> next_wave(const Plan& plan, const std::vector<Parity>& parities,
                                         const std::vector<Trial>& trials, size_t most, int last) {
  const std::vector<Group> groups =
      groups_of(plan.manifest.contenders, eligible(plan, parities), plan.recipe.alpha);
  size_t members = 0;
  for (const Group& group : groups) members += group.members.size();
  std::vector<HeatOrder> wave;
  for (const Group& group : groups) {
    GroupRace race(plan, parities, group, TimeBudget::kNoLimit, TimeBudget::kNoLimit, trials, nullptr);
    TRY(std::vector<HeatOrder> orders, race.wave(std::max<size_t>(1, most * group.members.size() / members)));
    for (HeatOrder& order : orders) {
      order.number = ++last;
      wave.push_back(std::move(order));
    }
  }
  return wave;
}

std::vector<Trial> as_kept(const Plan& plan, const std::vector<Parity>& parities, std::vector<Trial> trials,
                           const std::string& node, const MachineReport& peak) {
  for (Trial& trial : trials) trial.node = node;
  return mark_broken(std::move(trials), bounds_of(plan.manifest, parities, plan.recipe.workload,
                                                  plan.recipe.training, nullptr, &peak));
}

}  // namespace bakeoff
