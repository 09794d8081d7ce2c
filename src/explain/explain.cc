#include "explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "explain/heats.h"
#include "proc/interrupt.h"
#include "stats/burst_plan.h"
#include "stats/e_process.h"
#include "stats/verdict.h"

namespace bakeoff::explain {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFirstSteps = 5;
constexpr int64_t kObservedSteps = 300;
constexpr double kObservedSeconds = 8;
constexpr double kStartSeconds = 300;  // until the first steps are made
constexpr size_t kMostSuspects = 8;
constexpr int kMostHeats = 5;  // that decide the suspects, besides the first
constexpr int kTogetherHeats = 2;
constexpr int kHiddenHeats = 3;        // that try suspects again once great causes are gone
constexpr double kHidesOthers = 1.25;  // gain of a cause from which on it may hide others
constexpr double kMuchMore = 1.2;      // ceiling of a cause over that in the second script
constexpr double kGlaring = 1.5;       // gain that one heat alone confirms
constexpr double kEpochSeconds = 3;    // up to which a burst takes whole epochs
constexpr double kMargin = 0.02;       // a gain below it is none
constexpr double kPrior = 0.25;        // typical size of a gain or a gap, log scale
constexpr double kRestart = 0.01;      // sd of two processes of one script, log scale, until heats show it
constexpr double kGivesWay = 0.7;      // share of a general cause's gain that a special one explains

// `later` follows `report` in the same process.
void append(Report& report, Report later) {
  for (const int64_t at : later.epochs) report.epochs.push_back(at + report.steps());
  report.marks.insert(report.marks.end(), later.marks.begin(), later.marks.end());
  report.waits.insert(report.waits.end(), later.waits.begin(), later.waits.end());
  report.ns = later.begun + later.ns - report.begun;
  report.compiles = later.compiles;  // those of the first steps are its own
  report.compile_ns = later.compile_ns;
  report.collections = later.collections;
  report.ended = later.ended;
  report.error = later.error;
  report.where = later.where;
  report.notes = later.notes;
  report.cpu_ns = later.cpu_ns;
  report.peak_rss_bytes = later.peak_rss_bytes;
  report.minor_faults = later.minor_faults;
  if (later.facts.is_object() && !later.facts.empty()) report.facts = std::move(later.facts);
  if (!later.environment.empty()) report.environment = std::move(later.environment);
}

Error no_steps(const Subject& subject, const Observed& process) {
  std::string seen = subject.seen.error.empty()
                         ? "it came to its end"
                         : fmt::format("it ended with {} ({})", subject.seen.error, subject.seen.where);
  for (const std::string& note : subject.seen.notes) seen += "\n  " + note;
  return Error{
      .message =
          fmt::format("{}: {} training steps were seen, and {}", subject.name, subject.seen.steps(), seen),
      .remedy = fmt::format(
          "at least {} steps are needed; a step is optimizer.step(), a batch of fit, or a call of the "
          "jitted function that trains\n{}",
          kFirstSteps, process.log_tail())};
}

Status observe(Subject& subject, const fs::path& folder) {
  ScriptSpec spec = subject.spec;
  spec.log_file = folder / (fs::path(subject.name).stem().string() + "_observed.log");
  TRY(Observed process, Observed::start(spec, Switches::object()));
  TRY(subject.seen, process.run(kFirstSteps, kStartSeconds, /*facts=*/true));
  if (subject.seen.ended || subject.seen.steps() < 2) {
    if (subject.seen.steps() < kFirstSteps || !subject.seen.error.empty()) return no_steps(subject, process);
  } else {
    const int64_t printed = process.log_bytes();
    TRY(Report later, process.run(kObservedSteps, kObservedSeconds, /*facts=*/true));
    const auto steps = static_cast<double>(std::max<int64_t>(1, later.steps()));
    subject.output_bytes = static_cast<double>(process.log_bytes() - printed) / steps;
    subject.faults = static_cast<double>(later.minor_faults - subject.seen.minor_faults) / steps;
    append(subject.seen, std::move(later));
    if (!subject.seen.error.empty()) return no_steps(subject, process);
  }
  subject.profile = profile_of(subject.seen);
  return Done{};
}

// Differences of two lanes over heats, log scale.
struct Differences {
  std::vector<stats::PastHeat> heats = {};

  void add(const LaneHeat& slower, const LaneHeat& faster) {
    if (const auto found = difference(slower, faster))
      heats.push_back({found->d, found->variance, found->rounds});
  }
  std::optional<Estimate> factor(double alpha) const {
    if (heats.empty()) return std::nullopt;
    double mean = 0, variance = 0;
    const auto n = static_cast<double>(heats.size());
    for (const stats::PastHeat& heat : heats) mean += heat.d / n;
    if (heats.size() == 1) {
      variance = 2 * kRestart * kRestart + heats[0].within;
    } else {
      const stats::HeatVariance of = stats::heat_variance(heats);
      for (const stats::PastHeat& heat : heats)
        variance += (of.restart + of.round / static_cast<double>(heat.rounds)) / (n * n);
    }
    const double half = stats::known_variance_half_width(variance, kPrior, alpha);
    return Estimate{std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
  }
};

// Largest relative difference of the losses of equal steps; absent where there are none.
std::optional<double> loss_change(const std::vector<double>& one, const std::vector<double>& other) {
  std::optional<double> worst;
  for (size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    const double change = std::abs(one[i] - other[i]) / std::max(std::abs(one[i]), 1e-30);
    if (std::isfinite(change)) worst = std::max(worst.value_or(0), change);
  }
  return worst;
}

// Heats of one kind: suspects are tried on top of these switches.
struct Pass {
  Switches base = Switches::object();
  std::vector<Differences> gains = {};  // by cause
};

// One explanation in the making.
class Inquiry {
 public:
  Inquiry(ExplainJob& job, Explanation& out, const Progress& progress)
      : job_(job), out_(out), progress_(progress), begin_ns_(monotonic_clock().now_ns()) {}

  void find_causes();
  void confirm();
  void confirm_hidden();
  void combine();
  double seconds() const { return seconds_since(begin_ns_); }

 private:
  bool pair() const { return out_.subjects.size() > 1; }
  double alpha() const { return job_.alpha / static_cast<double>(2 + 3 * out_.causes.size()); }
  Lane lane(size_t subject, const std::string& name, Switches switches) const;
  std::vector<LaneHeat> heat(const std::vector<Lane>& lanes);
  bool one_heat(Pass& pass, int number);
  void weigh(Pass& pass, size_t at, int number, const LaneHeat& base, const LaneHeat& changed);
  void judge(Cause& cause, const Differences& gains) const;
  bool time_for_another(double share) const {
    return !proc::interrupted() && seconds() + heat_s_ < share * job_.seconds;
  }
  Switches switches_of(const std::vector<const Cause*>& causes) const;
  std::vector<const Cause*> remaining() const;

  ExplainJob& job_;
  Explanation& out_;
  const Progress& progress_;
  int64_t begin_ns_;
  double heat_s_ = 0;  // of the last one
  Differences gap_;
  std::vector<double> plain_losses_;  // of the last run without switches
};

double epoch_seconds(const Profile& p) { return p.epoch_steps * p.step_s + p.epoch_start_s; }

// Whether bursts take whole epochs, because what happens between them counts and they are short enough.
bool whole_epochs(const Subject& s) {
  const Profile& p = s.profile;
  const bool counts = s.seen.kind == "fit" || p.epoch_start_s > kMargin * epoch_seconds(p);
  return p.epoch_steps > 1 && epoch_seconds(p) < kEpochSeconds && counts;
}

Lane Inquiry::lane(size_t subject, const std::string& name, Switches switches) const {
  const Subject& of = out_.subjects[subject];
  Lane lane{.name = name, .spec = of.spec, .switches = std::move(switches), .step_s = of.profile.step_s};
  if (const auto set = lane.switches.find(kEnvironment); set != lane.switches.end())
    for (const auto& [variable, value] : set->items()) lane.spec.environment[variable] = value;
  if (of.seen.ended) lane.steps_at_most = of.seen.steps();
  lane.by_step = of.by_step;
  if (whole_epochs(of)) {
    lane.epoch_samples = of.profile.epoch_steps * of.samples();
    lane.epoch_s = epoch_seconds(of.profile);
  }
  return lane;
}

std::vector<LaneHeat> Inquiry::heat(const std::vector<Lane>& lanes) {
  const int64_t begin = monotonic_clock().now_ns();
  HeatOptions options{.folder = job_.folder, .seed = static_cast<uint64_t>(out_.heats) + 1};
  options.progress = [&](const std::string& line) {
    progress_(
        fmt::format("heat {} ({} runs, {:.0f} s so far): {}", out_.heats + 1, lanes.size(), seconds(), line));
  };
  double round_s = 0;
  for (const Lane& lane : lanes)
    round_s += std::max({options.burst_s + lane.step_s, 2 * lane.step_s, lane.epoch_s});
  options.rounds = std::clamp<int64_t>(static_cast<int64_t>(job_.seconds / 6 / round_s), 6, 12);
  options.until_ns = begin_ns_ + static_cast<int64_t>(job_.seconds * static_cast<double>(kSecond));
  auto results = run_heat(lanes, options);
  heat_s_ = seconds_since(begin);
  if (!proc::interrupted()) ++out_.heats;
  return results;
}

// Whether the second script is suspect of the same, as much: then it explains no gap between the two.
bool shared(const Suspect& suspect, const std::vector<Suspect>& of_second) {
  return std::ranges::any_of(of_second, [&](const Suspect& other) {
    return other.rule == suspect.rule &&
           suspect.suspicion.most.value_or(1) < kMuchMore * other.suspicion.most.value_or(1);
  });
}

void Inquiry::find_causes() {
  std::vector<Suspect> of_second;
  if (pair()) of_second = suspects(out_.subjects[1], job_.processors);
  for (Suspect& suspect : suspects(out_.subjects[0], job_.processors)) {
    if (shared(suspect, of_second)) {
      out_.notes.push_back(
          fmt::format("in both scripts, so no cause of a gap, and not tried: {}", suspect.rule->cause));
      continue;
    }
    if (out_.causes.size() == kMostSuspects) {
      out_.notes.push_back(fmt::format("not tried for lack of time: {}", suspect.rule->cause));
      continue;
    }
    out_.causes.push_back({.suspect = std::move(suspect)});
  }
}

void Inquiry::judge(Cause& cause, const Differences& gains) const {
  cause.measured = gains.factor(alpha());
  if (!cause.measured) return;
  if (cause.measured->low > 1 + kMargin)
    cause.finding = Finding::kConfirmed;
  else if (cause.measured->high < 1 + kMargin)
    cause.finding = Finding::kNoGain;
}

// What one heat says of those causes; false: it says nothing, and no further one would.
bool Inquiry::one_heat(Pass& pass, int number) {
  std::vector<Lane> lanes = {lane(0, "first", pass.base)};
  const bool with_second = pair() && pass.base.empty();
  if (with_second) lanes.push_back(lane(1, "second", Switches::object()));
  std::vector<size_t> tried;
  for (size_t i = 0; i < out_.causes.size(); ++i) {
    if (out_.causes[i].finding != Finding::kOpen) continue;
    const Suspect& suspect = out_.causes[i].suspect;
    Switches switches = pass.base;
    switches[suspect.rule->thrown] = suspect.suspicion.value;
    tried.push_back(i);
    lanes.push_back(lane(0, suspect.rule->key, std::move(switches)));
  }
  const bool gap_known = out_.gap && (out_.gap->low > 1 + kMargin || out_.gap->high < 1 + kMargin);
  if (tried.empty() && (number > 1 ? !with_second || gap_known : number > 0 && !with_second)) return false;
  const auto results = heat(lanes);
  if (proc::interrupted()) return false;
  if (!results[0].ok()) {
    out_.notes.push_back(fmt::format("{}: {}", out_.subjects[0].name, results[0].failure));
    return false;
  }
  if (with_second) {
    if (!results[1].ok())
      out_.notes.push_back(fmt::format("{}: {}", out_.subjects[1].name, results[1].failure));
    gap_.add(results[0], results[1]);
    out_.gap = gap_.factor(alpha());
  }
  if (pass.base.empty()) {
    if (!plain_losses_.empty()) out_.losses = loss_change(plain_losses_, results[0].losses);
    plain_losses_ = results[0].losses;
  }
  for (size_t t = 0; t < tried.size(); ++t)
    weigh(pass, tried[t], number, results[0], results[lanes.size() - tried.size() + t]);
  return true;
}

void Inquiry::weigh(Pass& pass, size_t at, int number, const LaneHeat& base, const LaneHeat& changed) {
  Cause& cause = out_.causes[at];
  if (!changed.ok()) {
    cause.finding = Finding::kFailed;
    cause.reason = changed.failure;
    return;
  }
  const std::string thrown = cause.suspect.rule->thrown;
  if (thrown != kEnvironment && std::ranges::find(changed.thrown, thrown) == changed.thrown.end()) {
    cause.finding = Finding::kFailed;
    cause.reason = "the switch found nothing to change";
    return;
  }
  if (cause.suspect.rule->numbers) cause.losses = loss_change(base.losses, changed.losses);
  if (number == 0) {
    Differences once;
    once.add(base, changed);
    cause.first = once.factor(alpha());
    if (cause.first && cause.first->high < 1 + kMargin) cause.finding = Finding::kNoGain;
    return;
  }
  pass.gains[at].add(base, changed);
  if (number > 1) judge(cause, pass.gains[at]);
}

void Inquiry::confirm() {
  Pass pass{.gains = std::vector<Differences>(out_.causes.size())};
  for (int number = 0; number <= kMostHeats; ++number) {
    if (number > 0 && !time_for_another(number == 1 ? 1.0 : 0.6)) break;
    if (!one_heat(pass, number)) break;
    if (number > 0 && pair() && out_.gap && out_.gap->high < 1 + kMargin) break;  // there is no gap
  }
  // One heat beside the first decides what is obvious; the first alone, where there was no time for another,
  // what is glaring.
  for (size_t i = 0; i < pass.gains.size(); ++i) {
    Cause& cause = out_.causes[i];
    if (cause.finding != Finding::kOpen) continue;
    judge(cause, pass.gains[i]);
    if (pass.gains[i].heats.empty() && cause.first && cause.first->low > kGlaring) {
      cause.measured = cause.first;
      cause.finding = Finding::kConfirmed;
    }
  }
  out_.equal = pair() && !(out_.gap && out_.gap->low > 1 + kMargin);
}

// A cause that took most of the time hid what others take: they are tried again without it.
void Inquiry::confirm_hidden() {
  while (!out_.equal && !proc::interrupted()) {
    const std::vector<const Cause*> confirmed = remaining();
    const bool much = std::ranges::any_of(
        confirmed, [](const Cause* cause) { return cause->measured->value > kHidesOthers; });
    if (!much || !time_for_another(0.7)) return;
    Pass pass{.base = switches_of(confirmed), .gains = std::vector<Differences>(out_.causes.size())};
    std::vector<size_t> again;
    for (size_t i = 0; i < out_.causes.size(); ++i) {
      Cause& cause = out_.causes[i];
      const bool thrown = pass.base.contains(cause.suspect.rule->thrown);
      if (thrown || (cause.finding != Finding::kNoGain && cause.finding != Finding::kOpen)) continue;
      cause.finding = Finding::kOpen;
      again.push_back(i);
    }
    if (again.empty()) return;
    for (int number = 1; number <= kHiddenHeats; ++number)
      if (!time_for_another(0.85) || !one_heat(pass, number)) break;
    bool found = false;
    for (const size_t i : again) {
      Cause& cause = out_.causes[i];
      if (cause.finding == Finding::kOpen && !pass.gains[i].heats.empty()) judge(cause, pass.gains[i]);
      if (cause.finding != Finding::kConfirmed) continue;
      cause.on_top = found = true;
    }
    if (!found) return;
  }
}

// Confirmed causes; a general one gives way to special ones that explain most of it.
std::vector<const Cause*> Inquiry::remaining() const {
  std::vector<const Cause*> all;
  for (const Cause& cause : out_.causes) {
    if (cause.finding != Finding::kConfirmed) continue;
    const bool gives_way = std::ranges::any_of(out_.causes, [&](const Cause& other) {
      return other.finding == Finding::kConfirmed &&
             std::string(other.suspect.rule->within) == cause.suspect.rule->key &&
             std::log(other.measured->value) >= kGivesWay * std::log(cause.measured->value);
    });
    if (!gives_way) all.push_back(&cause);
  }
  return all;
}

Switches Inquiry::switches_of(const std::vector<const Cause*>& causes) const {
  Switches all = Switches::object();
  for (const Cause* cause : causes) all[cause->suspect.rule->thrown] = cause->suspect.suspicion.value;
  return all;
}

void Inquiry::combine() {
  const std::vector<const Cause*> confirmed = remaining();
  if (out_.equal || confirmed.empty()) return;
  if (confirmed.size() == 1) {
    out_.together = confirmed[0]->measured;
    if (!pair()) return;
  }
  Differences together, residual;
  std::vector<Differences> without(confirmed.size());
  for (int number = 0; number < kTogetherHeats; ++number) {
    if (number > 0 && !time_for_another(1.2)) break;
    std::vector<Lane> lanes = {lane(0, "first", Switches::object()),
                               lane(0, "together", switches_of(confirmed))};
    if (confirmed.size() > 1) {
      for (const Cause* left_out : confirmed) {
        std::vector<const Cause*> others = confirmed;
        std::erase(others, left_out);
        lanes.push_back(lane(0, fmt::format("without_{}", left_out->suspect.rule->key), switches_of(others)));
      }
    }
    if (pair()) lanes.push_back(lane(1, "second", Switches::object()));
    const auto results = heat(lanes);
    if (proc::interrupted()) return;
    together.add(results[0], results[1]);
    if (pair()) residual.add(results[1], results.back());
    if (confirmed.size() > 1)
      for (size_t i = 0; i < confirmed.size(); ++i) without[i].add(results[2 + i], results[1]);
    if (!results[1].ok()) out_.notes.push_back("all together: " + results[1].failure);
  }
  if (const auto factor = together.factor(alpha())) out_.together = factor;
  out_.residual = residual.factor(alpha());
  for (size_t i = 0; i < confirmed.size(); ++i)
    const_cast<Cause*>(confirmed[i])->without = without[i].factor(alpha());
}

// Where the batch of one script is not known, samples of the two cannot be compared.
void compare_by_step(std::vector<Subject>& subjects, std::vector<std::string>& notes) {
  const auto unknown =
      std::ranges::find_if(subjects, [](const Subject& s) { return s.number("batch") <= 0; });
  if (subjects.size() < 2 || unknown == subjects.end()) return;
  notes.push_back(fmt::format(
      "{}: the samples of a step are not known, so steps are compared; make sure that both take as many",
      unknown->name));
  for (Subject& subject : subjects) subject.by_step = true;
}

// The slower one first, by what was observed.
void order(std::vector<Subject>& subjects, std::vector<std::string>& notes) {
  if (subjects.size() < 2) return;
  const auto cost = [](const Subject& s) { return s.step_with_waits_s() / s.samples(); };
  if (cost(subjects[1]) <= 1.05 * cost(subjects[0])) return;
  notes.push_back(fmt::format("{} is the slower one of the two", subjects[1].name));
  std::swap(subjects[0], subjects[1]);
}

}  // namespace

size_t Explanation::confirmed() const {
  return static_cast<size_t>(std::ranges::count(causes, Finding::kConfirmed, &Cause::finding));
}

Result<Explanation> explain(ExplainJob job, const Progress& progress) {
  Explanation out;
  out.subjects = job.subjects;
  Inquiry inquiry(job, out, progress);
  for (Subject& subject : out.subjects) {
    progress("observing " + subject.name);
    CHECK_OK(observe(subject, job.folder));
    if (proc::interrupted()) return Error{.message = "interrupted"};
    if (!subject.spec.in_copy)
      out.notes.push_back(subject.name + ": its folder is too large to be copied, so its runs write into it");
    for (const std::string& note : subject.seen.notes) out.notes.push_back(subject.name + ": " + note);
  }
  compare_by_step(out.subjects, out.notes);
  order(out.subjects, out.notes);
  for (const Subject& subject : out.subjects)
    std::ranges::move(remarks(subject), std::back_inserter(out.remarks));
  if (out.subjects.size() > 1) {
    out.work = work_differences(out.subjects[0], out.subjects[1]);
    out.environment = environment_differences(out.subjects[0], out.subjects[1]);
  }
  inquiry.find_causes();
  inquiry.confirm();
  inquiry.confirm_hidden();
  inquiry.combine();
  std::ranges::stable_sort(out.causes, [](const Cause& a, const Cause& b) {
    const bool a_yes = a.finding == Finding::kConfirmed, b_yes = b.finding == Finding::kConfirmed;
    if (a_yes != b_yes) return a_yes;
    return a_yes && a.measured->value > b.measured->value;
  });
  out.seconds = inquiry.seconds();
  return out;
}

}  // namespace bakeoff::explain
