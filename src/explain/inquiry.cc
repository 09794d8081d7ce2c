// An answer has to come within the seconds that the user gave, and starting a script often costs more than
// all of its bursts. So suspects are not tried one after another. One heat has a lane for the script, one for
// the other script and one for each suspect's switch, and a suspect that gains nothing in the first heat is
// dropped. The others are tried again while there is time.
//
// One process says little: two starts of the same script differ by about 1% on a quiet machine, and by far
// more beside other work (kRestart, kBusyRestart). So the first heat confirms only what is glaring, and
// unless each of its rounds had fresh processes, what it saw does not count later: it has chosen what is
// tried again, and would flatter it.
//
// The passes of run() depend on each other. A cause that takes most of the time hides the others, so these
// are tried again without it. What both scripts do explains the gap only by what the first one loses more.
// Gains do not add up, so the confirmed causes are also switched together. What no heat decided is named by
// the time that the observed run spent on it, as long as the causes before it leave a part of the gap open.

#include "explain/inquiry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/texts.h"
#include "explain/words.h"
#include "proc/interrupt.h"
#include "stats/e_process.h"
#include "stats/trimmed.h"
#include "stats/verdict.h"

namespace bakeoff::explain {
namespace {

constexpr size_t kMostSuspects = 8;
constexpr size_t kMostTried = 14;  // when tuning
constexpr size_t kMostShared = 4;
constexpr int kMostHeats = 5;  // heats that decide the suspects, besides the first
constexpr int kTogetherHeats = 2;
constexpr int kHiddenHeats = 3;        // heats that try suspects again without the greatest causes
constexpr int kSharedHeats = 3;        // heats that try suspects of both scripts
constexpr double kHidesOthers = 1.25;  // a cause with a larger gain may hide others
constexpr double kMuchMore = 1.2;      // the first script's ceiling over the second's: they are not the same
constexpr double kGlaring = 1.5;       // a larger gain is confirmed by the first heat alone
constexpr double kPlain = 1.1;         // and by one further heat; restarts may differ by less
constexpr double kEpochSeconds = 3;    // of an epoch: bursts take whole ones if they are shorter
constexpr double kPeriodSeconds = 8;   // between long steps: bursts take all between two if it is shorter
constexpr const char* kNotAlone = "a copy with these lines of the other script alone does not run: ";
constexpr double kPrior = 0.25;    // typical size of a gain or a gap, log scale
constexpr double kRestart = 0.01;  // sd of one process of a script, log scale, until heats show it
constexpr double kBusyRestart =
    0.15;  // the same beside other work: an equal pair was 1.8 times apart in one heat
// A promise for a quiet machine: at most one burst of a hundred is off by more than a factor of 4 (its logarithm stands
// here). Two rounds that are both off happen once in 10,000 pairs of rounds; so what all rounds have beyond it is a bound.
constexpr double kWild = 1.39;
constexpr double kWildRun = 0.69;  // the same of a whole run, in which a stall is a small part: a factor of 2
constexpr double kGivesWay = 0.7;  // a special cause with this share of a general one's gain replaces it
constexpr int64_t kMostRounds = 40, kFewestRuns = 4, kMostRuns = 8;  // rounds of a heat: bursts, whole runs
constexpr int64_t kFewestLate = 2;  // rounds that a heat makes when the time is over
// The observed run over later ones: a larger ratio is said.
constexpr double kFirstRun = 1.5;
constexpr double kLatest =
    1.1;  // no heat of all confirmed causes begins after this multiple of the seconds asked for
constexpr double kLatestSeconds = 5;   // and so much later
constexpr double kSeenOnce = 2;        // a larger gap of whole runs is said though each was observed once
constexpr double kRunStart = 0.5;      // s from the start of a process until Python runs the script
constexpr int64_t kEnoughSteps = 200;  // a script that ends after more steps gets shorter bursts
constexpr int64_t kStepsOfRound = 8;   // fewest steps of a round of a script that ends
constexpr int64_t kNoBursts = 40;      // a script that ends after no more steps gets no bursts
constexpr double kGlaringGap = 4;      // a heat with a larger gap may end before its last round
constexpr double kSmallPart =
    0.25;  // what explains a smaller part of a gap, or of its logarithm, is no main cause of it
constexpr double kSeenGap = 3,
                 kSeenQuiet = 1.6;    // larger gaps are said, with what is booked, though no heat is certain
constexpr double kObvious = 2;        // a larger gain is confirmed as soon as the first heat has ended
constexpr double kLeastBooked = 0.1;  // smallest share of the observed time that names a cause
constexpr double kNearlyAll =
    0.95;  // booked share that explains all: the rest, of a gap of 3,000, may be an error of the books
constexpr double kMostOfGap = 0.7, kAllOfGap = 0.85;  // shares of its logarithm
constexpr double kRoundsApart = 3;     // rounds of fresh processes that can make a gap of 2 certain
constexpr double kBurstsS = 2;         // s that a lane's bursts take in a heat, about, besides its start
constexpr double kNothingLeft = 1.08;  // a gap less than this above its causes' gains is explained

// Largest relative difference of the losses of equal steps; absent without such steps.
std::optional<double> loss_change(const std::vector<double>& one, const std::vector<double>& other) {
  std::optional<double> worst;
  for (size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    const double change = std::abs(one[i] - other[i]) / std::max(std::abs(one[i]), 1e-30);
    if (std::isfinite(change)) worst = std::max(worst.value_or(0), change);
  }
  return worst;
}

// From the start of Python until the first steps are made.
double start_seconds(const Profile& p) {
  double all = 0;
  for (const Phase& phase : p.phases)
    if (phase.key == "imports" || phase.key == "set_up") all += phase.seconds;
  return all;
}

double epoch_seconds(const Profile& p) { return p.epoch_steps * p.step_s + p.epoch_start_s; }

// Whether bursts take whole epochs, because what happens between them counts and they are short enough.
bool whole_epochs(const Subject& s) {
  const Profile& p = s.profile;
  const bool counts = s.seen.kind == "fit" || p.epoch_start_s > kMargin * epoch_seconds(p);
  return p.epoch_steps > 1 && epoch_seconds(p) < kEpochSeconds && counts;
}

// Samples from one long step to the next, the larger number of the two scripts. 0: steps are alike, or the
// period is longer than a burst should be.
double period_samples(const std::vector<Subject>& subjects) {
  double most = 0;
  for (const Subject& s : subjects)
    if (s.profile.period_s < kPeriodSeconds) most = std::max(most, s.profile.period_steps * s.samples());
  return most;
}

// Whether the second script is suspected of the same, to the same degree, with the same remedy. `first_s` and
// `second_s` are times of a sample: the same share may be a far longer time in one of them.
bool is_shared(const Suspect& suspect, const std::vector<Suspect>& of_second, double first_s,
               double second_s) {
  const double least_s = std::max(0.0, kSmallPart * (first_s - second_s));
  return std::ranges::any_of(of_second, [&](const Suspect& other) {
    const auto &mine = suspect.suspicion.booked, &its = other.suspicion.booked;
    if (mine && its && *mine * first_s > std::max(kMuchMore * *its * second_s, *its * second_s + least_s))
      return false;
    return other.rule == suspect.rule && other.suspicion.value == suspect.suspicion.value &&
           suspect.suspicion.most.value_or(1) < kMuchMore * other.suspicion.most.value_or(1);
  });
}

Switches with(Switches base, const Suspect& suspect) {
  Switches& value = base[suspect.rule->thrown];
  if (suspect.rule->takes_other_lines() && value.is_array())
    value.insert(value.end(), suspect.suspicion.value.begin(), suspect.suspicion.value.end());
  else
    value = suspect.suspicion.value;
  return base;
}

Switches switches_of(const std::vector<Cause*>& causes) {
  Switches all = Switches::object();
  for (const Cause* cause : causes) all = with(std::move(all), cause->suspect);
  return all;
}

// Of one lane in a round, from what was observed of the script without switches.
double burst_seconds(const Lane& lane, const HeatOptions& options) {
  if (options.whole) return lane.whole_s + kRunStart;
  if (options.fresh_steps > 0)
    return lane.start_s + static_cast<double>(options.fresh_steps) * lane.step_with_waits_s;
  return std::max({options.burst_s + lane.step_s, 2 * lane.step_s, lane.epoch_s});
}

}  // namespace

void Differences::add(const LaneHeat& slower, const LaneHeat& faster, bool quiet) {
  const auto found = difference(slower, faster);
  if (!found) return;
  heats_.push_back({found->d, found->variance, found->rounds});
  least_ = heats_.size() == 1 ? found->least : std::min(least_, found->least);
  most_ = heats_.size() == 1 ? found->most : std::max(most_, found->most);
  quiet_ = quiet_ && quiet;
  apart_ = apart_ && slower.apart && faster.apart;
  wild_ = slower.whole && faster.whole ? kWildRun : kWild;
}

std::optional<Estimate> Differences::factor(double alpha) const {
  if (heats_.empty()) return std::nullopt;
  double mean = 0, variance = 0;
  const auto n = static_cast<double>(heats_.size());
  for (const stats::PastHeat& heat : heats_) mean += heat.d / n;
  if (heats_.size() == 1) {
    // With four processes two are on either side, and a slow machine slows both. Where each round has its own
    // processes, the differences of the rounds contain what restarts change.
    const double restart = quiet_ || apart_ || processes_ > 2 ? kRestart : kBusyRestart;
    variance = processes_ * restart * restart + heats_[0].within;
  } else {
    const stats::HeatVariance of = stats::heat_variance(heats_);
    for (const stats::PastHeat& heat : heats_)
      variance += (of.restart + of.round / static_cast<double>(heat.rounds)) / (n * n);
  }
  const double half = stats::known_variance_half_width(variance, kPrior, alpha);
  Estimate factor{std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
  if (quiet_ && least_ > wild_) factor.low = std::max(factor.low, std::exp(least_ - wild_));
  if (quiet_ && most_ < -wild_) factor.high = std::min(factor.high, std::exp(most_ + wild_));
  return factor;
}

LaneHeat gap_of(const LaneHeat& slower, const LaneHeat& faster) {
  LaneHeat gap{.whole = slower.whole && faster.whole,
               .apart = slower.apart && faster.apart,
               .failure = slower.ok() ? faster.failure : slower.failure};
  for (size_t i = 0; i < std::min(slower.bursts.size(), faster.bursts.size()); ++i)
    gap.bursts.push_back(slower.bursts[i] - faster.bursts[i]);
  return gap;
}

Inquiry::Inquiry(const ExplainJob& job, Explanation& out, int64_t begin_ns, const Progress& progress)
    : job_(job), out_(out), progress_(progress), begin_ns_(begin_ns) {}

double Inquiry::seconds() const { return seconds_since(begin_ns_); }

bool Inquiry::time_for_heat(size_t lanes, double share) const {
  return !proc::interrupted() && seconds() + lane_s_ * static_cast<double>(lanes) < share * job_.seconds;
}

void Inquiry::run() {
  find_causes();
  for (const Subject& subject : out_.subjects)
    if (const int64_t steps = subject.seen.steps();
        !subject.whole && subject.seen.ended && steps > kFewestFresh && steps <= kNoBursts)
      compare_first_steps(steps);
  compare_growing_steps();
  confirm();
  confirm_hidden();
  confirm_shared();
  combine();
  book();
  const std::vector<Cause*> named = remaining();
  for (Cause& cause : out_.causes)
    if (cause.finding == Finding::kConfirmed && std::ranges::find(named, &cause) == named.end())
      cause.finding = Finding::kCovered;
  for (Cause& cause : out_.causes)
    if (cause.shared && cause.finding == Finding::kOpen && !cause.measured) cause.finding = Finding::kShared;
}

Lane Inquiry::lane(size_t subject, const std::string& name, Switches switches) const {
  const Subject& of = out_.subjects[subject];
  Lane lane{.name = name,
            .subject = subject,
            .spec = of.spec,
            .switches = std::move(switches),
            .step_s = of.profile.step_s,
            .samples = of.samples(),
            .step_with_waits_s = of.step_with_waits_s(),
            .start_s = start_seconds(of.profile)};
  lane.spec.kind = of.seen.kind;
  if (const auto set = lane.switches.find(kEnvironment); set != lane.switches.end())
    for (const auto& [variable, value] : set->items()) lane.spec.environment[variable] = value;
  if (const auto set = lane.switches.find(kOtherLines); set != lane.switches.end()) {
    Changes all;
    for (const Switches& place : *set) {
      const Changes& some = of.exchanges[place.get<size_t>()];
      all.insert(some.begin(), some.end());
    }
    if (!put_lines(lane, all)) lane.spec.texts.clear();  // find_causes then tries no such switch
  }
  if (of.seen.ended)
    lane.steps_at_most = of.seen.steps();
  else if (steps_at_most_ > 0)
    lane.steps_at_most = steps_at_most_;
  lane.by_step = of.by_step;
  lane.whole_s = of.profile.total_s;
  if (whole_epochs(of)) {
    lane.epoch_samples = of.profile.epoch_steps * of.samples();
    lane.epoch_s = epoch_seconds(of.profile);
  } else if (const double samples = period_samples(out_.subjects); samples > 0) {
    lane.epoch_samples = samples;
    lane.epoch_s = std::max(of.profile.period_s, samples / of.samples() * of.profile.step_s);
  }
  return lane;
}

// Two rules that throw the same switch share a lane; scripts as they are never do.
std::vector<LaneHeat> Inquiry::heat(const std::vector<Lane>& wanted, bool with_second) {
  std::vector<Lane> lanes;
  std::vector<size_t> places;
  for (const Lane& one : wanted) {
    const auto same = std::ranges::find_if(lanes, [&](const Lane& other) {
      return !one.switches.empty() && other.subject == one.subject && other.switches == one.switches;
    });
    places.push_back(static_cast<size_t>(same - lanes.begin()));
    if (same == lanes.end()) lanes.push_back(one);
  }
  const auto run = [&] {
    const int64_t begin = monotonic_clock().now_ns();
    HeatOptions options = planned(lanes);
    tell_if_late(lanes, options);
    options.progress = [&](const std::string& line) {
      progress_(fmt::format("heat {} ({} runs, {:.0f} s so far): {}", out_.heats + 1, lanes.size(), seconds(),
                            line));
    };
    if (with_second)
      options.enough = [&](const std::vector<LaneHeat>& so_far) { return says_enough(so_far); };
    Heat made = run_heat(lanes, options);
    lane_s_ = seconds_since(begin) / static_cast<double>(lanes.size());
    return made;
  };
  Heat heat = run();
  int64_t ends_after = ended_after(heat);
  if (ends_after >= kEnoughSteps && steps_at_most_ == 0 && !proc::interrupted()) {
    steps_at_most_ = ends_after;  // shorter bursts fit into them
    for (Lane& one : lanes) one.steps_at_most = std::min(one.steps_at_most.value_or(ends_after), ends_after);
    heat = run();
    ends_after = ended_after(heat);
  }
  if (ends_after > 0 && ends_after_ == 0 && !proc::interrupted()) {
    compare_first_steps(ends_after);
    lane_s_ = 0;  // it ended early
    if (with_second) return {};
    heat = run();
  }
  out_.others = std::max(out_.others, heat.others);
  if (!proc::interrupted()) ++out_.heats;
  std::vector<LaneHeat> all;
  for (const size_t place : places) all.push_back(heat.lanes[place]);
  return all;
}

void Inquiry::compare_first_steps(int64_t ends_after) {
  if (ends_after_ > 0 && ends_after_ <= ends_after) return;
  if (ends_after_ == 0)
    out_.notes.push_back(fmt::format(
        "a run ends after {} steps, so the first steps of fresh processes are compared, the same in all",
        ends_after));
  ends_after_ = ends_after;
}

// What grows makes bursts of later rounds incomparable with those of earlier ones.
void Inquiry::compare_growing_steps() {
  const Subject& first = out_.subjects[0];
  const auto trend = step_trend(first.seen);
  if (!pair() || ends_after_ > 0 || first.whole || first.other_grows || !trend || trend->of_epoch) return;
  const Report& other = out_.subjects[1].seen;
  growing_steps_ = (other.ended ? std::min(first.seen.steps(), other.steps()) : first.seen.steps()) - 1;
  ends_after_ = growing_steps_ + 1;
  if (!time_for_processes()) {  // bursts of both in turn are at least of about the same steps
    ends_after_ = growing_steps_ = 0;
    return;
  }
  out_.notes.push_back(fmt::format(
      "{}: its steps become longer, so the first {} steps of fresh processes are compared, the same in all",
      first.name, growing_steps_));
}

int64_t Inquiry::fresh_steps(double step_s) const {
  return growing_steps_ > 0 ? growing_steps_ : fresh_steps_of(ends_after_, step_s);
}

HeatOptions Inquiry::planned(const std::vector<Lane>& lanes) const {
  HeatOptions options{.folder = job_.folder, .seed = static_cast<uint64_t>(out_.heats) + 1};
  options.whole = out_.subjects[0].whole;
  options.until_short = ends_after_ == 0 && !options.whole;
  double step_s = 0, round_s = 0;
  for (const Lane& lane : lanes) step_s = std::max(step_s, lane.step_with_waits_s);
  if (ends_after_ > 0 && !options.whole) options.fresh_steps = fresh_steps(step_s);
  for (const Lane& lane : lanes) round_s += burst_seconds(lane, options);
  if (options.apart()) options.fewest_rounds = kFewestRuns;
  options.rounds = std::clamp(static_cast<int64_t>(job_.seconds / 6 / round_s), options.fewest_rounds,
                              options.apart() ? kMostRuns : kMostRounds);
  for (const Lane& lane : lanes)  // of the steps of a script that ends, a burst takes some
    if (lane.steps_at_most && !options.apart())
      options.rounds =
          std::min(options.rounds, std::max(options.fewest_rounds, *lane.steps_at_most / kStepsOfRound));
  options.fewest_late = kFewestLate;
  options.until_ns = begin_ns_ + static_cast<int64_t>(job_.seconds * static_cast<double>(kSecond));
  return options;
}

void Inquiry::tell_if_late(const std::vector<Lane>& lanes, const HeatOptions& options) const {
  double until_s = seconds();
  for (const Lane& lane : lanes)
    until_s += static_cast<double>(options.fewest_late) * burst_seconds(lane, options);
  if (options.apart() && until_s > job_.seconds)
    progress_(fmt::format(
        "each of the {} scripts and changed copies must start {} times: this takes about {:.0f} s in all",
        lanes.size(), options.fewest_late, until_s));
}

bool Inquiry::says_enough(const std::vector<LaneHeat>& lanes) const {
  const auto factor = [&](size_t lane) {
    Differences once;
    once.add(lanes[0], lanes[lane], quiet());
    return once.factor(alpha());
  };
  if (!lanes[0].ok() || lanes.size() < 2 || !lanes[1].ok()) return false;
  const auto gap = factor(1);
  if (!gap || gap->low < kGlaringGap) return false;
  for (size_t i = 2; i < lanes.size(); ++i) {
    if (!lanes[i].ok()) continue;
    const auto gain = factor(i);
    const bool much = gain && gain->low > kGlaring;
    const bool little = gain && std::log(gain->high) < kSmallPart * std::log(gap->low);
    if (!much && !little) return false;
  }
  return true;
}

void Inquiry::find_causes() {
  std::vector<Suspect> of_second;
  if (pair()) of_second = suspects(out_.subjects[1], job_.processors);
  const double first_s = out_.subjects[0].mean_s(), second_s = pair() ? out_.subjects[1].mean_s() : 0;
  size_t own = 0, shared = 0;
  for (Suspect& suspect : suspects(out_.subjects[0], job_.processors, job_.tuning)) {
    const bool both = is_shared(suspect, of_second, first_s, second_s);
    const bool lines = suspect.has_switch() && suspect.rule->takes_other_lines();
    if (lines && lane(0, "copy", with(Switches::object(), suspect)).spec.texts.empty())
      suspect.suspicion.value = nullptr;  // it runs in no copy of its folder
    if (!suspect.has_switch())
      out_.causes.push_back({.suspect = std::move(suspect), .shared = both});
    else if (both ? shared++ >= kMostShared : own++ >= (job_.tuning ? kMostTried : kMostSuspects))
      out_.notes.push_back(fmt::format("not tried for lack of time: {}", suspect.rule->cause));
    else
      out_.causes.push_back({.suspect = std::move(suspect), .shared = both});
  }
  for (const Cause& cause : out_.causes)
    if (!cause.shared)
      progress_(
          fmt::format("suspected: {}: {}", cause.suspect.rule->cause, cause.suspect.suspicion.evidence));
}

void Inquiry::take_as_confirmed(Cause& cause) const {
  cause.finding = Finding::kConfirmed;
  progress_(fmt::format("confirmed: {}: {} times as fast with the change", cause.suspect.rule->cause,
                        with_interval(*cause.measured)));
}

void Inquiry::judge(Cause& cause, const Differences& gains) const {
  cause.measured = gains.factor(alpha());
  if (!cause.measured) return;
  if (cause.measured->low > (gains.heats() > 1 ? 1 + kMargin : kPlain)) {
    take_as_confirmed(cause);
  } else if (cause.measured->high < 1 + kMargin)
    cause.finding = Finding::kNoGain;
}

std::vector<size_t> Inquiry::open(bool shared) const {
  std::vector<size_t> all;
  for (size_t i = 0; i < out_.causes.size(); ++i)
    if (out_.causes[i].finding == Finding::kOpen && out_.causes[i].shared == shared &&
        out_.causes[i].suspect.has_switch())
      all.push_back(i);
  return all;
}

// The number of lanes with a switch for which a heat has time within `share`, besides `lanes`. At least one in
// the first heat, where starts are made two at a time and not once for each round.
size_t Inquiry::most_tried(const std::vector<Lane>& lanes, double share) const {
  const HeatOptions options = planned(lanes);
  const auto cost_s = [&](const Lane& lane) {
    const double bursts_s = kRoundsApart * burst_seconds(lane, options);
    if (lane_s_ > 0) return lane_s_;
    return std::max(0.1, apart() ? bursts_s : lane.start_s / 2 + std::max(kBurstsS, bursts_s));
  };
  double left_s = share * job_.seconds - seconds();
  for (const Lane& lane : lanes) left_s -= cost_s(lane);
  return static_cast<size_t>(
      std::clamp(left_s / cost_s(lanes[0]), apart() || lane_s_ > 0 ? 0.0 : 1.0, 100.0));
}

// Runs one heat and judges the open causes by it. False: it told nothing, and another heat would not either.
bool Inquiry::one_heat(Pass& pass, int number, double share) {
  std::vector<Lane> lanes = {lane(0, "first", pass.base)};
  const bool with_second = pair() && pass.base.empty();
  if (with_second) lanes.push_back(lane(1, "second", Switches::object()));
  std::vector<size_t> tried = open(/*shared=*/false);
  std::ranges::stable_partition(tried, [&](size_t i) {  // the faster script's lines come first
    return out_.causes[i].suspect.rule->takes_other_lines();
  });
  if (number > 0)
    std::ranges::stable_sort(tried, std::greater(),
                             [&](size_t i) {  // then the largest gains of the first heat
                               return out_.causes[i].first ? out_.causes[i].first->value : 0;
                             });
  tried.resize(std::min(tried.size(), most_tried(lanes, share)));
  for (const size_t i : tried) {
    const Suspect& suspect = out_.causes[i].suspect;
    std::string name = suspect.rule->key;
    if (name == "other_code") name += dump(suspect.suspicion.value);  // of which there may be several
    lanes.push_back(lane(0, name, with(pass.base, suspect)));
  }
  const bool gap_known = out_.gap && (out_.gap_is_certain() || out_.gap->high < 1 + kMargin);
  // Where each round has processes of its own, one heat has their noise in it.
  const int enough = apart() ? 0 : 1;
  if (tried.empty() && number > 0 && (!with_second || (number > enough && gap_known))) return false;
  const auto results = heat(lanes, with_second);
  if (proc::interrupted()) return false;
  if (results.empty())  // there is time for fewer lanes now
    return !only_observed() && one_heat(pass, number, share);
  if (!results[0].ok()) {
    out_.notes.push_back(fmt::format("{}: {}", out_.subjects[0].name, results[0].failure));
    return false;
  }
  if (out_.subjects[0].whole && number == 0) tell_kept_compilations(results[0]);
  if (with_second) {
    if (!results[1].ok())
      out_.notes.push_back(fmt::format("{}: {}", out_.subjects[1].name, results[1].failure));
    gap_.add(results[0], results[1], quiet());
    out_.gap = gap_.factor(alpha());
    if (out_.gap) progress_("standing: " + gap_words(out_));
  }
  if (pass.base.empty()) {
    if (!plain_losses_.empty()) out_.losses = loss_change(plain_losses_, results[0].losses);
    plain_losses_ = results[0].losses;
  }
  for (size_t t = 0; t < tried.size(); ++t)
    weigh(pass, tried[t], number, results[0], results[lanes.size() - tried.size() + t]);
  return true;
}

// Later runs find on disk what the first one compiled.
void Inquiry::tell_kept_compilations(const LaneHeat& plain) {
  std::vector<double> runs = plain.bursts;
  std::erase_if(runs, [](double run) { return !std::isfinite(run); });
  const double later_s = runs.empty() ? 0 : 1e-3 * std::exp(stats::median(runs));
  const Subject& first = out_.subjects[0];
  if (later_s <= 0 || first.profile.total_s < kFirstRun * later_s) return;
  out_.notes.push_back(fmt::format(
      "{}: its observed run took {:.1f} s and later ones {:.1f} s: caches keep files and compiled code, or other work was "
      "running",
      first.name, first.profile.total_s, later_s));
}

// A run that failed, or in which the switch changed nothing, says nothing of the cause.
bool Inquiry::fails(Cause& cause, const LaneHeat& changed) const {
  const std::string thrown = cause.suspect.rule->thrown;
  if (!changed.ok())
    cause.reason = (cause.suspect.rule->takes_other_lines() ? kNotAlone : "") + changed.failure;
  else if (!thrown_outside(thrown) && std::ranges::find(changed.thrown, thrown) == changed.thrown.end())
    cause.reason = kNothingToChange;
  else
    return false;
  cause.finding = Finding::kFailed;
  return true;
}

void Inquiry::weigh(Pass& pass, size_t at, int number, const LaneHeat& base, const LaneHeat& changed) {
  Cause& cause = out_.causes[at];
  cause.later_s = changed.start_s - base.start_s;
  if (fails(cause, changed)) return;
  if (cause.suspect.rule->numbers) cause.losses = loss_change(base.losses, changed.losses);
  if (number == 0) {
    Differences once;
    once.add(base, changed, quiet());
    cause.first = once.factor(alpha());
    if (cause.first && cause.first->high < 1 + kMargin) cause.finding = Finding::kNoGain;
    if (cause.first && cause.first->low > kObvious) {
      cause.measured = cause.first;
      take_as_confirmed(cause);
    }
    // The first heat counts only where each round has its own process: one process says too little of restarts.
    if (!changed.apart || cause.finding != Finding::kOpen) return;
  }
  pass.gains[at].add(base, changed, quiet());
  if (number > 1) judge(cause, pass.gains[at]);
}

double Inquiry::processes_s() const {
  double all = 0;
  for (size_t i = 0; i < out_.subjects.size(); ++i) {
    const Lane of = lane(i, "", Switches::object());
    all += kFewestLate * burst_seconds(of, planned({of}));
  }
  return all;
}

bool Inquiry::time_for_processes() const {
  return seconds() + processes_s() <= kLatest * job_.seconds + kLatestSeconds;
}

// Two more processes of each script may take far longer than the user asked for. Then the observed runs decide.
bool Inquiry::only_observed() {
  const Subject& first = out_.subjects[0];
  if (!pair() || !apart() || time_for_processes()) return false;
  const double more_s = processes_s();
  lane_s_ = more_s / 2;
  out_.notes.push_back(
      fmt::format("two more {} of each script take {:.0f} s, so each was observed once, and nothing was "
                  "tried: --seconds {:.0f} does both",
                  first.whole ? "runs" : "processes", more_s, std::ceil(seconds() + 3 * more_s)));
  const double gap = first.mean_s() / std::max(1e-9, out_.subjects[1].mean_s());
  seen_once_ = gap;
  if (first.whole) {  // files that were never read before make the first start slow
    const Profile &mine = first.profile, &its = out_.subjects[1].profile;
    seen_once_ =
        std::min(gap, (mine.total_s - start_seconds(mine)) / std::max(0.1, its.total_s - start_seconds(its)));
  }
  out_.gap = Estimate{gap, 0, std::numeric_limits<double>::infinity()};
  return true;
}

void Inquiry::confirm() {
  Pass pass;
  const int heats = only_observed() ? -1 : kMostHeats;
  for (int number = 0; number <= heats; ++number) {
    const double share = number < 2 ? 1.0 : 0.6;
    if (number > 0 && !time_for_heat(pair() ? 2 : 1, share)) break;
    if (!one_heat(pass, number, share)) break;
    if (number > 0 && pair() && out_.gap && out_.gap->high < 1 + kMargin) break;  // there is no gap
  }
  // One heat beside the first decides what is obvious; the first alone, where there was no time for another,
  // what is glaring.
  for (const size_t i : open(/*shared=*/false)) {
    Cause& cause = out_.causes[i];
    judge(cause, pass.gains[i]);
    if (pass.gains[i].empty() && cause.first && cause.first->low > kGlaring) {
      cause.measured = cause.first;
      take_as_confirmed(cause);
    }
  }
  // A gap that is wide in the observed runs and in the heats is said, though too few heats make it certain.
  const double seen = quiet() ? kSeenQuiet : kSeenGap;
  const bool wide = pair() && out_.gap && out_.gap->value > seen && out_.gap->high > seen &&
                    (!seen_once_ || *seen_once_ > kSeenOnce) &&
                    out_.subjects[0].mean_s() > seen * out_.subjects[1].mean_s();
  out_.equal = pair() && !out_.gap_is_certain() && !wide;
}

// A cause that takes most of the time hides the others, so they are tried again without it.
void Inquiry::confirm_hidden() {
  while (!out_.equal && !proc::interrupted()) {
    const std::vector<Cause*> confirmed = remaining();
    const bool much = std::ranges::any_of(
        confirmed, [](const Cause* cause) { return cause->measured->value > kHidesOthers; });
    if (!much) return;
    Pass pass{.base = switches_of(confirmed)};
    std::vector<Cause*> hidden;
    for (Cause& cause : out_.causes)
      if (cause.finding == Finding::kNoGain && !cause.shared &&
          !pass.base.contains(cause.suspect.rule->thrown))
        hidden.push_back(&cause);
    if (!time_for_heat(2, 0.7)) return;
    for (Cause* cause : hidden) cause->finding = Finding::kOpen;
    const std::vector<size_t> again = open(/*shared=*/false);
    if (again.empty()) return;
    for (int number = 1; number <= kHiddenHeats; ++number)
      if (!time_for_heat(2, 0.85) || !one_heat(pass, number, 0.85)) break;
    bool found = false;
    for (const size_t i : again) {
      Cause& cause = out_.causes[i];
      if (cause.finding == Finding::kOpen && !pass.gains[i].empty()) judge(cause, pass.gains[i]);
      if (cause.finding != Finding::kConfirmed) continue;
      cause.on_top = found = true;
    }
    for (Cause* cause : hidden)  // for which there was no time
      if (cause->finding == Finding::kOpen &&
          pass.gains[static_cast<size_t>(cause - out_.causes.data())].empty())
        cause->finding = Finding::kNoGain;
    if (!found) return;
  }
}

// Whether the gap is explained, judged by the gains of single causes: a guess that saves a heat.
bool Inquiry::gap_is_explained(const std::vector<Cause*>& confirmed) const {
  double left = out_.gap->value;
  for (const Cause* cause : confirmed) left /= cause->measured->value;
  return left < kNothingLeft;
}

// A suspect of both scripts is a cause of the gap if the first script loses more by it. Both run with its switch.
void Inquiry::confirm_shared() {
  if (out_.equal || !pair() || open(/*shared=*/true).empty()) return;
  const std::vector<Cause*> confirmed = remaining();
  if (gap_is_explained(confirmed)) return;
  Pass pass{.base = switches_of(confirmed)};
  for (int number = 0; number < kSharedHeats; ++number)
    if (!time_for_heat(2 + 2 * open(/*shared=*/true).size(), 0.9) || !shared_heat(pass)) break;
}

bool Inquiry::shared_heat(Pass& pass) {
  const std::vector<size_t> tried = open(/*shared=*/true);
  if (tried.empty()) return false;
  std::vector<Lane> lanes = {lane(0, "first", pass.base), lane(1, "second", Switches::object())};
  for (const size_t i : tried) {
    const Suspect& suspect = out_.causes[i].suspect;
    lanes.push_back(lane(0, suspect.rule->key, with(pass.base, suspect)));
    lanes.push_back(lane(1, std::string("second_") + suspect.rule->key, with(Switches::object(), suspect)));
  }
  const auto results = heat(lanes);
  if (proc::interrupted() || !results[0].ok() || !results[1].ok()) return false;
  pass.left.add(results[0], results[1], quiet());
  const LaneHeat gap = gap_of(results[0], results[1]);
  for (size_t t = 0; t < tried.size(); ++t) {
    Cause& cause = out_.causes[tried[t]];
    const LaneHeat &here = results[2 + 2 * t], &there = results[3 + 2 * t];
    if (fails(cause, here) || fails(cause, there)) continue;
    if (cause.suspect.rule->numbers) cause.losses = loss_change(results[0].losses, here.losses);
    Differences once;
    once.add(results[0], here, quiet());
    if (!cause.first) cause.first = once.factor(alpha());
    pass.gains[tried[t]].add(results[0], here, quiet());
    auto& beyond = pass.beyond.try_emplace(tried[t], Differences(4)).first->second;
    beyond.add(gap, gap_of(here, there));
    cause.beyond = beyond.factor(alpha());
    judge(cause, pass.gains[tried[t]]);
    if (cause.finding != Finding::kConfirmed || !cause.beyond) continue;
    if (cause.beyond->high < 1 + kMargin) cause.finding = Finding::kNoGain;
    if (cause.beyond->low < 1 + kMargin && cause.finding == Finding::kConfirmed)
      cause.finding = Finding::kOpen;
    cause.on_top = cause.finding == Finding::kConfirmed && !pass.base.empty();
  }
  const auto left = pass.left.factor(alpha());
  return left && left->high > 1 + kMargin;
}

// Confirmed causes; a general one gives way to special ones that explain most of it.
std::vector<Cause*> Inquiry::remaining() {
  std::vector<Cause*> all;
  for (Cause& cause : out_.causes) {
    if (cause.finding != Finding::kConfirmed) continue;
    const bool gives_way = std::ranges::any_of(out_.causes, [&](const Cause& other) {
      if (other.finding != Finding::kConfirmed || &other == &cause) return false;
      const Rule &mine = *cause.suspect.rule, &its = *other.suspect.rule;
      const double gain = std::log(cause.measured->value), its_gain = std::log(other.measured->value);
      const bool same = cause.suspect.same_switch(other.suspect);
      if (same && std::string(mine.within) == its.key) return false;
      if (same && std::string(its.within) == mine.key) return true;
      if (same) return its_gain > gain || (its_gain == gain && &other < &cause);
      return std::string(its.within) == mine.key && its_gain >= kGivesWay * gain;
    });
    if (!gives_way) all.push_back(&cause);
  }
  return all;
}

// Whether `special` is a case of a confirmed general cause, and its booked time explains most of that gain.
bool Inquiry::tells_more(const Cause& special) const {
  const double its_gain = -std::log1p(-std::min(0.99, *special.suspect.suspicion.booked));
  return std::ranges::any_of(out_.causes, [&](const Cause& cause) {
    if (cause.finding != Finding::kConfirmed) return false;
    const std::string key = cause.suspect.rule->key;
    const bool same_line =
        key == "input" && cause.suspect.line > 0 && cause.suspect.line == special.suspect.line;
    return (same_line || key == special.suspect.rule->within) &&
           its_gain >= kGivesWay * std::log(cause.measured->value);
  });
}

// Whether a named cause says that the script waits for the data that this line makes.
bool Inquiry::waits_at(int64_t line) const {
  return std::ranges::any_of(out_.causes, [&](const Cause& cause) {
    return line > 0 && cause.named() && std::string(cause.suspect.rule->key) == "input" &&
           cause.suspect.line == line;
  });
}

// Causes that no run decided are named by the time that the observed run spent on them: a general cause only if
// no special one is named, and a place in the script only if causes leave most of the gap open.
void Inquiry::book() {
  if (out_.equal) return;
  const auto rank = [](const Rule& rule) {
    return rule.says == Says::kUnreadPlace ? 3 : rule.of_place() ? 2 : *rule.within == '\0' ? 1 : 0;
  };
  std::vector<Cause*> most_first;
  for (Cause& cause : out_.causes) most_first.push_back(&cause);
  std::ranges::stable_sort(most_first, std::greater<>{},
                           [](const Cause* c) { return c->suspect.suspicion.booked.value_or(0); });
  for (const int now : {0, 1, 2, 3}) {
    for (Cause* one : most_first) {
      Cause& cause = *one;
      const Rule& mine = *cause.suspect.rule;
      const bool undecided = cause.finding == Finding::kOpen || cause.finding == Finding::kFailed;
      if (!undecided || cause.shared || rank(mine) != now) continue;
      if (cause.suspect.suspicion.booked.value_or(0) < kLeastBooked) continue;
      const std::string id = mine.id;
      const bool of_waits = mine.of_place() || id == "R1" || id == "R2" ||
                            waits_at(cause.suspect.line);  // it may say why the script waits
      const double so_far = explained(/*places=*/mine.of_place(), /*waits=*/!of_waits);
      const bool left = so_far <= (mine.of_place() ? kMostOfGap : kAllOfGap) && !out_.told(cause);
      if (left || tells_more(cause)) cause.finding = Finding::kBooked;
    }
  }
  for (Cause& cause : out_.causes)
    if (cause.finding == Finding::kConfirmed && cause.suspect.rule->of_place() &&
        explained(/*places=*/false, /*waits=*/false) > kMostOfGap)
      cause.finding = Finding::kCovered;
}

// Share of the gap's logarithm that named causes explain; `places`: with causes that only say
// where the time goes; `waits`: with waiting for data.
double Inquiry::explained(bool places, bool waits) const {
  if (!out_.gap || out_.gap->value <= 1) return 0;
  double explained = 0;
  for (const Cause& cause : out_.causes) {
    const Rule& rule = *cause.suspect.rule;
    if ((rule.of_place() && !places) || (std::string(rule.key) == "input" && !waits)) continue;
    if (cause.finding == Finding::kConfirmed) explained += std::log(cause.measured->value);
    if (cause.finding != Finding::kBooked) continue;
    const double booked = *cause.suspect.suspicion.booked;
    if (booked >= kNearlyAll && !rule.of_place()) return 1;
    explained -= std::log1p(-std::min(0.99, booked));
  }
  return explained / std::log(out_.gap->value);
}

void measure_again(Cause& cause, const Estimate& later) {
  if (later.low > 1) {
    cause.measured = later;
  } else if (later.value < 1 + kMargin) {
    cause.measured = later;
    cause.finding = later.high < 1 + kMargin ? Finding::kNoGain : Finding::kOpen;
  }
}

bool Inquiry::put_lines(Lane& lane, const Changes& changes) const {
  const Subject& of = out_.subjects[0];
  if (!of.spec.in_copy) return false;
  for (const Source::File& file : of.source.files()) {
    auto text = changed_text(file, changes);
    if (!text) continue;
    const std::filesystem::path path = of.spec.folder / of.folder / (file.name.empty() ? of.file : file.name);
    const std::string inside = path.lexically_normal().lexically_relative(of.spec.folder).string();
    if (inside.empty() || inside.starts_with("..")) return false;
    lane.spec.texts[inside] = std::move(*text);
  }
  return true;
}

std::optional<Lane> Inquiry::changed_copy(const std::vector<Cause*>& causes) const {
  const Subject& of = out_.subjects[0];
  Changes changes;
  for (const Cause* cause : causes)
    if (auto line = changed_line(cause->suspect, of.source.line(cause->suspect.line));
        line && of.source.has(cause->suspect.line))
      changes[cause->suspect.line] = *line + "\n";
  Lane changed = lane(0, "changed", Switches::object());
  if (changes.empty() || !put_lines(changed, changes)) return std::nullopt;
  return changed;
}

void Inquiry::combine() {
  const std::vector<Cause*> confirmed = remaining();
  if (out_.equal || confirmed.empty()) return;
  if (confirmed.size() == 1) {
    out_.together = confirmed[0]->measured;
    if (!pair()) return;
  }
  std::vector<Cause*> both;  // causes whose switches the second script gets, too
  std::ranges::copy_if(confirmed, std::back_inserter(both), &Cause::shared);
  Differences together, residual, applied;
  std::vector<Differences> without(confirmed.size());
  for (int number = 0; number < kTogetherHeats; ++number) {
    std::vector<Lane> lanes = {lane(0, "first", Switches::object()),
                               lane(0, "together", switches_of(confirmed))};
    if (confirmed.size() > 1) {
      for (Cause* left_out : confirmed) {
        std::vector<Cause*> others = confirmed;
        std::erase(others, left_out);
        lanes.push_back(lane(0, fmt::format("without_{}", left_out->suspect.rule->key), switches_of(others)));
      }
    }
    const auto changed = changed_copy(confirmed);
    if (changed) lanes.push_back(*changed);
    if (pair()) lanes.push_back(lane(1, "second", switches_of(both)));
    if (!time_for_heat(lanes.size(), number > 0 ? 0.6 : kLatest)) break;
    const auto results = heat(lanes);
    if (proc::interrupted()) return;
    if (changed) {
      const LaneHeat& with_lines = results[lanes.size() - (pair() ? 2 : 1)];
      out_.applied_failure = with_lines.failure;
      applied.add(results[0], with_lines, quiet());
    }
    together.add(results[0], results[1], quiet());
    if (pair()) residual.add(results[1], results.back(), quiet());
    if (confirmed.size() > 1)
      for (size_t i = 0; i < confirmed.size(); ++i) without[i].add(results[2 + i], results[1], quiet());
    if (!results[1].ok()) out_.notes.push_back("all together: " + results[1].failure);
  }
  if (const auto factor = together.factor(alpha())) {
    out_.together = factor;
    Cause& first = *confirmed[0];
    if (confirmed.size() == 1 && first.first && first.measured->value == first.first->value) {
      measure_again(first, *factor);
      out_.together = first.measured;
    }
  }
  out_.residual = residual.factor(alpha());
  out_.applied = applied.factor(alpha());
  for (size_t i = 0; i < confirmed.size(); ++i) confirmed[i]->without = without[i].factor(alpha());
}

}  // namespace bakeoff::explain
