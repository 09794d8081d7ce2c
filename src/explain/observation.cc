// Watching a script makes it slower, in different amounts for each way of watching, and its first steps are
// not like later ones. So one process is watched in stretches, one after another, each in one way: lines of
// the first two steps, rounds of loops in two more, a profiler in two, lines again in up to 300 steps, calls
// of hooks in 20. The profiled steps stand in the record with the time of the shortest step so far.
//
// Nothing is known of the script before, so each stretch may find that it has ended, failed, or made no step.
// Then what was seen so far must do: a script without steps is compared as a whole run.
//
// prepare() decides what is compared, by what was seen of both: steps, samples, or whole runs. It does so
// before any heat, as a heat of the wrong kind costs all the time there is.

#include "explain/observation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>
#include <thread>

#include "base/clock.h"
#include "proc/interrupt.h"
#include "stats/trimmed.h"

namespace bakeoff::explain {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFirstSteps = 5;
constexpr int64_t kTracedSteps = 2;
constexpr int64_t kObservedSteps = 300;
constexpr double kMayGrow =
    1.05;  // a script whose later steps take longer than this many first ones is observed for longer
constexpr int64_t kFewestCalls = 64;  // calls of an untrained model: runners/bakeoff_observe/observer.py
constexpr double kLongestObserved = 5, kShortestObserved = 2;  // seconds
constexpr double kShareObserved = 1.0 / 15;                    // of the budget
constexpr double kStartSeconds = 300;                          // at most, until the first steps are made
constexpr int64_t kHookSteps = 20;  // steps in which calls of the hooks are counted
constexpr double kHookSeconds = 2;
constexpr int64_t kProfiledSteps = 2;
constexpr double kLongestProfiled = 3;  // seconds: a longer step is not profiled
constexpr double kMostlyLater = 0.4;    // share of a whole run that is too much to leave out
constexpr double kLaterGap = 0.5;       // the same, of the gap of the two scripts
constexpr double kSomeLater = 0.15;     // the least share of a whole run for kLaterGap to count
constexpr int64_t kFewestShapes = 3;    // compilations after the first steps
constexpr double kLongestWhole = 60;    // seconds
constexpr double kAlike = 0.01;         // relative difference of numbers of parameters
constexpr int64_t kFewSteps = 40;       // a script that ends after fewer has too few for bursts

// `later` follows `report` in the same process.
void append(Report& report, Report later) {
  for (const int64_t at : later.epochs) report.epochs.push_back(at + report.steps());
  report.marks.insert(report.marks.end(), later.marks.begin(), later.marks.end());
  report.waits.insert(report.waits.end(), later.waits.begin(), later.waits.end());
  report.ns = later.begun + later.ns - report.begun;
  report.compiles = later.compiles;  // those of the first steps are its own
  report.compile_ns = later.compile_ns;
  report.compile_steps = std::move(later.compile_steps);
  report.collections = later.collections;
  report.ended = later.ended;
  report.input_s = later.input_s;
  report.error = later.error;
  report.where = later.where;
  report.notes = later.notes;
  report.files.merge(later.files);
  report.cpu_ns = later.cpu_ns;
  report.peak_rss_bytes = later.peak_rss_bytes;
  report.minor_faults = later.minor_faults;
  // First calls of a model are like later ones. If the script then ends, no others were looked at.
  if (report.kind != "call" || !later.lines.empty()) {
    report.lines = std::move(later.lines);
    report.loops = std::move(later.loops);
    report.accounts = std::move(later.accounts);
    report.books = std::move(later.books);
  }
  report.children = later.children;
  report.children_running = later.children_running;
  report.constants = std::move(later.constants);
  if (!later.conversions.is_null()) report.conversions = std::move(later.conversions);
  if (later.facts.is_object() && !later.facts.empty()) report.facts = std::move(later.facts);
  if (!later.environment.empty()) report.environment = std::move(later.environment);
}

Error no_steps(const Subject& subject, const Observed& process) {
  std::string seen = subject.seen.error.empty()
                         ? "it came to its end"
                         : fmt::format("it ended with {} ({})", subject.seen.error, subject.seen.where);
  for (const std::string& note : subject.seen.notes) seen += "\n  " + note;
  return Error{
      .message = fmt::format("{}: {} steps were seen, and {}", subject.name, subject.seen.steps(), seen),
      .remedy = fmt::format(
          "at least {} steps are needed; a step is optimizer.step(), a batch of fit, or a call of the "
          "jitted function that trains; where nothing trains, one of at least {} calls of a model, of predict or of a "
          "jitted function\n{}",
          kFirstSteps, kFewestCalls, process.log_tail())};
}

// Whether it compiles again because its inputs change shape. Padded inputs count as more samples than they are.
bool takes_many_shapes(const Subject& s) {
  const auto found = s.facts().find("retraces");
  return s.seen.compiles >= kFewestShapes && found != s.facts().end() &&
         found->dump().find(": shape") != std::string::npos;
}

// If the batch of one script is not known or varies, the two cannot be compared by samples.
void compare_by_step(std::vector<Subject>& subjects, std::vector<std::string>& notes) {
  const auto unknown =
      std::ranges::find_if(subjects, [](const Subject& s) { return s.number("batch") <= 0; });
  const auto varying = std::ranges::find_if(subjects, takes_many_shapes);
  if (unknown != subjects.end())
    notes.push_back(fmt::format(
        "{}: the samples of a step are not known, so steps are compared; make sure that both take as many",
        unknown->name));
  else if (varying != subjects.end())
    notes.push_back(fmt::format(
        "{}: its steps take inputs of several shapes, so steps are compared; make sure that both take as many samples",
        varying->name));
  else
    return;
  for (Subject& subject : subjects) subject.by_step = true;
}

// What a script does after its training may be most of it: it predicts, or evaluates.
std::string later_words(const Subject& s) {
  if (!s.seen.ended || s.profile.phases.empty()) return "";
  const double share = s.profile.phases.back().seconds / s.profile.total_s;
  return share > kMostlyLater
             ? fmt::format("{:.0f}% of its time comes after its last training step", 100 * share)
             : "";
}

std::string whole_note(const Subject& s, const std::string& why) {
  return fmt::format("{}: {}, so whole runs are compared, from the start of Python to the end", s.name, why);
}

// Says by how much longer one script is busy before its first step or after its last, if this is a large part of
// its run or most of the gap. Empty: it is not.
std::string outside_words(const std::vector<Subject>& subjects) {
  if (subjects.size() < 2) return "";
  const auto total = [](const Subject& s) { return s.profile.total_s; };
  const double gap_s = std::abs(total(subjects[0]) - total(subjects[1]));
  for (const bool later : {false, true}) {
    const auto part = [&](const Subject& s) {
      return later ? s.profile.phases.back().seconds : s.profile.phases[1].seconds;
    };
    const auto& slow = std::ranges::max(subjects, {}, part);
    const auto& fast = std::ranges::min(subjects, {}, part);
    const double more_s = part(slow) - part(fast), share = more_s / total(slow);
    if (share > kMostlyLater ||
        (share > kSomeLater && more_s > kLaterGap * gap_s && total(slow) > total(fast)))
      return fmt::format("{} needs {:.1f} s more than {} {}", slow.name, more_s, fast.name,
                         later ? "after its last training step" : "until its first step is made");
  }
  return "";
}

// A script that ends after a few steps leaves none for bursts: its whole runs are compared.
void compare_whole_runs(std::vector<Subject>& subjects, std::vector<std::string>& notes) {
  const auto stepless =
      std::ranges::find_if(subjects, [](const Subject& s) { return s.whole && !s.why_whole.empty(); });
  if (stepless != subjects.end()) {
    notes.push_back(whole_note(*stepless, stepless->why_whole));
    for (Subject& subject : subjects) {
      subject.whole = true;
      subject.profile = profile_of_run(subject.seen);
    }
    return;
  }
  const auto ends = [](const Subject& s) { return s.seen.ended; };
  const auto few = [](const Subject& s) { return s.seen.ended && s.profile.steps < kFewSteps; };
  if (!std::ranges::all_of(subjects, ends)) return;
  const auto later = std::ranges::find_if(subjects, [](const Subject& s) { return !later_words(s).empty(); });
  if (later != subjects.end()) {
    notes.push_back(whole_note(*later, later_words(*later)));
    for (Subject& subject : subjects) subject.whole = true;
    return;
  }
  // So may what it does before: it prepares its data, or compiles.
  if (const std::string outside = outside_words(subjects); !outside.empty()) {
    notes.push_back(outside + ", so whole runs are compared, from the start of Python to the end");
    for (Subject& subject : subjects) subject.whole = true;
    return;
  }
  const auto first = std::ranges::find_if(subjects, few);
  if (first == subjects.end()) return;
  notes.push_back(
      fmt::format("{} ends after {} steps, so whole runs are compared, from the start of Python to the end",
                  first->name, first->profile.steps));
  for (Subject& subject : subjects) subject.whole = true;
}

// What was seen until the first steps were made.
void keep_start(Subject& subject) {
  const Report& seen = subject.seen;
  subject.start_s = 1e-9 * static_cast<double>(seen.ns);
  subject.start_compile_s = 1e-9 * static_cast<double>(seen.compile_ns);
  subject.start_lines = seen.lines;
  subject.start_loops = seen.loops;
}

// Times between two requests that are not the script's: all that was seen is moved up to the second.
void move_by(Report& seen, int64_t ns) {
  for (int64_t* at : {&seen.started, &seen.begun}) *at += ns;
  for (int64_t& mark : seen.marks) mark += ns;
  for (Report::Import& one : seen.imports) {
    one.begin += ns;
    one.end += ns;
  }
}

// Profiles steps. The profiler makes them slower, so they are recorded with the time of the shortest step so far,
// and all earlier times are moved by the rest, up to the steps that follow.
Status profile(Observed& process, Report& seen) {
  const size_t n = seen.marks.size();
  if (seen.ended || n < 2 ||
      1e-9 * static_cast<double>(seen.marks[n - 1] - seen.marks[n - 2]) > kLongestProfiled)
    return Done{};
  TRY(Report profiled, process.run({.steps = kProfiledSteps, .seconds = 1, .watch = Watch::kProfile}));
  seen.ops = std::move(profiled.ops);
  if (profiled.ended) {
    append(seen, std::move(profiled));
    return Done{};
  }
  int64_t shortest = seen.marks[1] - seen.marks[0], end = seen.begun + seen.ns;
  for (size_t i = 2; i < n; ++i) shortest = std::min(shortest, seen.marks[i] - seen.marks[i - 1]);
  for (const int64_t at : profiled.epochs) seen.epochs.push_back(at + seen.steps());
  for (size_t i = 0; i < profiled.marks.size(); ++i) {
    seen.marks.push_back(end += shortest);
    seen.waits.push_back(0);
  }
  seen.ns = end - seen.begun;
  move_by(seen, profiled.begun + profiled.ns - end);
  return Done{};
}

// Runs steps and notes in which lines the script is.
Status watch(Subject& subject, Observed& process, RunRequest asked) {
  asked.facts = true, asked.watch = Watch::kLines;
  const int64_t printed = process.log_bytes();
  TRY(Report later, process.run(asked));
  const auto steps = static_cast<double>(std::max<int64_t>(1, later.steps()));
  subject.output_bytes = static_cast<double>(process.log_bytes() - printed) / steps;
  subject.faults = static_cast<double>(later.minor_faults - subject.seen.minor_faults) / steps;
  subject.watched_steps = later.steps();
  subject.watched_s = 1e-9 * static_cast<double>(later.ns);
  append(subject.seen, std::move(later));
  return Done{};
}

bool may_grow(const std::vector<int64_t>& marks) {
  std::vector<double> first, last;
  for (size_t i = 1; i < marks.size(); ++i)
    (2 * i < marks.size() ? first : last).push_back(static_cast<double>(marks[i] - marks[i - 1]));
  return !first.empty() && stats::median(last) > kMayGrow * stats::median(first);
}

Result<Observed> started(const Subject& subject, const fs::path& folder, const std::string& word) {
  ScriptSpec spec = subject.spec;
  std::string name = subject.name;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.'; }, '_');
  spec.log_file = folder / (name + "_" + word + ".log");
  return Observed::start(spec, Switches::object());
}

// A script that ended without steps, or with too few, was watched from start to end.
void take_as_whole(Subject& subject) {
  subject.whole = true;
  subject.watched_s = subject.start_s;
  subject.seen.lines = subject.start_lines;
  subject.profile = profile_of_run(subject.seen);
  subject.start_lines.clear();
}

// Why a step of one script is not the same as one of the other; empty: it is.
std::string unlike_words(const Subject& first, const Subject& second) {
  const auto calls = [](const Subject& s) { return s.seen.kind == "call"; };
  const auto differ = [&](double a, double b) { return std::abs(a - b) > kAlike * std::max(a, b); };
  if (calls(first) != calls(second)) return "a step is a call of a model in one of the two scripts alone";
  const bool differs = differ(first.number("parameters"), second.number("parameters"));
  return calls(first) && differs ? "nothing is trained, and the models that are called first differ" : "";
}

// Its process, and what it did until its first steps.
struct Begun {
  std::optional<Observed> process = {};
  Status status = Done{};
  int64_t frozen_ns = 0;  // since when it stands still, on the monotonic clock; 0: it does not
};

Status begin(Subject& subject, const fs::path& folder, Begun& out) {
  TRY(Observed process, started(subject, folder, "observed"));
  out.process.emplace(std::move(process));
  TRY(subject.seen,
      out.process->run({.steps = 2, .seconds = kStartSeconds, .facts = true, .watch = Watch::kLines}));
  keep_start(subject);
  return Done{};
}

// Begins both at once, as a start is mostly imports, on one processor; they then stand still until their turn.
std::vector<Begun> begin_all(std::span<Subject> subjects, const fs::path& folder) {
  std::vector<Begun> all(subjects.size());
  const auto one = [&](size_t i) {
    all[i].status = begin(subjects[i], folder, all[i]);
    if (!all[i].status || subjects[i].seen.ended || subjects.size() == 1) return;
    all[i].status = all[i].process->freeze();
    all[i].frozen_ns = monotonic_clock().now_ns();
  };
  std::thread second;
  if (subjects.size() > 1) second = std::thread(one, 1);
  one(0);
  if (second.joinable()) second.join();
  return all;
}

Status go_on(Subject& subject, Begun& begun, double observed_s) {
  CHECK_OK(begun.status);
  Observed& process = *begun.process;
  if (begun.frozen_ns > 0) {
    CHECK_OK(process.thaw());
    move_by(subject.seen, monotonic_clock().now_ns() - begun.frozen_ns);
  }
  if (!subject.seen.ended) {
    TRY(Report counted, process.run({.steps = kTracedSteps, .seconds = observed_s, .watch = Watch::kRounds}));
    append(subject.seen, std::move(counted));
  }
  if (!subject.seen.ended && subject.seen.steps() < kFirstSteps) {  // fewer if steps are long
    TRY(Report more,
        process.run({.steps = kFirstSteps - subject.seen.steps(), .seconds = observed_s, .facts = true}));
    append(subject.seen, std::move(more));
  }
  CHECK_OK(profile(process, subject.seen));
  if (subject.seen.ended || subject.seen.steps() < 2) {
    if (!subject.seen.ended || !subject.seen.error.empty()) return no_steps(subject, process);
    if (subject.seen.steps() < kFirstSteps) {
      take_as_whole(subject);
      return Done{};
    }
  } else {
    CHECK_OK(watch(subject, process, {.steps = kObservedSteps, .seconds = observed_s}));
    const double left_s = observed_s - subject.watched_s;
    if (subject.seen.error.empty() && !subject.seen.ended && left_s > 1 && may_grow(subject.seen.marks))
      CHECK_OK(watch(subject, process, {.steps = 2 * kObservedSteps, .seconds = left_s}));
    if (!subject.seen.error.empty()) return no_steps(subject, process);
  }
  subject.profile = profile_of(subject.seen);
  if (subject.seen.ended) return Done{};
  // A script that ends or fails only now has been seen.
  const auto counted = process.run(
      {.steps = kHookSteps, .seconds = std::min(kHookSeconds, observed_s / 2), .watch = Watch::kHooks});
  if (!counted) return Done{};
  subject.seen.hook_s = counted->hook_s;
  subject.seen.input_s = counted->input_s;
  if (!counted->conversions.empty()) subject.seen.conversions = counted->conversions;
  return Done{};
}

}  // namespace

Status observe(std::span<Subject> subjects, const fs::path& folder, double budget_s,
               const Progress& progress) {
  const double observed_s = std::clamp(kShareObserved * budget_s, kShortestObserved, kLongestObserved);
  progress(fmt::format(
      "starting {}", subjects.size() > 1 ? subjects[0].name + " and " + subjects[1].name : subjects[0].name));
  std::vector<Begun> begun = begin_all(subjects, folder);
  for (size_t i = 0; i < subjects.size(); ++i) {
    if (proc::interrupted()) return Error{.message = "interrupted"};
    progress("observing " + subjects[i].name);
    CHECK_OK(go_on(subjects[i], begun[i], observed_s));
    begun[i].process.reset();
  }
  return Done{};
}

Status observe_whole(std::vector<Subject>& subjects, const fs::path& folder) {
  if (subjects.size() < 2 || subjects[0].whole || subjects[1].whole) return Done{};
  const std::string unlike = unlike_words(subjects[0], subjects[1]);
  const auto unseen = [](const Subject& s) { return s.watched_steps == 0 && !later_words(s).empty(); };
  if (unlike.empty() && std::ranges::none_of(subjects, unseen)) return Done{};
  std::vector<Report> seen;
  for (const Subject& subject : subjects) {
    TRY(Observed process, started(subject, folder, "whole"));
    auto report = process.run({.steps = int64_t{1} << 40,
                               .seconds = kLongestWhole,
                               .facts = true,
                               .patience_s = 0,
                               .watch = Watch::kLines,
                               .whole = true});
    if (!report || !report->ended || !report->error.empty()) return Done{};
    seen.push_back(std::move(*report));
  }
  for (size_t i : {0, 1}) {
    Subject& subject = subjects[i];
    subject.unlike = !unlike.empty();
    subject.why_whole = unlike.empty() ? later_words(subject) : unlike;
    subject.seen = std::move(seen[i]);
    keep_start(subject);
    take_as_whole(subject);
  }
  return Done{};
}

void prepare(std::vector<Subject>& subjects, std::vector<std::string>& notes) {
  compare_whole_runs(subjects, notes);
  for (Subject& subject : subjects) read_files(subject);
  if (subjects.size() < 2) return;
  if (!subjects[0].whole) compare_by_step(subjects, notes);
  if (subjects[1].mean_s() > 1.05 * subjects[0].mean_s()) std::swap(subjects[0], subjects[1]);
  for (size_t i : {0, 1}) {
    const Subject& other = subjects[1 - i];
    Subject& mine = subjects[i];
    mine.other = other.facts();
    mine.other_s = other.mean_s();
    mine.other_source = other.source;
    mine.other_running = other.seen.children_running;
    mine.other_grows = step_trend(other.seen).has_value();
    for (const auto& [account, part] : other.seen.accounts)
      mine.other_accounts[account] = part * other.looked_at_s();
    for (const OpTime& op : op_times(other)) mine.other_ops.emplace(op.name, op);
    mine.other_compile_s = other.start_compile_s;
    for (const HotLine& line : other.seen.lines) mine.other_eager += line.eager;
    for (const LineTime& one : line_times(other)) {
      mine.other_lines[one.text] += one.seconds;
      mine.other_within[one.text] += one.within_s;
    }
    for (const PythonLoop& loop : other.seen.loops)
      mine.other_loop_s = std::max(mine.other_loop_s, loop.share * other.looked_at_s());
    mine.code = code_times(mine);
    if (mine.framework() == other.framework()) mine.exchanges = exchanges(mine.source, other.source);
  }
}

}  // namespace bakeoff::explain
